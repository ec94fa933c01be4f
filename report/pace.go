package report

import (
	"fmt"

	"jaegerlab/lab/record"
)

var (
	colRate       = Column{Title: "rate", Left: true, How: "spans/s that RATE asked for; closed loop where it asked for none."}
	colOffered    = Column{Title: "offered", Unit: "spans", How: "due within the window; a closed loop offers nothing."}
	colBegun      = Column{Title: "sent", Unit: "spans", How: "whose request began within the window."}
	colAchieved   = Column{Title: "achieved", Unit: "spans/s", How: "sent / window."}
	colLate       = Column{Title: "late", Unit: "spans", How: "sent more than 10 ms after they were due."}
	colDueP99     = Column{Title: "response p99", Unit: "ms", How: "from when a request was due to its answer, of all workers' requests together; >= where others that were due had no answer."}
	colServiceP99 = Column{Title: "service p99", Unit: "ms", How: "from when a request was sent to its answer: it hides what waited to be sent."}
	colOwnCPU     = Column{Title: "own CPU", Unit: "%", How: "of the CPUs that the load node may use."}
	colLag        = Column{Title: "lag p99", Unit: "ms", How: "how late a timer of 10 ms ran in the load node."}
	colFree       = Column{Title: "free slots", How: "workers that waited for their next request to be due, on average."}
	colBound      = Column{Title: "bound by", Left: true, How: "generator-bound: the load node itself held the load back, so nothing " +
		"follows for the target. target-bound: every worker waited for answers, or the client's queue was full. rate reached: nothing did."}
)

// pace shows what was asked of the load and whose limit it met; only where a rate was asked for or
// the generator was the limit.
func (b *builder) pace(r record.Record, rounds bool) {
	b.begin("Pace", runColumns(rounds, colRate, colOffered, colBegun, colAchieved, colLate, colDueP99, colServiceP99, colOwnCPU,
		colLag, colFree, colBound)...)
	for _, run := range r.Runs {
		p := run.Sent.Pace
		if p == nil || p.Rate == "" && p.Bound != record.GeneratorBound {
			continue
		}
		rate, closed := text(p.Rate), "a closed loop offers nothing: workers send back to back"
		if p.Rate == "" {
			rate = text("closed loop")
		}
		bound := b.note(text(p.Bound), p.Why)
		if u := p.UDP; u != nil && u.InErrors > 0 {
			bound = b.note(bound, udpText(*u))
		}
		var cpu *float64
		if p.CPUShare != nil {
			percent := *p.CPUShare * 100
			cpu = &percent
		}
		b.row(append(runCells(run, rounds), rate, b.count(p.OfferedSpans, closed), whole(p.BegunSpans), fixed(p.AchievedPerS, 1),
			b.count(p.LateSpans, closed), b.dueP99(run), b.p99(p.Service), b.number(cpu, 0, "this system does not tell"),
			b.number(p.LagP99MS, 1, "not sampled"), b.number(p.FreeSlots, 1, closed), bound)...)
	}
}

func (b *builder) p99(l *record.Latency) Cell {
	if l == nil {
		return b.unknown("no request was answered")
	}
	return fixed(l.P99, 1)
}

// dueP99 says at least where requests that were due have no place in the distribution: those that were never
// sent waited longest of all.
func (b *builder) dueP99(run record.Run) Cell {
	c, p := b.p99(run.Request), run.Sent.Pace
	if p.OfferedSpans == nil || run.Request == nil {
		return c
	}
	if run.Sent.QueueDropped != nil {
		return b.unknown("the client's own queue makes the requests: when their spans were due is not known")
	}
	never, silent := *p.OfferedSpans-p.BegunSpans, run.Ledger.Unanswered
	last := int64(run.Load.SpansCount+1) * int64(max(run.Load.TracesPerRequest, 1)) // may be due as the window ends
	if float64(never-last+silent) <= withoutPlace*float64(*p.OfferedSpans) {
		return c
	}
	return b.note(bound(">=", c), fmt.Sprintf("at least: of %s spans that were due, %s were not sent before the window ended and "+
		"%s were unanswered; they waited longer than can be told", whole(*p.OfferedSpans).Text, whole(never).Text, whole(silent).Text))
}

// withoutPlace is the share of what was offered that moves a 99th percentile by next to nothing.
const withoutPlace = 0.001

func udpText(u record.UDPErrors) string {
	return "UDP: the kernel dropped " + whole(u.InErrors).Text + " packets before any socket, of these " + whole(u.ReceiveFull).Text +
		" because the receiver's buffer was full; counted in the load node's network namespace"
}
