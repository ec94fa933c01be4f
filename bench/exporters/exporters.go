// Package exporters measures what batching costs in exporters of spans: time and memory for 1, 10
// and 100 batches of 10,000 spans, as the benchmark of OpenTelemetry's .NET exporter for Jaeger
// did, for exporters in Go, the lab's own among them. Only exporting is timed, the last flush
// included; black holes are processes of their own.
package exporters

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"jaegerlab/bench"
	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/report"
)

// Options of the benchmark.
type Options struct {
	Batches []int         // per operation
	Spans   int           // per batch
	Samples int           // operations measured, each row, at least
	Least   time.Duration // short operations are measured for so long, in at most mostSamples
	Real    bool          // also export once to a real Jaeger v2
	Results string
	Self    string // path of a program that calls ServeHole when HoleEnv is set
	Out     io.Writer
	Say     setup.Say
}

const (
	services    = 10 // of the variants
	mostSamples = 30
)

// Units of the samples, of one operation.
const (
	perOp        = "ms/op"
	perSpan      = "ns/span"
	bytesPerOp   = "B/op"
	allocsPerOp  = "allocs/op"
	spansPerS    = "spans/s"
	wirePerSpan  = "wire-B/span"
	packetsPerOp = "packets/op"
	droppedPerOp = "dropped/op"
	kernelPerOp  = "kernel-drops/op"
	failedPerOp  = "failed/op"
	batchesPerOp = "batches/op"
	createdPerOp = "created/op"
	exportedOp   = "exported/op"
	storedPerOp  = "stored/op"
)

// Run measures every arm with every number of batches, writes a folder of results, and prints the
// table and what it came to.
func Run(ctx context.Context, o Options) (bench.Record, error) {
	folder, err := record.Create(o.Results, "exporters")
	if err != nil {
		return bench.Record{}, err
	}
	r := bench.Record{Version: bench.Version, ID: folder.ID, Experiment: "exporters", Started: time.Now().UTC(),
		Host: node.LocalHost(), Settings: map[string]string{
			"otel-jaeger":      "go.opentelemetry.io/otel/exporters/jaeger v1.17.0",
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
	r.Notes = []string{fmt.Sprintf("Batches of %d spans with %d tags; one warm-up batch, then %d operations a row at "+
		"least (n says how many); time is that of exporting, the last flush included; black holes on loopback are "+
		"processes of their own on the same %d CPUs.",
		o.Spans, tags, o.Samples, r.Host.CPUs)}
	if o.Real {
		rows, absent, err := realJaeger(ctx, o, single)
		if err != nil {
			return r, err
		}
		r.Rows = append(r.Rows, rows...)
		if absent != "" {
			r.Notes = append(r.Notes, "Left out: rows of a real Jaeger v2: "+absent)
		}
	}
	r.Ended = time.Now().UTC()
	r.Lines = conclusions(r.Rows)
	doc := Document(r)
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

// Document is the table of a saved record.
func Document(r bench.Record) report.Document { return bench.Document(r, "Exporters", columns()) }

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
		for began, n := time.Now(), 0; n < o.Samples || n < mostSamples && time.Since(began) < o.Least; n++ {
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
	var before counts
	var err error
	if black != nil {
		if before, err = black.settled(); err != nil {
			return err
		}
	}
	kernel, counted := protocol.ReadUDPErrors()
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

	exported := float64((batches - failed) * size)
	row.Add(batchesPerOp, float64(batches))
	row.Add(createdPerOp, float64(batches*size))
	row.Add(exportedOp, exported)
	row.Add(failedPerOp, float64(failed*size))
	row.Add(perOp, took.Seconds()*1000)
	row.Add(bytesPerOp, float64(memoryAfter.TotalAlloc-memory.TotalAlloc))
	row.Add(allocsPerOp, float64(memoryAfter.Mallocs-memory.Mallocs))
	row.Add(spansPerS, exported/took.Seconds())
	if exported > 0 {
		row.Add(perSpan, float64(took.Nanoseconds())/exported)
	}
	if failed > 0 {
		row.Doubt("FAILED: batches whose export failed; all their spans count as failed, and their time counts")
	}
	if black == nil {
		return nil
	}
	after, err := black.settled()
	if err != nil {
		return err
	}
	arrived(row, after.since(before), exported)
	if now, err := protocol.ReadUDPErrors(); black.udp && counted == nil && err == nil {
		row.Add(kernelPerOp, float64(now.Since(kernel).InErrors))
	}
	return nil
}

// arrived sets what a black hole has taken against what was exported.
func arrived(row *bench.Row, taken counts, exported float64) {
	row.Add(packetsPerOp, float64(taken.Requests))
	row.Add(droppedPerOp, max(exported-float64(taken.Spans), 0))
	if taken.Spans > 0 {
		row.Add(wirePerSpan, float64(taken.Bytes)/float64(taken.Spans))
	}
	if float64(taken.Spans) < exported {
		row.Doubt("DROPPED: spans left and did not arrive; spans/s counts what was exported, not what arrived")
	}
}
