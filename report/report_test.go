package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"jaegerlab/lab/record"
)

var update = flag.Bool("update", false, "write the golden files again")

// saved takes a record to disk and gives its folder.
func saved(t testing.TB, r record.Record) string {
	t.Helper()
	folder, err := record.Create(t.TempDir(), "golden")
	if err != nil {
		t.Fatal(err)
	}
	r.ID = folder.ID
	if err := folder.Save(r); err != nil {
		t.Fatal(err)
	}
	return folder.Dir
}

// rendered gives both formats of a record that went through its file, with the given id.
func rendered(t testing.TB, r record.Record) (terminal, markdown string) {
	t.Helper()
	loaded, err := record.Load(saved(t, r))
	if err != nil {
		t.Fatal(err)
	}
	loaded.ID = r.ID
	doc := Of(loaded)
	var term, mark bytes.Buffer
	if err := Terminal(&term, doc); err != nil {
		t.Fatal(err)
	}
	if err := Markdown(&mark, doc, loaded); err != nil {
		t.Fatal(err)
	}
	return term.String(), mark.String()
}

func TestGolden(t *testing.T) {
	for name, r := range records() {
		terminal, markdown := rendered(t, r)
		golden(t, name+".txt", terminal)
		golden(t, name+".md", markdown)
	}
}

// golden compares with a file in testdata; what differs is left beside it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read a golden file (go test ./report -update writes them): %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		actual := filepath.Join(t.ArtifactDir(), name)
		if err := os.WriteFile(actual, []byte(got), 0o644); err != nil {
			t.Error(err)
		}
		t.Errorf("%s differs (-want +got), the whole of it is in %s; go test ./report -update accepts it\n%s", path, actual, diff)
	}
}

// Foreign text shows as text: nothing in it becomes markup, a link, a column, a line or a colour.
func TestForeignTextStaysText(t *testing.T) {
	terminal, markdown := rendered(t, hostileRecord())
	for name, out := range map[string]string{"terminal": terminal, "markdown": markdown} {
		for _, r := range out {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("%s holds the character %U", name, r)
			}
		}
	}
	fence, columns := "", 0
	for i, line := range strings.Split(markdown, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			if fence == "" {
				fence = line
			} else if line == fence {
				fence = ""
			}
		case fence != "":
			continue // shown as it is
		case strings.Contains(line, "<script"), strings.Contains(line, "![x]"), strings.Contains(line, "http://"), strings.Contains(line, "`code`"):
			t.Errorf("markdown line %d lets markup through: %s", i+1, line)
		case strings.HasPrefix(line, "# not"), strings.HasPrefix(line, "- # not"), strings.HasPrefix(line, "# out"):
			t.Errorf("markdown line %d became a heading: %s", i+1, line)
		}
		if !strings.HasPrefix(line, "|") || fence != "" {
			columns = 0
			continue
		}
		n := strings.Count(line, "|") - strings.Count(line, `\|`)
		if columns != 0 && n != columns {
			t.Errorf("markdown line %d has %d columns, its table %d: %s", i+1, n-1, columns-1, line)
		}
		columns = n
	}
	if fence != "" {
		t.Errorf("the fence %s is never closed", fence)
	}
}

// find gives the cell of an arm's row by the column's title.
func find(t *testing.T, doc Document, table, arm, column string) Cell {
	t.Helper()
	for _, tab := range doc.Tables {
		i := slices.IndexFunc(tab.Columns, func(c Column) bool { return c.Title == column })
		if tab.Title != table || i < 0 {
			continue
		}
		for _, row := range tab.Rows {
			if strings.HasPrefix(row[0].Plain, arm) {
				return row[i]
			}
		}
	}
	t.Fatalf("no table %q with arm %q and column %q", table, arm, column)
	return Cell{}
}

func noteOf(doc Document, c Cell) (texts string) {
	for _, t := range doc.Tables {
		for _, f := range t.Footnotes {
			if slices.Contains(c.Notes, f.Number) {
				texts += f.Text + "\n"
			}
		}
	}
	return texts
}

func wantNote(t *testing.T, doc Document, text string) {
	t.Helper()
	if !strings.Contains(strings.Join(doc.Notes, "\n"), text) {
		t.Errorf("the first lines lack %q: %q", text, doc.Notes)
	}
}

func TestArmsAreComparedOnTheSourceThatAllHave(t *testing.T) {
	doc := Of(wholeRecord())
	if c := find(t, doc, "Stored", "cassandra:2", "saved in window"); c.Plain != "43620" {
		t.Errorf("cassandra is compared on %v, want the counter's 43620", c)
	}
	if c := find(t, doc, "Stored", "cassandra:2", "per second"); c.Plain != "727.0" {
		t.Errorf("per second %v, want the compared figure over 60 s", c)
	}
	c := find(t, doc, "Times", "badger", "stored in window")
	if c.Text != "n/a" || c.Plain != "" || !strings.Contains(noteOf(doc, c), "badger keeps no write times") {
		t.Errorf("badger by write time is %v (%s), want n/a with the reason", c, noteOf(doc, c))
	}
	wantNote(t, doc, "saved in the window by the collector's own counter: no figure by write time for badger v2 otlp-grpc")

	alone := wholeRecord()
	alone.Runs = alone.Runs[:1]
	doc = Of(alone)
	if c := find(t, doc, "Stored", "cassandra:2", "stored in window"); c.Text != "43,500" || c.Plain != "43500" {
		t.Errorf("alone it shows %v, want 43,500 by write time", c)
	}
	neither := wholeRecord()
	neither.Runs[0].SavedInWindowCounter = nil
	wantNote(t, Of(neither), "the arms can't be compared on it")
}

// Two single runs of one configuration differ by themselves: figures only.
func TestOneRoundNamesNoWinner(t *testing.T) {
	wantNote(t, Of(wholeRecord()), "n=1, and the test needs 4 rounds of each (LAB_ROUNDS)")
	wantNote(t, Of(wholeRecord()), "No winner.")
	for _, r := range records() {
		terminal, markdown := rendered(t, r)
		for _, word := range []string{"faster", "slower", "Winner:", "% ("} {
			if strings.Contains(terminal+markdown, word) {
				t.Errorf("a report says %q", word)
			}
		}
	}
}

func TestRoundsGiveMedianAndRange(t *testing.T) {
	doc := Of(lossyRecord())
	for column, want := range map[string]string{
		"rounds": "2 of 3", "stored in window": "44,300\n(43,500 to 45,100)", "missing": "3", "verdict": "whole 1\nlossy 1\nINCOMPLETE 1",
	} {
		if c := find(t, doc, "Stored", "cassandra:2", column); c.Text != want {
			t.Errorf("%s is %q, want %q", column, c.Text, want)
		}
	}
	wantNote(t, doc, "INCOMPLETE: node cassandra-2 ended in the load")
	wantNote(t, doc, "2 runs were measured to their end")
}

// A count that could not be finished is a bound, never a smaller number shown as final.
func TestAnIncompleteReadBackIsNeverAFigure(t *testing.T) {
	doc := Of(unknownRecord())
	if c := find(t, doc, "Stored", "cassandra:2", "stored after drain"); c.Text != "n/a" || !strings.Contains(noteOf(doc, c), "250 of 256 ranges") {
		t.Errorf("stored after drain is %v: %s", c, noteOf(doc, c))
	}
	for column, want := range map[string]string{"stored": ">=42,900", "missing": "<=1,100", "rows": ">=42,900"} {
		if c := find(t, doc, "Ledger", "cassandra:2", column); c.Text != want || !strings.Contains(noteOf(doc, c), "250 of 256 ranges") {
			t.Errorf("%s is %v (%s), want %s and the ranges", column, c, noteOf(doc, c), want)
		}
	}
	wantNote(t, doc, "OVERCOMMITTED: this machine has 2 CPUs")
	wantNote(t, doc, "LIMITS NOT IN FORCE")
}

// A run that ended before it had a ledger has zeros in its record that mean nothing.
func TestNoLedgerIsNotZero(t *testing.T) {
	r := lossyRecord()
	r.Runs = r.Runs[2:]
	doc := Of(r)
	for _, column := range []string{"stored in window", "per second", "missing"} {
		if c := find(t, doc, "Stored", "cassandra:2", column); c.Text != "n/a" {
			t.Errorf("%s of a run without an end is %v", column, c)
		}
	}
	if c := find(t, doc, "Ledger", "cassandra:2", "generated"); c.Text != "n/a" {
		t.Errorf("generated of a run without a ledger is %v", c)
	}
	if c := find(t, doc, "Stored", "cassandra:2", "verdict"); c.Text != "INCOMPLETE" || !strings.Contains(noteOf(doc, c), "exit status 137") {
		t.Errorf("verdict %v: %s", c, noteOf(doc, c))
	}
}

func TestAStandInIsLabelledEverywhere(t *testing.T) {
	doc := Of(hostileRecord())
	wantNote(t, doc, "STAND-IN: scylla:3 v2 otlp-grpc")
	if c := find(t, doc, "Arms", "scylla:3", colEngine.Title); !strings.HasPrefix(c.Text, "STAND-IN:") || !strings.Contains(noteOf(doc, c), "never ranked") {
		t.Errorf("engine %v: %s", c, noteOf(doc, c))
	}
	for _, table := range doc.Tables {
		for _, row := range table.Rows {
			if strings.HasPrefix(row[0].Plain, "scylla:3") && !strings.Contains(row[0].Plain, "STAND-IN") {
				t.Errorf("table %s shows a stand-in without its label: %v", table.Title, row[0])
			}
		}
	}
	for _, note := range doc.Notes {
		if strings.Contains(note, "Winner:") {
			t.Errorf("a stand-in was ranked: %s", note)
		}
	}
}

func TestABrokenLawIsSeen(t *testing.T) {
	r := wholeRecord()
	r.Runs[0].Ledger.Laws[0] = record.Law{Law: "the cells sum to generated", Seen: "9, generated 10"}
	doc := Of(r)
	if c := find(t, doc, "Ledger", "cassandra:2", "laws"); c.Text != "BROKEN" || !strings.Contains(noteOf(doc, c), "9, generated 10") {
		t.Errorf("laws %v: %s", c, noteOf(doc, c))
	}
}

// Every warning of every run is a footnote somewhere.
func TestEveryWarningIsAFootnote(t *testing.T) {
	for name, r := range records() {
		doc := Of(r)
		var all strings.Builder
		for _, table := range doc.Tables {
			for _, f := range table.Footnotes {
				all.WriteString(f.Text + "\n")
			}
		}
		for _, run := range r.Runs {
			for _, warning := range slices.Concat(run.Warnings, run.Reasons) {
				if !strings.Contains(all.String(), clean(warning)) {
					t.Errorf("%s: no footnote says %q", name, warning)
				}
			}
		}
	}
}

func TestEmptyRecordsRender(t *testing.T) {
	for _, r := range []record.Record{{}, {Incomplete: "interrupted"}, {Runs: []record.Run{{}}}, {Complete: true, Runs: []record.Run{{Verdict: record.Whole}}}} {
		rendered(t, r)
	}
}

func TestNumbersAreTheSameInEveryLocale(t *testing.T) {
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	for _, test := range []struct {
		cell        Cell
		text, plain string
	}{
		{whole(44000), "44,000", "44000"}, {whole(-1234567), "-1,234,567", "-1234567"}, {whole(999), "999", "999"}, {whole(0), "0", "0"},
		{fixed(1234.56, 1), "1,234.6", "1234.6"}, {fixed(0.04, 1), "0.0", "0.0"}, {fixed(-1000, 0), "-1,000", "-1000"},
	} {
		if test.cell.Text != test.text || test.cell.Plain != test.plain {
			t.Errorf("got %+v, want %q and %q", test.cell, test.text, test.plain)
		}
	}
}

func TestColumnsExplainThemselves(t *testing.T) {
	listed := map[string]bool{}
	for _, c := range Columns() {
		if c.How == "" || listed[c.How] {
			t.Errorf("column %s has no explanation of its own", c.Name())
		}
		listed[c.How] = true
	}
	for _, r := range records() {
		for _, table := range Of(r).Tables {
			for _, c := range table.Columns {
				if c.How != "" && !listed[c.How] {
					t.Errorf("column %s of table %s is not in Columns", c.Name(), table.Title)
				}
			}
			for _, row := range table.Rows {
				if len(row) != len(table.Columns) {
					t.Errorf("table %s has a row of %d cells and %d columns", table.Title, len(row), len(table.Columns))
				}
			}
		}
	}
}

// Rendering again needs the record alone, gives the same bytes, and takes well under a second.
func TestRenderAgain(t *testing.T) {
	r := lossyRecord()
	for round := 4; round <= 100; round++ {
		run := cassandraRun(44_000, 0, 43_500)
		run.Round = round
		r.Runs = append(r.Runs, run)
	}
	dir := saved(t, r)
	var reports [3][]byte
	quickest := time.Hour // the machine may be busy with something else
	for i := range reports {
		begin := time.Now()
		if _, err := Render(dir); err != nil {
			t.Fatal(err)
		}
		quickest = min(quickest, time.Since(begin))
		var err error
		if reports[i], err = os.ReadFile(filepath.Join(dir, FileName)); err != nil {
			t.Fatal(err)
		}
	}
	if quickest > time.Second {
		t.Errorf("rendering %d runs took %s at best", len(r.Runs), quickest)
	}
	if !bytes.Equal(reports[0], reports[1]) || !bytes.Equal(reports[0], reports[2]) {
		t.Error("rendering again changed the report")
	}
	if _, err := Render(t.TempDir()); err == nil || !strings.Contains(err.Error(), "record.json") {
		t.Errorf("Render of an empty folder = %v", err)
	}
}

func BenchmarkRender(b *testing.B) {
	dir := saved(b, wholeRecord())
	for b.Loop() {
		if _, err := Render(dir); err != nil {
			b.Fatal(err)
		}
	}
}
