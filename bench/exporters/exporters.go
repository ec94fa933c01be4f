// Package exporters measures what batching costs in exporters of spans: time and memory for 1, 10
// and 100 batches of 10,000 spans, as the benchmark of OpenTelemetry's .NET exporter for Jaeger
// did, for exporters in Go, the lab's own among them. Only exporting is timed, the last flush
// included; black holes are processes of their own.
package exporters

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"jaegerlab/bench"
	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/report"
)

// Options of the benchmark.
type Options struct {
	Batches []int // per operation
	Spans   int   // per batch
	Samples int   // operations measured, each row
	Results string
	Self    string // path of a program that calls ServeHole when HoleEnv is set
	Out     io.Writer
	Say     setup.Say
}

const services = 10 // of the variants

// Units of the samples, of one operation.
const (
	perOp        = "ms/op"
	bytesPerOp   = "B/op"
	allocsPerOp  = "allocs/op"
	spansPerS    = "spans/s"
	wirePerSpan  = "wire-B/span"
	packetsPerOp = "packets/op"
	droppedPerOp = "dropped/op"
	failedPerOp  = "failed/op"
	batchesPerOp = "batches/op"
	exportedOp   = "spans/op"
)

// Run measures every arm with every number of batches, writes a folder of results, and prints the
// table and what it came to.
func Run(ctx context.Context, o Options) (bench.Record, error) {
	folder, err := record.Create(o.Results, "exporters")
	if err != nil {
		return bench.Record{}, err
	}
	r := bench.Record{Version: bench.Version, ID: folder.ID, Experiment: "exporters", Started: time.Now().UTC(), Host: node.LocalHost(),
		Settings: map[string]string{"otel-jaeger": "go.opentelemetry.io/otel/exporters/jaeger v1.17.0",
			"jaeger-client-go": "v2.30.0", "otlp": "go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.46.0",
			"go": runtime.Version()}}
	single, err := newInput(o.Spans, 1)
	if err != nil {
		return r, err
	}
	several, err := newInput(o.Spans, services)
	if err != nil {
		return r, err
	}
	for _, part := range []struct {
		arms   []arm
		in     *input
		suffix string
	}{{arms(), single, ""}, {variants(), several, fmt.Sprintf("/services=%d", services)}} {
		for _, a := range part.arms {
			a.name += part.suffix
			o.Say("exporters: %s", a.name)
			rows, err := measure(ctx, o, a, part.in)
			if err != nil {
				return r, fmt.Errorf("measure exporter %s: %w", a.name, err)
			}
			r.Rows = append(r.Rows, rows...)
		}
	}
	r.Ended = time.Now().UTC()
	r.Notes = []string{fmt.Sprintf("Batches of %d spans with %d tags; one warm-up batch, then %d operations a row; time is that of "+
		"exporting, the last flush included; black holes on loopback are processes of their own on the same %d CPUs.",
		o.Spans, tags, o.Samples, r.Host.CPUs)}
	r.Lines = conclusions(r.Rows)
	doc := bench.Document(r, "Exporters", columns())
	if err := bench.Save(folder, r, doc); err != nil {
		return r, err
	}
	if err := report.Terminal(o.Out, doc); err != nil {
		return r, err
	}
	fmt.Fprintln(o.Out, "report:", folder.Dir+"/"+report.FileName)
	for _, line := range r.Lines {
		fmt.Fprintln(o.Out, line)
	}
	return r, nil
}

// measure opens an arm once, warms it up with one batch, and measures every number of batches.
func measure(ctx context.Context, o Options, a arm, in *input) (rows []bench.Row, err error) {
	var black *hole
	addr := ""
	if a.hole != "" {
		if black, err = startHole(o.Self, a.hole); err != nil {
			return nil, err
		}
		defer func() { err = firstOf(err, black.close()) }()
		addr = black.addr
	}
	s, err := a.open(ctx, addr, in)
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, s.close(context.WithoutCancel(ctx))) }()
	if err := s.batch(ctx); err != nil {
		return nil, fmt.Errorf("warm-up batch: %w", err)
	}
	for _, batches := range o.Batches {
		row := bench.Row{Name: fmt.Sprintf("%s/batches=%d", a.name, batches)}
		if a.udp() {
			row.Doubt("UDP: no delivery guarantee")
		}
		for range o.Samples {
			if err := ctx.Err(); err != nil {
				return rows, err
			}
			if err := sample(ctx, s, black, batches, len(in.spans), &row); err != nil {
				return rows, err
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func firstOf(err, second error) error {
	if err != nil {
		return err
	}
	return second
}

// sample measures one operation: so many batches.
func sample(ctx context.Context, s session, black *hole, batches, size int, row *bench.Row) error {
	var before, after counts
	var err error
	if black != nil {
		if before, err = black.settled(); err != nil {
			return err
		}
	}
	var memory, memoryAfter runtime.MemStats
	failed := 0
	runtime.GC()
	runtime.ReadMemStats(&memory)
	began := time.Now()
	for range batches {
		if s.batch(ctx) != nil {
			failed++
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&memoryAfter)

	spans := float64(batches * size)
	row.Add(batchesPerOp, float64(batches))
	row.Add(exportedOp, spans)
	row.Add(perOp, took.Seconds()*1000)
	row.Add(bytesPerOp, float64(memoryAfter.TotalAlloc-memory.TotalAlloc))
	row.Add(allocsPerOp, float64(memoryAfter.Mallocs-memory.Mallocs))
	row.Add(spansPerS, spans/took.Seconds())
	row.Add(failedPerOp, float64(failed))
	if failed > 0 {
		row.Doubt("batches failed: their spans are in the time, and not all of them were exported")
	}
	if black == nil {
		return nil
	}
	if after, err = black.settled(); err != nil {
		return err
	}
	taken := after.since(before)
	row.Add(packetsPerOp, float64(taken.Requests))
	row.Add(droppedPerOp, spans-float64(taken.Spans))
	if taken.Spans > 0 {
		row.Add(wirePerSpan, float64(taken.Bytes)/float64(taken.Spans))
	}
	if taken.Spans < int64(spans) {
		row.Doubt("DROPPED: spans left and did not arrive; spans/s counts what was exported, not what arrived")
	}
	return nil
}

func columns() []bench.Column {
	worst := func(title, unit, how string) bench.Column {
		return bench.Column{Column: report.Column{Title: title, How: how}, Of: func(r bench.Row) (float64, bool) {
			samples, most := r.Samples[unit], 0.0
			for _, s := range samples {
				most = max(most, s)
			}
			return most, len(samples) > 0
		}}
	}
	moment := func(title string, how string, of func(mean, sd float64, n int) float64) bench.Column {
		return bench.Column{Column: report.Column{Title: title, Unit: "ms", How: how}, Decimals: 3, Of: func(r bench.Row) (float64, bool) {
			mean, sd := meanAndDeviation(r.Samples[perOp])
			value := of(mean, sd, len(r.Samples[perOp]))
			return value, !math.IsNaN(value)
		}}
	}
	kib := bench.MedianOf("allocated", bytesPerOp, 2, "of the exporting process, per operation, in all; median")
	kib.Unit = "KB"
	inBytes := kib.Of
	kib.Of = func(r bench.Row) (float64, bool) { v, ok := inBytes(r); return v / 1024, ok }
	return []bench.Column{
		bench.MedianOf("batches", batchesPerOp, 0, "per operation"),
		bench.MedianOf("spans", exportedOp, 0, "per operation"),
		moment("mean", "of an operation", func(mean, _ float64, _ int) float64 { return mean }),
		moment("error", "half of the 95 % confidence interval of the mean (Student's t)", func(_, sd float64, n int) float64 {
			return studentT95(n-1) * sd / math.Sqrt(float64(n))
		}),
		moment("std dev", "of the operations", func(_, sd float64, _ int) float64 { return sd }),
		{Column: report.Column{Title: "n", How: "operations measured"}, Of: func(r bench.Row) (float64, bool) {
			return float64(len(r.Samples[perOp])), true
		}},
		kib,
		bench.MedianOf("allocations", allocsPerOp, 0, "per operation; median"),
		bench.MedianOf("rate", spansPerS, 0, "spans exported per second; median"),
		bench.MedianOf("wire", wirePerSpan, 1, "bytes of payload per span that arrived; n/a in memory"),
		bench.MedianOf("packets", packetsPerOp, 0, "packets or requests that arrived, per operation; n/a in memory"),
		worst("dropped", droppedPerOp, "spans that left and did not arrive, the worst operation; n/a in memory"),
		worst("failed", failedPerOp, "batches that the exporter said it could not export, the worst operation"),
	}
}

// meanAndDeviation of samples; the deviation of a sample (n - 1).
func meanAndDeviation(samples []float64) (mean, deviation float64) {
	for _, s := range samples {
		mean += s / float64(len(samples))
	}
	for _, s := range samples {
		deviation += (s - mean) * (s - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(samples)-1))
}

// studentT95 is the two-sided 95 % quantile of Student's t.
func studentT95(freedom int) float64 {
	table := []float64{math.NaN(), 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
		2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086}
	switch {
	case freedom < 1:
		return math.NaN()
	case freedom < len(table):
		return table[freedom]
	}
	return 1.96 + 2.4/float64(freedom) // within 0.2 % from 21 on
}

// conclusions are the figures that the experiment is about.
func conclusions(rows []bench.Row) []string {
	find := func(name string) (found bench.Row) {
		for _, row := range rows {
			if row.Name == name {
				found = row
			}
		}
		return found
	}
	var lines []string
	for _, batches := range []int{1, 10, 100} {
		own, client := find(fmt.Sprintf("lab/udp/batches=%d", batches)), find(fmt.Sprintf("jaeger-client-go/udp/batches=%d", batches))
		if own.Name == "" || client.Name == "" {
			continue
		}
		lines = append(lines, fmt.Sprintf("%d batches over UDP: the lab's exporter allocates %.2f KB per operation, jaeger-client-go %.0f KB; "+
			"spans/s ratio %.1f; bytes on the wire ratio %.3f", batches, own.Median(bytesPerOp)/1024, client.Median(bytesPerOp)/1024,
			own.Median(spansPerS)/client.Median(spansPerS), own.Median(wirePerSpan)/client.Median(wirePerSpan)))
	}
	return lines
}
