package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

const phases = 2 // trace.Measured and trace.Warmup

// worker sends the traces of one worker number, phase by phase.
type worker struct {
	run       *run
	number    uint32
	clients   [phases]protocol.Client // nil: this phase is not run
	generated [phases]atomic.Uint64   // spans, before they are sent

	mu       sync.Mutex // clients with a queue report from their own goroutine
	journals [phases]journal
	totals   [phases]protocol.Totals
}

// work runs the phases in order and leaves the clients closed.
func (w *worker) work(ctx context.Context) {
	for _, phase := range []trace.Phase{trace.Warmup, trace.Measured} {
		if w.clients[phase] == nil {
			continue
		}
		w.loop(ctx, phase)
		totals := w.clients[phase].Close(ctx)
		w.mu.Lock()
		w.totals[phase] = totals
		w.mu.Unlock()
	}
}

// loop sends the batches of a phase: back to back, or when the schedule says so.
func (w *worker) loop(ctx context.Context, phase trace.Phase) {
	traces := w.run.job.traces()
	spans := w.run.job.Numbering.Width * traces
	for seq := uint64(0); ; seq += uint64(traces) {
		intended, due := w.next(ctx, phase, spans)
		if !due {
			return
		}
		w.generated[phase].Add(uint64(spans))
		w.run.generated(phase, spans)
		w.clients[phase].Send(ctx, protocol.Work{Seq: seq, StartUS: w.run.clock.take(spans), Intended: intended})
	}
}

// next waits until the worker's next batch is due and says when that was, in nanoseconds since the
// epoch; 0 in a closed loop, where it is due at once. false = the phase is over. Nothing is
// skipped: who comes late takes the oldest batch that is due.
func (w *worker) next(ctx context.Context, phase trace.Phase, spans int) (intended int64, due bool) {
	over := w.run.over[phase]
	select {
	case <-over:
		return 0, false
	case <-ctx.Done():
		return 0, false
	default:
	}
	s := w.run.schedule
	if s == nil {
		return 0, true
	}
	after := s.due(w.run.arrivals[phase].Add(1) - 1)
	start := w.run.started(phase)
	if wait := time.Until(start.Add(after)); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		w.run.watch.idle.Add(1)
		defer w.run.watch.idle.Add(-1)
		select {
		case <-timer.C:
		case <-over:
			return 0, false
		case <-ctx.Done():
			return 0, false
		}
	}
	at := start.Add(after)
	if phase == trace.Measured {
		w.run.watch.late(time.Since(at), spans)
	}
	return at.UnixNano(), true
}

// report keeps one outcome. Outcomes of one request follow one another and share its send time,
// so its latency is counted once.
func (w *worker) report(o record.Outcome) {
	var code uint64
	code, o.Code = w.run.codes.number(o.Code)
	w.mu.Lock()
	previous := w.journals[o.Phase].previous
	w.journals[o.Phase].add(o, code, &w.run.shelf)
	w.mu.Unlock()
	w.run.observe(o, o.Sent != previous.Sent)
}
