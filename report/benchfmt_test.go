package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"

	"jaegerlab/lab/record"
	"jaegerlab/report/stat"
)

// twoArms is the recorded arm beside a copy of it that stores a tenth more and loses a span.
func twoArms(t *testing.T) record.Record {
	t.Helper()
	r, err := record.Load("testdata/rounds")
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range slices.Clone(r.Runs) {
		run.Arm, run.Spec.Collector, run.Folder = "badger v2-stock otlp-grpc", "v2-stock", run.Folder+"-b"
		saved := *run.SavedInWindowCounter*2 + int64(i)
		run.SavedInWindowCounter = &saved
		run.Ledger.Missing = 1
		r.Runs = append(r.Runs, run)
	}
	return r
}

// Every figure of every round comes back as it was.
func TestBenchmarksAreReadable(t *testing.T) {
	r := twoArms(t)
	reader := benchfmt.NewReader(bytes.NewReader(Benchmarks(r)), "bench.txt")
	runs := 0
	for reader.Scan() {
		switch line := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Fatal(line)
		case *benchfmt.Result:
			run := r.Runs[runs]
			runs++
			for _, q := range Quantities(byCounter) {
				got, ok := line.Value(q.Bench)
				want := q.Value(run)
				if ok != (want != nil) || ok && got != *want {
					t.Errorf("run %d: %s is %v, %v in the file, want %v", runs, q.Bench, got, ok, want)
				}
			}
		}
	}
	if err := reader.Err(); err != nil || runs != len(r.Runs) {
		t.Errorf("%d of %d rounds, %v", runs, len(r.Runs), err)
	}
	for _, r := range records() { // foreign text makes no line of its own
		reader := benchfmt.NewReader(bytes.NewReader(Benchmarks(r)), "bench.txt")
		for reader.Scan() {
			if bad, ok := reader.Result().(*benchfmt.SyntaxError); ok {
				t.Errorf("%s: %v", r.Experiment, bad)
			}
		}
	}
}

// benchstat itself, on the exported file, gives the medians, intervals, differences and p of the
// report.
func TestBenchstatAgreesWithTheReport(t *testing.T) {
	r := twoArms(t)
	file := filepath.Join(t.TempDir(), BenchName)
	if err := os.WriteFile(file, Benchmarks(r), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, "go", "run", "golang.org/x/perf/cmd/benchstat", "-format", "csv", "-col", "/arm", file)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("benchstat (its version is that of go.mod): %v\n%s", err, stderr.Bytes())
	}
	all := arms(r)
	for _, q := range []Quantity{quantitySaved, quantityMissing} {
		line := benchstatLine(t, out, q.Bench)
		before, _ := q.values(all[0].measured())
		after, _ := q.values(all[1].measured())
		d := stat.Compare(before, after, stat.Alpha)
		// name, old, its interval, new, its interval, difference, p
		for i, want := range map[int]float64{1: d.Old.Median, 3: d.New.Median} {
			if got, err := strconv.ParseFloat(line[i], 64); err != nil || math.Abs(got-want) > 1e-6*want {
				t.Errorf("%s: benchstat says %s, the report %v", q.Name, line[i], want)
			}
		}
		if q.Exact {
			if d := exactDelta(sum(before), sum(after)); d != "?" || line[5] != "?" {
				t.Errorf("%s: benchstat says %s, the report %s", q.Name, line[5], d)
			}
			continue
		}
		got, err := strconv.ParseFloat(strings.TrimSuffix(line[5], "%"), 64)
		if err != nil || math.Abs(got-100**d.Relative) > 0.006 || !d.Real() {
			t.Errorf("%s: benchstat says %s, the report %v", q.Name, line[5], *d.Relative)
		}
		if want := "p=" + strconv.FormatFloat(d.P, 'f', 3, 64); !strings.HasPrefix(line[6], want) {
			t.Errorf("%s: benchstat says %s, the report %s", q.Name, line[6], want)
		}
		interval := math.Max(*d.Old.Hi/d.Old.Median-1, 1-*d.Old.Lo/d.Old.Median)
		if want := strconv.FormatFloat(100*interval, 'f', 0, 64) + "%"; line[2] != want {
			t.Errorf("%s: benchstat's interval is %s, the report's %s", q.Name, line[2], want)
		}
	}
}

// benchstatLine is the line of the benchmark below the header with this unit.
func benchstatLine(t *testing.T, out []byte, unit string) []string {
	t.Helper()
	reader := csv.NewReader(bytes.NewReader(out))
	reader.FieldsPerRecord = -1
	lines, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		if len(line) > 1 && line[1] == unit && i+1 < len(lines) {
			return lines[i+1]
		}
	}
	t.Fatalf("benchstat printed nothing on %s:\n%s", unit, out)
	return nil
}
