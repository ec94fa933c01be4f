package record

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"jaegerlab/lab/trace"
)

func newRunFolder(t *testing.T) (*Folder, RunFolder) {
	t.Helper()
	f := newFolder(t)
	run, err := f.Run("cassandra:2 v2 otlp-grpc", 1)
	if err != nil {
		t.Fatal(err)
	}
	return f, run
}

func someOutcomes() []Outcome {
	return []Outcome{
		{Phase: trace.Warmup, Spans: 11, Intended: 1, Sent: 1, Answered: 2, Attempts: 1, Class: Acked},
		{Worker: 9, First: math.MaxUint64, Spans: math.MaxUint32, Intended: -1, Sent: math.MaxInt64, Attempts: 3, Class: Refused,
			Code: "RESOURCE_EXHAUSTED: sending queue is full, \"again\"\r\nlater\\n; naïve \xff"},
	}
}

func TestOutcomesSurviveTheDisk(t *testing.T) {
	f, run := newRunFolder(t)
	want := someOutcomes()
	file, err := run.WriteOutcomes(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadOutcomes(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes changed on disk (-want +got):\n%s", diff)
	}
	if err := Verify(f.Dir, file); err != nil {
		t.Error(err)
	}
}

func TestRowsSurviveTheDisk(t *testing.T) {
	f, run := newRunFolder(t)
	want := []Row{
		{ID: trace.ID{High: 1, Low: math.MaxUint64, Span: 0xabcdef}, Hash: math.MinInt64, WriteTime: 1700000000123456},
		{},
		{ID: trace.ID{High: math.MaxUint64}, Hash: math.MaxInt64, WriteTime: math.MinInt64},
	}
	w, err := run.Rows()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range want {
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(run.Dir, RowsName)); err == nil {
		t.Error("the rows file has its name before it is complete")
	}
	file, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var got []Row
	if err := ReadRows(run.Dir, func(row Row) error { got = append(got, row); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows changed on disk (-want +got):\n%s", diff)
	}
	if err := Verify(f.Dir, file); err != nil {
		t.Error(err)
	}
}

func TestChangedRawFactsAreFound(t *testing.T) {
	f, run := newRunFolder(t)
	file, err := run.WriteOutcomes(someOutcomes())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(run.Dir, OutcomesName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string][]byte{"cut off": data[:len(data)-9], "header only": data[:12], "empty": nil} {
		if err := os.WriteFile(path, changed, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Verify(f.Dir, file); err == nil || !strings.Contains(err.Error(), "changed after the run") {
			t.Errorf("%s: Verify = %v", name, err)
		}
		if _, err := ReadOutcomes(run.Dir); err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("%s: ReadOutcomes = %v", name, err)
		}
	}
	if err := Verify(f.Dir, File{Path: "../x"}); err == nil {
		t.Error("Verify follows a path out of the record's folder")
	}
}

func TestDecodersNameTheLine(t *testing.T) {
	rowLine := strings.Repeat("0", 32) + "," + strings.Repeat("0", 16) + ",5,6\n"
	for text, want := range map[string]string{
		"a,b\n":                                  "begins with",
		rowsHeader + "\n" + rowLine + "x\n":      "line 3",
		rowsHeader + "\n" + rowLine[:50] + ",1,": "line 2",
		rowsHeader + "\n" + strings.Replace(rowLine, "5", "12,5", 1): "line 2",
		rowsHeader + "\n" + strings.Repeat("0", 1<<17):               "more than",
	} {
		if err := DecodeRows(strings.NewReader(text), func(Row) error { return nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("DecodeRows(%.60q) = %v, want %q", text, err, want)
		}
	}
	header := strings.Join(outcomesHeader, ",") + "\n"
	for line, want := range map[string]string{
		"measured,0,0,1,0,0,0,1,acked\n":          "wrong number of fields",
		"cold,0,0,1,0,0,0,1,acked,\n":             "column phase",
		"measured,0,0,1,0,0,0,1,fine,\n":          "column class",
		"measured,4294967296,0,1,0,0,0,1,acked,":  "column worker",
		"measured,0,0,1,\"1,5\",0,0,1,acked,\n":   "column intended_ns",
		"measured,0,-1,1,0,0,0,1,acked,\n":        "column first",
		"measured,0,0,1,0,0,0,70000,acked,code\n": "column attempts",
	} {
		_, err := DecodeOutcomes(strings.NewReader(header + line))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("DecodeOutcomes(%q) = %v, want line 2 and %q", line, err, want)
		}
	}
}

func TestAnyOutcomeSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Outcome {
			return Outcome{
				Phase: trace.Phase(rapid.IntRange(0, 1).Draw(t, "phase")), Worker: rapid.Uint32().Draw(t, "worker"),
				First: rapid.Uint64().Draw(t, "first"), Spans: rapid.Uint32().Draw(t, "spans"),
				Intended: rapid.Int64().Draw(t, "intended"), Sent: rapid.Int64().Draw(t, "sent"), Answered: rapid.Int64().Draw(t, "answered"),
				Attempts: rapid.Uint16().Draw(t, "attempts"), Class: Class(rapid.IntRange(0, int(NoReply)).Draw(t, "class")),
				Code: string(rapid.SliceOf(rapid.Byte()).Draw(t, "code")),
			}
		})).Draw(t, "outcomes")
		var text bytes.Buffer
		if err := EncodeOutcomes(&text, want); err != nil {
			t.Fatal(err)
		}
		got, err := DecodeOutcomes(&text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]Outcome{}, want...), got); diff != "" {
			t.Fatalf("outcomes changed (-want +got):\n%s", diff)
		}
	})
}

func FuzzDecodeRows(f *testing.F) {
	f.Add(rowsHeader + "\n" + string(appendRow(nil, Row{ID: trace.ID{High: 1, Low: 2, Span: 3}, Hash: -4, WriteTime: 5})))
	f.Add(rowsHeader)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		var again []byte
		var rows []Row
		if DecodeRows(strings.NewReader(text), func(row Row) error {
			again, rows = appendRow(again, row), append(rows, row)
			return nil
		}) != nil {
			return
		}
		n := 0
		if err := DecodeRows(strings.NewReader(rowsHeader+"\n"+string(again)), func(row Row) error {
			if row != rows[n] {
				t.Fatalf("row %d changed from %v to %v", n, rows[n], row)
			}
			n++
			return nil
		}); err != nil || n != len(rows) {
			t.Fatalf("rows that were read can't be read again: %v, %d of %d", err, n, len(rows))
		}
	})
}

func FuzzDecodeOutcomes(f *testing.F) {
	var text bytes.Buffer
	if err := EncodeOutcomes(&text, someOutcomes()); err != nil {
		f.Fatal(err)
	}
	f.Add(text.String())
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := DecodeOutcomes(strings.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := EncodeOutcomes(&again, first); err != nil {
			t.Fatal(err)
		}
		second, err := DecodeOutcomes(&again)
		if err != nil || !cmp.Equal(first, second) {
			t.Fatalf("outcomes changed: %v\n%s", err, cmp.Diff(first, second))
		}
	})
}

// FuzzDecodeRecord proves that no bytes make Load panic.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"runs":[{"arm":"a","verdict":"whole"}]}`))
	f.Add([]byte(`{"version":9}`))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = decode(data) })
}

func BenchmarkRows(b *testing.B) {
	f, err := Create(b.TempDir(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	run, err := f.Run("arm", 1)
	if err != nil {
		b.Fatal(err)
	}
	w, err := run.Rows()
	if err != nil {
		b.Fatal(err)
	}
	numbering := trace.New(1, 10)
	b.Run("write", func(b *testing.B) {
		for i := range b.N {
			_ = w.Write(Row{ID: numbering.ID(trace.Ref{Index: uint64(i)}), Hash: int64(uint64(i) * 0x9e3779b97f4a7c15), WriteTime: 1700000000000000 + int64(i)})
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
	if _, err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		rows := 0
		for rows < b.N {
			if err := ReadRows(run.Dir, func(Row) error { rows++; return nil }); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	})
}
