package exporters

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"jaegerlab/bench"
	"jaegerlab/lab/solo"
	"jaegerlab/lab/trace"
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
	o := Options{Batches: []int{1, 2}, Spans: 300, Samples: 2, Results: t.TempDir(), Self: os.Args[0], Out: &out,
		Say: t.Logf}
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
		if batches := row.Median(batchesPerOp); row.Median(exportedOp) != batches*300 ||
			row.Median(createdPerOp) != batches*300 {
			t.Errorf("%s: %v spans", row.Name, row.Median(exportedOp))
		}
	}
	for _, want := range []string{"jaeger-client-go/udp", "lab/udp/header=run/services=10", "std dev",
		"1 batches over UDP", "exporter allocation KB/op: 0.00/0.00 at 1, ", "exporter ratio to jaeger-client-go UDP: ",
		"wire bytes ratio: 0."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the printed table lacks %q:\n%s", want, out.String())
		}
	}
}

// Goal: what a real Jaeger v2 stored is in the row, span by span: over HTTP all of it; over UDP
// what lacks has no guarantee, and the kernel's counter is there to explain it.
func TestIntegrationRealJaeger(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, needs time: not with -short")
	}
	in, err := newInput(500, 1)
	if err != nil {
		t.Fatal(err)
	}
	rows, absent, err := realJaeger(t.Context(), Options{Say: t.Logf}, in)
	if err != nil {
		t.Fatal(err)
	}
	if absent != "" {
		t.Skip("SKIPPED, needs a built program: " + absent)
	}
	for _, row := range rows {
		text := strings.Join(append(row.Notes, row.Doubts...), "\n")
		t.Logf("%s: %s", row.Name, text)
		if strings.Contains(row.Name, "/udp/") {
			if !strings.Contains(text, "no delivery guarantee") || !strings.Contains(text, "sent without reply") {
				t.Errorf("%s is not marked: %s", row.Name, text)
			}
			if lost := row.Samples[kernelPerOp]; row.Median(storedPerOp) < 500 && len(lost) > 0 && lost[0] == 0 {
				t.Errorf("%s: %v stored, and the kernel dropped nothing", row.Name, row.Samples)
			}
			continue
		}
		if row.Median(storedPerOp) != 500 || !strings.Contains(text, "ledger whole: ") {
			t.Errorf("%s: %s", row.Name, text)
		}
	}
	if len(rows) != 8 {
		t.Errorf("%d rows, want 8", len(rows))
	}
}

// Planted: a span that lacks, one that differs, one that is there twice and one of nobody.
func TestStoredSpansAreMatched(t *testing.T) {
	in, err := newInput(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	of := func(i int) (s solo.Span) {
		w := in.spans[i]
		parent := w.Parent().SpanID()
		s = solo.Span{Service: "jaegerlab-000000", Operation: w.Name(), StartUS: w.StartTime().UnixMicro(), DurationUS: 1,
			Parent: binary.BigEndian.Uint64(parent[:])}
		s.ID.Span = uint64(1<<62 | i)
		for _, kv := range w.Attributes() {
			s.Tags = append(s.Tags, trace.Tag{Key: string(kv.Key), Value: kv.Value.AsString()})
		}
		return s
	}
	other, stray := of(1), of(2)
	other.Tags[3].Value, stray.ID.Span = "x", 77
	var got taken
	got.match(in.spans, []solo.Span{of(0), other, of(2), of(2), stray})
	if want := (taken{equal: 2, differing: 1, foreign: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Case 46: a slow exporter of which every tenth call fails, at several batch sizes: spans that
// failed are no exported ones, the time is that of exporting, and the row is marked.
func TestSlowAndFailingExportersAreCountedHonestly(t *testing.T) {
	for _, size := range []int{1, 64, 512, 8192} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			s := session{batch: func(context.Context) error {
				time.Sleep(5 * time.Millisecond) // a bubble's clock
				if calls++; calls%10 == 0 {
					return errors.New("planted")
				}
				return nil
			}}
			row := bench.Row{Name: "stub"}
			if err := sample(t.Context(), s, nil, 20, size, &row); err != nil {
				t.Fatal(err)
			}
			all, good := float64(20*size), float64(18*size)
			if row.Median(createdPerOp) != all || row.Median(exportedOp) != good || row.Median(failedPerOp) != all-good {
				t.Errorf("size %d: %v", size, row.Samples)
			}
			if row.Median(perOp) != 100 || row.Median(spansPerS) != good/0.1 || row.Median(perSpan) != 1e8/good {
				t.Errorf("size %d: time is not that of exported spans: %v", size, row.Samples)
			}
			if !strings.Contains(strings.Join(row.Doubts, " "), "FAILED") {
				t.Errorf("size %d: marked %v", size, row.Doubts)
			}
		})
	}
}

// Case 46: with a queue of 2,048 before a slow exporter, a batch is over when its last span has
// been exported, not when it is in the queue; a failing call makes the batch a failed one.
func TestTheLastFlushIsInTheTime(t *testing.T) {
	for _, size := range []int{1, 64, 512, 8192} {
		synctest.Test(t, func(t *testing.T) {
			in, err := newInput(size, 1)
			if err != nil {
				t.Fatal(err)
			}
			stub := &slow{}
			s := batchTwice(stub, in)
			for n := range 3 {
				stub.fail = n == 2
				began := time.Now()
				if err := s.batch(t.Context()); (err != nil) != stub.fail {
					t.Errorf("size %d: %v, planted a failure: %v", size, err, stub.fail)
				}
				calls := (size + 511) / 512
				if took := time.Since(began); stub.spans != (n+1)*size || took != time.Duration(calls)*5*time.Millisecond {
					t.Errorf("size %d: %d spans exported when batch %d is over, after %v", size, stub.spans, n, took)
				}
			}
			if err := s.close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// slow takes 5 ms a call.
type slow struct {
	spans int
	fail  bool
}

func (s *slow) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	time.Sleep(5 * time.Millisecond) // a bubble's clock
	s.spans += len(spans)
	if s.fail {
		return errors.New("planted")
	}
	return nil
}

func (s *slow) Shutdown(context.Context) error { return nil }

// Spans that left and did not arrive mark their row.
func TestDropsAreMarked(t *testing.T) {
	var row bench.Row
	arrived(&row, counts{Requests: 3, Bytes: 700, Spans: 70}, 100)
	if row.Median(droppedPerOp) != 30 || row.Median(wirePerSpan) != 10 || len(row.Doubts) != 1 {
		t.Errorf("%+v", row)
	}
}

// A ratio of rows of which one lost spans on the way says so before it.
func TestRatiosOfRowsWithDropsSaySo(t *testing.T) {
	rows := []bench.Row{{Name: "jaeger-client-go/udp/batches=1"}, {Name: "lab/udp/batches=1"}}
	for i := range rows {
		rows[i].Add(batchesPerOp, 1)
		rows[i].Add(createdPerOp, 100)
		rows[i].Add(spansPerS, float64(10+90*i))
		rows[i].Add(droppedPerOp, 0)
	}
	if text := strings.Join(conclusions(rows), "\n"); strings.Contains(text, "DROPPED") {
		t.Errorf("nothing was dropped: %s", text)
	}
	rows[1].Add(droppedPerOp, 40)
	if text := strings.Join(conclusions(rows), "\n"); !strings.Contains(text, "of lab/udp/batches=1 up to 40 of 100 did not arrive") {
		t.Errorf("40 of 100 spans were dropped: %s", text)
	}
}

func TestMeanErrorAndDeviation(t *testing.T) {
	mean, sd := meanAndDeviation([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	if mean != 5 || math.Abs(sd-2.138) > 0.001 {
		t.Errorf("mean %v, deviation %v", mean, sd)
	}
	if !math.IsNaN(studentT95(0)) || studentT95(4) != 2.776 || math.Abs(studentT95(21)-2.0796) > 0.0005 {
		t.Errorf("t: %v %v %v", studentT95(0), studentT95(4), studentT95(21))
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
