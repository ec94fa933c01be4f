package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"jaegerlab/lab/record"
)

// names that people and attackers give to things.
var hardNames = []string{
	`=cmd|' /C calc'!A0`, `+1+cmd`, `-2+3`, `@SUM(A1:A9)`, "\t=1+1", "＝1+1", `'quoted`, `a "b", c`, "a;=b", "a|b||c", "one\ntwo\r\nthree",
	`<img src=x onerror=alert(1)>`, `</script><script>alert(1)</script>`, `<!--`, "]]>", "**b** _i_ `c` [l](http://x.test) ![i](http://x.test)",
	"# head", "- item", "1. item", "---", "\x1b[31mred", "\u202eback", "zero\u200bwidth", "日本語の名前", "Ключ", "مفتاح", "é́", "😀", "", " ", "\xff\xfe", "\x00",
}

// named is a document of one table whose every text is foreign.
func documentOf(name string) Document {
	name = clean(name)
	return Document{
		Title: name, Notes: []string{name},
		Tables: []Table{{
			Title:   name,
			Columns: []Column{{Title: name, Left: true}, {Title: "spans", Unit: name}, {Title: "share"}},
			Rows: [][]Cell{
				{text(name), whole(-1234567), text("-30.5 %")},
				{{Text: name, Plain: name, Notes: []int{1}}, {Text: notAvailable, Notes: []int{1}}, bound("<=", whole(0))},
			},
			Footnotes: []Footnote{{1, name}},
		}},
	}
}

func written(t testing.TB, name string, doc Document) []byte {
	t.Helper()
	f, err := FormatNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f.Write(&out, Rendering{Document: doc}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// checkCSV reads a document back: every cell is there, nothing runs, and what is not known is empty.
func checkCSV(t testing.TB, doc Document) {
	t.Helper()
	lines, err := csv.NewReader(bytes.NewReader(written(t, "csv", doc))).ReadAll() // refuses lines of other lengths
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, line := range lines {
		for i, field := range line {
			if field != "" && strings.ContainsAny(field[:1], "=+-@\t\r\n") && !figure.MatchString(field) {
				t.Errorf("a spreadsheet runs the field %q", field)
			}
			line[i] = strings.TrimPrefix(field, "'")
		}
		got = append(got, line)
	}
	at := 1 + len(doc.Notes) + 1 // title, notes, head of the first table
	for _, table := range doc.Tables {
		for _, row := range table.Rows {
			if got[at][0] != table.Title {
				t.Fatalf("line %d is of the table %q, want %q", at, got[at][0], table.Title)
			}
			for i, c := range row {
				if got[at][i+1] != c.Plain {
					t.Errorf("%s: cell %q came back as %q", table.Title, c.Plain, got[at][i+1])
				}
			}
			at++
		}
		at++ // head of the next table
	}
}

// checkJSON reads a document back: what is not known is null.
func checkJSON(t testing.TB, doc Document) {
	t.Helper()
	var got jsonDocument
	decoder := json.NewDecoder(bytes.NewReader(written(t, "json", doc)))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	for i, table := range doc.Tables {
		for j, row := range table.Rows {
			for k, want := range row {
				c := got.Tables[i].Rows[j][k]
				value := ""
				switch v := c.Value.(type) {
				case string:
					value = v
				case json.Number:
					value = c.Bound + v.String()
				}
				if value != want.Plain || c.Shown != want.Text || (c.Value == nil) != (want.Plain == "") {
					t.Errorf("%s: cell %q, shown %q, came back as %v, shown %q", table.Title, want.Plain, want.Text, c.Value, c.Shown)
				}
			}
		}
	}
}

func TestCSVAndJSONKeepEveryCell(t *testing.T) {
	for _, name := range hardNames {
		checkCSV(t, documentOf(name))
		checkJSON(t, documentOf(name))
	}
	for _, r := range records() {
		checkCSV(t, Of(r))
		checkJSON(t, Of(r))
	}
}

func FuzzFormatsKeepForeignText(f *testing.F) {
	for _, name := range hardNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		doc := documentOf(name)
		checkCSV(t, doc)
		checkJSON(t, doc)
		checkText(t, doc)
	})
}

// Documents of any shape and size come back.
func TestCSVOfAnyShape(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 200 {
		var doc Document
		for i := range r.IntN(4) {
			table := Table{Title: "t" + strconv.Itoa(i)}
			for range 1 + r.IntN(6) {
				table.Columns = append(table.Columns, Column{Title: "c", Left: r.IntN(2) == 0})
			}
			for range r.IntN(4) {
				var row []Cell
				for range table.Columns {
					row = append(row, text(hardNames[r.IntN(len(hardNames))]))
				}
				table.Rows = append(table.Rows, row)
			}
			doc.Tables = append(doc.Tables, table)
		}
		checkCSV(t, doc)
		checkJSON(t, doc)
	}
}

// checkText: in the formats for people, foreign text opens no line, no column and no element.
func checkText(t testing.TB, doc Document) {
	t.Helper()
	for _, name := range []string{"terminal", "markdown", "html"} {
		out := string(written(t, name, doc))
		if !utf8.ValidString(out) || strings.ContainsAny(out, "\x00\x1b\u202e") {
			t.Errorf("%s: control characters of %q reach the reader", name, doc.Title)
		}
		switch name {
		case "markdown":
			rows := 0
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "|") {
					rows++
					if n := strings.Count(line, "|") - strings.Count(line, `\|`); n != 4 {
						t.Errorf("markdown: %q has %d columns, want 3", line, n-1)
					}
				}
			}
			if rows != 4 {
				t.Errorf("markdown: %d lines of a table, want 4, with %q", rows, doc.Title)
			}
		case "html":
			checkElements(t, out, doc.Title)
		}
	}
}

func checkElements(t testing.TB, page, name string) {
	t.Helper()
	scripts, cells := 0, 0
	for _, n := range elements(t, page) {
		switch n.Data {
		case "script":
			scripts++
		case "td":
			cells++
		case "img", "iframe":
			t.Errorf("html: <%s> of %q", n.Data, name)
		}
		if slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return strings.HasPrefix(a.Key, "on") }) {
			t.Errorf("html: <%s> has a handler of %q", n.Data, name)
		}
	}
	if scripts != 1 || cells != 6 {
		t.Errorf("html: %d scripts and %d cells with %q", scripts, cells, name)
	}
}

func TestFormatsShowForeignTextAsText(t *testing.T) {
	for _, name := range hardNames {
		checkText(t, documentOf(name))
	}
}

// An unknown value is null and a figure is a number, not its text.
func TestJSONValues(t *testing.T) {
	var got jsonDocument
	if err := json.Unmarshal(written(t, "json", documentOf("x")), &got); err != nil {
		t.Fatal(err)
	}
	rows := got.Tables[0].Rows
	want := []any{-1234567.0, nil, 0.0, "-30.5 %"}
	if diff := cmp.Diff(want, []any{rows[0][1].Value, rows[1][1].Value, rows[1][2].Value, rows[0][2].Value}); diff != "" {
		t.Error(diff)
	}
	if rows[1][2].Bound != "<=" {
		t.Errorf("bound %q", rows[1][2].Bound)
	}
}

func TestAnUnknownFormatNamesAll(t *testing.T) {
	_, err := FormatNamed("xlsx")
	if err == nil || !strings.Contains(err.Error(), "csv") || !strings.Contains(err.Error(), "benchfmt") {
		t.Errorf("%v", err)
	}
}

// A table for a terminal of 120 columns fits, whatever the number of arms; what does not fit beside
// each other goes below, and no column is lost.
func TestTerminalFits120Columns(t *testing.T) {
	for name, r := range map[string]record.Record{"1": lossyRecord(), "2": wholeRecord(), "6": sixArms(), "ten rounds": tenRounds()} {
		doc := Of(r)
		out := string(written(t, "terminal", doc))
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > tableWidth {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
		for _, table := range doc.Tables {
			columns := 0
			for i, part := range split(table) {
				keys := 0
				for i > 0 && slices.Contains(keyColumns, part.Columns[keys].Title) {
					keys++
				}
				columns += len(part.Columns) - keys
			}
			if columns != len(table.Columns) {
				t.Errorf("%s: %s: %d of %d columns are printed", name, table.Title, columns, len(table.Columns))
			}
		}
	}
}

// sixArms is a comparison of six collectors on one store.
func sixArms() record.Record {
	r := wholeRecord()
	first := r.Runs[0]
	r.Runs = nil
	for _, collector := range []string{"v2", "v2-stock", "v1", "mine", "queue-20000", "batch-8192-timeout-200ms"} {
		run := first
		run.Spec.Collector = collector
		run.Arm, run.Folder = run.Spec.Name(), collector
		r.Runs = append(r.Runs, run)
	}
	return r
}
