// Package generators measures span generators against one black hole, in turn and again and again:
// the lab's own load node, the same frames without patching (the ceiling of any generator that
// sends them), tracegen and telemetrygen. Every generator is a process of its own; the black hole
// lives in the process that measures and counts spans without decoding them.
package generators

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"jaegerlab/bench"
	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol/sink"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/report"
)

// The work of every generator, as the original experiment's.
const (
	workers  = 10
	children = 10
	tags     = 10
	width    = children + 1
)

// Options of a benchmark.
type Options struct {
	Rounds  int           // of all generators, in turn
	Each    time.Duration // measured, after the generator is up to speed
	Results string        // folder of results
	Self    string        // path of the jaegerlab program, which is its own children
	Out     io.Writer
	Say     setup.Say
}

// Run measures all generators and writes a folder of results. The last lines that it prints are
// the two ratios.
func Run(ctx context.Context, o Options) error {
	all, settings, err := contestants(ctx, o)
	if err != nil {
		return err
	}
	folder, err := record.Create(o.Results, "generators")
	if err != nil {
		return err
	}
	r := bench.Record{Version: bench.Version, ID: folder.ID, Experiment: "generators", Started: time.Now().UTC(),
		Host: node.LocalHost(), Settings: settings, Rows: make([]bench.Row, len(all))}
	for round := range o.Rounds {
		for i, c := range all {
			r.Rows[i].Name = c.name
			o.Say("round %d of %d: %s", round+1, o.Rounds, c.name)
			if err := measure(ctx, c, o.Each, &r.Rows[i]); err != nil {
				return fmt.Errorf("measure %s: %w", c.name, err)
			}
		}
	}
	r.Ended = time.Now().UTC()
	r.Notes = []string{fmt.Sprintf("%d workers, 1 + %d spans a trace, %d tags a span; generator and black hole share %d CPUs; "+
		"medians of %d rounds of %v.", workers, children, tags, r.Host.CPUs, o.Rounds, o.Each)}
	r.Lines = ratios(r.Rows)
	doc := bench.Document(r, "Generators", columns())
	if err := bench.Save(folder, r, doc); err != nil {
		return err
	}
	if err := report.Terminal(o.Out, doc); err != nil {
		return err
	}
	fmt.Fprintln(o.Out, "report:", folder.Dir+"/"+report.FileName)
	for _, line := range r.Lines {
		fmt.Fprintln(o.Out, line)
	}
	return nil
}

// Names of the rows that the ratios are made of.
const (
	labGRPC      = "lab/otlp-grpc/traces=100"
	labHTTP      = "lab/otlp-http/traces=100"
	ceilingGRPC  = "ceiling/otlp-grpc/traces=100"
	tracegenGRPC = "tracegen/otlp-grpc"
	tracegenHTTP = "tracegen/otlp-http"
)

func ratios(rows []bench.Row) []string {
	find := func(name string) (found bench.Row) {
		for _, row := range rows {
			if row.Name == name {
				found = row
			}
		}
		return found
	}
	line := func(what, of, to string) string {
		return fmt.Sprintf("%s: %s", what, ratioText(bench.Ratio(find(of), find(to), spansPerS)))
	}
	return []string{
		line("generator ratio to tracegen over HTTP", labHTTP, tracegenHTTP),
		line("generator ratio to tracegen", labGRPC, tracegenGRPC),
		line("generator ratio to ceiling", labGRPC, ceilingGRPC),
	}
}

func ratioText(ratio float64) string {
	if math.IsNaN(ratio) {
		return "n/a"
	}
	return strconv.FormatFloat(ratio, 'f', 2, 64)
}

// Units of the samples.
const (
	spansPerS    = "spans/s"
	requestsPerS = "requests/s"
	bytesPerSpan = "B/span"
	grownMiB     = "MiB-grown"
	allocs       = "allocs/request"
)

func columns() []bench.Column {
	return []bench.Column{
		bench.MedianOf("spans", spansPerS, 0, "counted by the black hole"),
		bench.MedianOf("requests", requestsPerS, 0, "counted by the black hole"),
		bench.MedianOf("size", bytesPerSpan, 1, "bytes of the requests' bodies per span"),
		bench.MedianOf("allocations", allocs, 1, "of the sending process for one request; where it tells"),
		bench.MedianOf("memory", grownMiB, 1, "resident memory of the generator, gained while it was measured"),
	}
}

// measure starts a generator on a black hole of its own, waits until it is up to speed, and counts.
func measure(ctx context.Context, c contestant, each time.Duration, row *bench.Row) (err error) {
	hole := &sink.Sink{Count: true}
	serve := sink.OTLP
	if c.http {
		serve = sink.OTLPHTTP
	}
	if err := serve(hole); err != nil {
		return err
	}
	defer hole.Close()
	const settle = time.Second
	run, err := c.start(ctx, hole.Addr(), settle+each)
	if err != nil {
		return err
	}
	defer func() {
		figures, ended := run.end()
		if err == nil && ended != nil {
			err = ended
		}
		for unit, value := range figures {
			row.Add(unit, value)
		}
	}()
	if err := firstSpan(ctx, hole, run); err != nil {
		return err
	}
	if err := pause(ctx, settle, run); err != nil {
		return err
	}
	memory := residentMiB(run.pid)
	began, spans, requests, bytes := time.Now(), hole.Spans(), hole.Requests(), hole.Bytes()
	if err := pause(ctx, each, run); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	spans, requests, bytes = hole.Spans()-spans, hole.Requests()-requests, hole.Bytes()-bytes
	if after := residentMiB(run.pid); memory > 0 && after > 0 {
		row.Add(grownMiB, after-memory)
	}
	if spans == 0 {
		return fmt.Errorf("no span came within %v; see %s", each, run.log)
	}
	row.Add(spansPerS, float64(spans)/took)
	row.Add(requestsPerS, float64(requests)/took)
	row.Add(bytesPerSpan, float64(bytes)/float64(spans))
	return nil
}

// firstSpan waits at most half a minute.
func firstSpan(ctx context.Context, hole *sink.Sink, run *running) error {
	const patience = 30 * time.Second
	deadline := time.Now().Add(patience)
	for hole.Spans() == 0 {
		if time.Now().After(deadline) {
			return fmt.Errorf("wait for its first span: none within %v; its output ends: %s", patience, run.tail())
		}
		if err := pause(ctx, 5*time.Millisecond, run); err != nil {
			return err
		}
	}
	return nil
}

// pause waits, and notices the generator's death.
func pause(ctx context.Context, d time.Duration, run *running) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-run.done:
		return fmt.Errorf("it ended while it was measured: %v; its output ends: %s", run.exit, run.tail())
	}
}

// residentMiB is a process's resident memory; 0 where the system does not tell.
func residentMiB(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err != nil {
				return 0
			}
			return kib / 1024
		}
	}
	return 0
}
