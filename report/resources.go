package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// resources is one row for each node of each run, from its cgroup.
func (b *builder) resources(r record.Record, rounds bool) {
	b.begin("Resources", runColumns(rounds,
		colNode, colCPU, colThrottled, colMemory, colPeak, colOOM, colLimits, colInForce)...)
	b.table().Detail = rounds // one line a node and round is too much for a terminal
	for _, run := range r.Runs {
		for _, n := range run.Nodes {
			name := text(n.Name)
			if n.Exit != "" {
				name = b.note(name, n.Name+" ended in the run: "+firstLine(n.Exit))
			}
			noCgroup := "no cgroup of the node could be read for it"
			if unseen(run, n) {
				noCgroup = ofTarget
			}
			b.row(append(append(runCells(run, rounds), name,
				b.number(n.CPUSeconds, 1, noCgroup), b.number(n.ThrottledS, 1, noCgroup),
				b.mebibytes(n.MemoryBytes, noCgroup), b.mebibytes(n.MemoryPeakBytes, noCgroup),
				b.count(n.OOMKills, noCgroup)), b.limitCells(run, n)...)...)
		}
	}
}

func (b *builder) mebibytes(bytes *int64, why string) Cell {
	if bytes == nil {
		return b.unknown(why)
	}
	return fixed(float64(*bytes)/(1<<20), 0)
}

func (b *builder) inForce(n record.Node) Cell {
	switch {
	case limitsText(n.Asked) == noLimits:
		return text("-")
	case n.Enforced:
		return text("yes")
	case n.InForce == nil:
		return b.note(text("not enforced"), "limits could not be set or read back on this machine: the node ran without them")
	}
	return b.note(text("NO"), "limits in force instead: "+limitsText(*n.InForce))
}

const noLimits = "none"

// limitsText spells limits in one line: "1,536 MiB, 512 shares on CPUs 0 1".
func limitsText(l spec.Limits) string {
	var parts []string
	if l.MemoryBytes > 0 {
		parts = append(parts, fixed(float64(l.MemoryBytes)/(1<<20), 0).Text+" MiB")
	}
	if l.CPUs > 0 {
		parts = append(parts, strconv.FormatFloat(l.CPUs, 'f', -1, 64)+" CPUs")
	}
	if l.CPUShares > 0 {
		parts = append(parts, fmt.Sprintf("%d shares", l.CPUShares))
	}
	if len(l.CPUSet) > 0 {
		cpus := make([]string, len(l.CPUSet))
		for i, cpu := range l.CPUSet {
			cpus[i] = strconv.Itoa(cpu)
		}
		parts = append(parts, "on CPUs "+strings.Join(cpus, " "))
	}
	if len(parts) == 0 {
		return noLimits
	}
	return strings.Join(parts, ", ")
}

// timing is what else is known of each run.
func (b *builder) timing(r record.Record, rounds bool) {
	b.begin("Load and timing", runColumns(rounds,
		colWindow, colStoredInWindow, colSavedInWindow, colRequests, colRetries, colLoadCPU,
		colRequestP50, colRequestP99, colStatements, colCompactions, colStart, colReadBack)...)
	b.table().Detail = true
	for _, run := range r.Runs {
		b.row(append(runCells(run, rounds), b.timingCells(run)...)...)
	}
}

func (b *builder) timingCells(run record.Run) []Cell {
	const early = "the run ended before it was known"
	var p50, p99 *float64
	if run.Request != nil {
		p50, p99 = &run.Request.P50, &run.Request.P99
	}
	ended := func(c Cell) Cell { // zeros of a run that ended before its load mean nothing
		if run.WindowS <= 0 {
			return b.unknown(early)
		}
		return c
	}
	return []Cell{
		ended(fixed(run.WindowS, 1)),
		b.count(run.StoredInWindow, byWriteTime.why(run)),
		b.count(run.SavedInWindowCounter, byCounter.why(run)),
		ended(whole(run.Sent.Requests)),
		ended(whole(run.Sent.Retries)),
		ended(fixed(run.Sent.CPUSeconds, 1)),
		b.number(p50, 1, "no request was answered"),
		b.number(p99, 1, "no request was answered"),
		b.number(run.WriteStatementsPerSpan, 1, noCQL),
		b.number(run.Backlog, 0, "no database node says how many it has left"),
		ended(fixed(run.StartToLoadS, 1)),
		b.number(run.ReadBackS, 1, early),
	}
}

const noCQL = "this store takes no CQL, or the collector has no such counters"

// writes compares what a span costs with what it should, and writes in flight with what can be.
func (b *builder) writes(r record.Record, rounds bool) {
	b.begin("Writes", runColumns(rounds, colPredicted, colStatements, colInFlight, colWriters, colWriteMS, colCeiling)...)
	b.table().Detail = true
	for _, run := range r.Runs {
		w := writesOf(run)
		if w.inFlight == nil && run.WriteStatementsPerSpan == nil {
			continue
		}
		writers := b.unknown("the collector's settings don't say how many spans it writes at once")
		if w.writers != nil {
			writers = whole(int64(*w.writers))
		}
		const noLatency = "the collector has no counter of write latencies, or the drain did not end"
		b.row(append(runCells(run, rounds), b.number(w.predicted, 1,
			"the client or the settings decide which tags are indexed"),
			b.number(run.WriteStatementsPerSpan, 1, noCQL), b.number(w.inFlight, 2, noLatency), writers,
			b.number(w.latencyMS, 2, noLatency), b.number(w.ceiling, 0, noLatency))...)
	}
}

// writesByTable says where the writes of a span go, and where they should.
func (b *builder) writesByTable(r record.Record, rounds bool) {
	b.begin("Writes by table", runColumns(rounds, colTable, colPredicted, colStatements)...)
	b.table().Detail = true
	for _, run := range r.Runs {
		measured, predicted := measuredByTable(run), predictedByTable(run)
		for _, table := range slices.Sorted(maps.Keys(measured)) {
			var expected *float64
			if n, ok := predicted[table]; ok {
				expected = &n
			}
			n := measured[table]
			b.row(append(runCells(run, rounds), text(table), b.number(expected, 2, "nothing of it is written for each span, "+
				"or the client or the settings decide"), b.number(&n, 2, noCQL))...)
		}
	}
}

// counters are direct reads of the collector's own.
func (b *builder) counters(r record.Record, rounds bool) {
	b.begin("Collector's counters", runColumns(rounds, colCounter, colMetric, colGained)...)
	b.table().Detail = true
	for _, run := range r.Runs {
		for _, c := range run.Counters {
			metric := text(c.Metric)
			if c.Metric == "" {
				metric = Cell{Text: "-"}
			}
			b.row(append(runCells(run, rounds), text(c.Name), metric,
				b.number(c.Value, 0, "this version of the collector has no such counter: "+c.Name))...)
		}
	}
}
