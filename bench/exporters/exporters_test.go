package exporters

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// TestMain lets this program be its own black hole.
func TestMain(m *testing.M) {
	if kind := os.Getenv(HoleEnv); kind != "" {
		if err := ServeHole(kind, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Goal: every arm works and is accounted for: what was exported and did not arrive is dropped, and
// nothing is dropped where the transport has answers.
func TestEveryArmIsMeasured(t *testing.T) {
	var out bytes.Buffer
	o := Options{Batches: []int{1, 2}, Spans: 300, Samples: 2, Results: t.TempDir(), Self: os.Args[0], Out: &out, Say: t.Logf}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if want := (len(arms()) + len(variants())) * len(o.Batches); len(r.Rows) != want {
		t.Errorf("%d rows, want %d", len(r.Rows), want)
	}
	for _, row := range r.Rows {
		if n := len(row.Samples[perOp]); n != o.Samples || row.Median(spansPerS) <= 0 || row.Median(failedPerOp) != 0 {
			t.Errorf("%s: %d samples: %v", row.Name, n, row.Samples)
		}
		udp := strings.Contains(row.Name, "/udp")
		if dropped := row.Samples[droppedPerOp]; !udp && len(dropped) > 0 && (dropped[0] != 0 || dropped[1] != 0) {
			t.Errorf("%s: dropped %v where every span was answered for", row.Name, dropped)
		}
		if marked := strings.Contains(strings.Join(row.Doubts, " "), "no delivery guarantee"); marked != udp {
			t.Errorf("%s: marked %v", row.Name, row.Doubts)
		}
		if batches := row.Median(batchesPerOp); row.Median(exportedOp) != batches*300 {
			t.Errorf("%s: %v spans", row.Name, row.Median(exportedOp))
		}
	}
	for _, want := range []string{"jaeger-client-go/udp", "lab/udp/header=run/services=10", "std dev", "1 batches over UDP"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the printed table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestMeanErrorAndDeviation(t *testing.T) {
	mean, sd := meanAndDeviation([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	if mean != 5 || math.Abs(sd-2.138) > 0.001 {
		t.Errorf("mean %v, deviation %v", mean, sd)
	}
	if !math.IsNaN(studentT95(0)) || studentT95(4) != 2.776 || math.Abs(studentT95(30)-2.042) > 0.01 {
		t.Errorf("t: %v %v %v", studentT95(0), studentT95(4), studentT95(30))
	}
}

// BenchmarkExporters is the same work under go test -bench, for benchstat.
func BenchmarkExporters(b *testing.B) {
	in, err := newInput(10_000, 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, a := range arms() {
		b.Run(a.name, func(b *testing.B) {
			addr := ""
			if a.hole != "" {
				black, err := startHole(os.Args[0], a.hole)
				if err != nil {
					b.Fatal(err)
				}
				defer black.close()
				addr = black.addr
			}
			s, err := a.open(b.Context(), addr, in)
			if err != nil {
				b.Fatal(err)
			}
			if err := s.batch(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.batch(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(len(in.spans))/b.Elapsed().Seconds(), spansPerS)
			if err := s.close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
