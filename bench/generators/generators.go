// Package generators measures span generators against one black hole, in turn and again and again:
// the lab's own load node, the same frames without patching (the ceiling of any generator that
// sends them), tracegen and telemetrygen. Every generator is a process of its own; the black hole
// lives in the process that measures and counts spans without decoding them.
package generators

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
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
	Rounds  int            // of all generators, in turn
	Each    time.Duration  // measured, after the generator is up to speed
	Only    *regexp.Regexp // rows to measure; nil = all
	Results string         // folder of results
	Self    string         // path of the jaegerlab program, which is its own children
	Out     io.Writer
	Say     setup.Say
}

// Run measures all generators and writes a folder of results. The last lines that it prints are
// the two ratios.
func Run(ctx context.Context, o Options) error {
	all, err := chosen(contestants(o.Self, nil), o.Only)
	if err != nil {
		return err
	}
	paths, settings, err := buildPeers(ctx, all, o.Say)
	if err != nil {
		return err
	}
	if all, err = chosen(contestants(o.Self, paths), o.Only); err != nil {
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
			r.Rows[i].Name, r.Rows[i].Notes = c.name, c.notes
			o.Say("round %d of %d: %s", round+1, o.Rounds, c.name)
			if err := measure(ctx, c, o.Each, &r.Rows[i]); err != nil {
				return fmt.Errorf("measure %s: %w", c.name, err)
			}
		}
	}
	r.Ended = time.Now().UTC()
	r.Notes = []string{fmt.Sprintf("%d workers, 1 + %d spans a trace, %d tags a span; generator and black hole share "+
		"%d CPUs; medians of %d rounds of %v.", workers, children, tags, r.Host.CPUs, o.Rounds, o.Each)}
	r.Lines = ratios(r.Rows)
	doc := Document(r)
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

// Document is the table of a saved record.
func Document(r bench.Record) report.Document { return bench.Document(r, "Generators", columns()) }

func chosen(all []contestant, only *regexp.Regexp) ([]contestant, error) {
	if only == nil {
		return all, nil
	}
	names := strings.Join(names(all), ", ")
	all = slices.DeleteFunc(slices.Clone(all), func(c contestant) bool { return !only.MatchString(c.name) })
	if len(all) == 0 {
		return nil, fmt.Errorf("measure generators: no row matches --only=%q; there are %s", only, names)
	}
	return all, nil
}

func names(all []contestant) (names []string) {
	for _, c := range all {
		names = append(names, c.name)
	}
	return names
}

// Names of the rows that the ratios are made of; those of a peer begin so.
const (
	labGRPC      = "lab/otlp-grpc/traces=100"
	labHTTP      = "lab/otlp-http/traces=100"
	ceilingGRPC  = "ceiling/otlp-grpc/traces=100"
	tracegenGRPC = "tracegen/otlp-grpc"
	tracegenHTTP = "tracegen/otlp-http"
)

// ratios compare with a peer's fastest row: whoever asks how much faster something is wants the
// peer at its best.
func ratios(rows []bench.Row) []string {
	line := func(what, of, to string) string {
		peer := fastest(rows, to)
		return fmt.Sprintf("%s: %s", what, ratioText(bench.Ratio(fastest(rows, of), peer, spansPerS)))
	}
	return []string{
		fmt.Sprintf("tracegen's fastest rows, which the ratios are to: %s, %s",
			cmp.Or(fastest(rows, tracegenHTTP).Name, "n/a"), cmp.Or(fastest(rows, tracegenGRPC).Name, "n/a")),
		line("generator ratio to tracegen over HTTP", labHTTP, tracegenHTTP),
		line("generator ratio to tracegen", labGRPC, tracegenGRPC),
		line("generator ratio to ceiling", labGRPC, ceilingGRPC),
	}
}

// fastest is the row of most spans per second among those whose names begin so.
func fastest(rows []bench.Row, prefix string) (found bench.Row) {
	for _, row := range rows {
		if row.Name != prefix && !strings.HasPrefix(row.Name, prefix+"/") {
			continue
		}
		if found.Name == "" || row.Median(spansPerS) > found.Median(spansPerS) {
			found = row
		}
	}
	return found
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
	startMiB     = "MiB-at-start"
	endMiB       = "MiB-at-end"
	allocs       = "allocs/request"
)

func columns() []bench.Column {
	return []bench.Column{
		bench.MedianOf("spans", spansPerS, 0, "counted by the black hole"),
		bench.MedianOf("requests", requestsPerS, 0, "counted by the black hole"),
		bench.MedianOf("size", bytesPerSpan, 1, "bytes of the requests' bodies per span"),
		bench.MedianOf("allocations", allocs, 1, "of the sending process for one request; where it tells"),
		memory("memory at start", startMiB, "resident memory of the generator when its measuring began"),
		memory("memory at end", endMiB, "the same when it ended; the lab's load node keeps every outcome for the ledger"),
	}
}

func memory(title, unit, how string) bench.Column {
	c := bench.MedianOf(title, unit, 1, how)
	c.Unit = "MiB"
	return c
}

// measure starts a generator on a black hole of its own, waits until it is up to speed, and counts.
func measure(ctx context.Context, c contestant, each time.Duration, row *bench.Row) (err error) {
	hole := &sink.Sink{Count: true}
	if err := hole.Open(c.port); err != nil {
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
	atStart := residentMiB(run.pid)
	began, spans, requests, bytes := time.Now(), hole.Spans(), hole.Requests(), hole.Bytes()
	if err := pause(ctx, each, run); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	spans, requests, bytes = hole.Spans()-spans, hole.Requests()-requests, hole.Bytes()-bytes
	if atEnd := residentMiB(run.pid); atStart > 0 && atEnd > 0 {
		row.Add(startMiB, atStart)
		row.Add(endMiB, atEnd)
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
