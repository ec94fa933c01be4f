package bench

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"jaegerlab/lab/record"
)

func row(name string, samples ...float64) (r Row) {
	r.Name = name
	for _, s := range samples {
		r.Add("spans/s", s)
	}
	return r
}

// A ratio is taken round by round: a round that was slow for both does not count against either.
func TestRatioIsPaired(t *testing.T) {
	a, b := row("a", 100, 10, 300), row("b", 50, 5, 150)
	if got := Ratio(a, b, "spans/s"); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
	if got := Ratio(a, Row{}, "spans/s"); !math.IsNaN(got) {
		t.Errorf("a ratio to nothing is %v", got)
	}
	if got := row("", 4, 1, 3, 2).Median("spans/s"); got != 2.5 {
		t.Errorf("median %v", got)
	}
}

// Goal: what is saved can be read again, by this package's types, by benchstat, and by people.
func TestSavedBenchmarkCanBeRead(t *testing.T) {
	folder, err := record.Create(t.TempDir(), "generators")
	if err != nil {
		t.Fatal(err)
	}
	one, two := row("lab/otlp grpc/traces=100", 1234567.5, 2e6), row("other", 1)
	two.Doubt("one doubt")
	two.Doubt("one doubt")
	one.Notes = []string{"peer --flag 1"}
	r := Record{Version: Version, ID: folder.ID, Experiment: "generators", Rows: []Row{one, two},
		Lines:    []string{"ratio: 2"},
		Settings: map[string]string{"b": "2", "a": "1"}}
	doc := Document(r, "Generators", []Column{MedianOf("rate", "spans/s", 1, "h"), MedianOf("size", "B", 0, "h")})
	if err := Save(folder, r, doc); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folder.Dir, "benchmark.json"))
	var back Record
	if err != nil || json.Unmarshal(data, &back) != nil || back.Rows[0].Median("spans/s") != one.Median("spans/s") {
		t.Errorf("benchmark.json: %v, %+v", err, back)
	}
	page, err := os.ReadFile(filepath.Join(folder.Dir, "report.md"))
	for _, want := range []string{"1,617,283.8", "n/a", "(1) peer --flag 1", "(2) one doubt", "ratio: 2", "- a: `1`"} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("report.md: %v, it lacks %q:\n%s", err, want, page)
		}
	}
	lines, err := os.ReadFile(filepath.Join(folder.Dir, "bench.txt"))
	if err != nil {
		t.Fatal(err)
	}
	reader := benchfmt.NewReader(bytes.NewReader(lines), "bench.txt")
	results := 0
	for reader.Scan() {
		if result, ok := reader.Result().(*benchfmt.Result); ok {
			if rate, ok := result.Value("spans/s"); !ok || rate <= 0 {
				t.Errorf("%+v has no spans/s", result)
			}
			results++
		}
	}
	if results != 3 || reader.Err() != nil {
		t.Errorf("%d results, %v, want 3 in:\n%s", results, reader.Err(), lines)
	}
}
