package load

import (
	"context"
	"sync"
	"sync/atomic"

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

// loop is the closed loop: the next batch starts when the client is done with this one.
func (w *worker) loop(ctx context.Context, phase trace.Phase) {
	traces := max(w.run.job.Load.TracesPerRequest, 1)
	spans := w.run.job.Numbering.Width * traces
	over := w.run.over[phase]
	for seq := uint64(0); ; seq += uint64(traces) {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		default:
		}
		w.generated[phase].Add(uint64(spans))
		w.run.generated(phase, spans)
		w.clients[phase].Send(ctx, protocol.Work{Seq: seq, StartUS: w.run.clock.take(spans)})
	}
}

// report keeps one outcome. Outcomes of one request follow one another and share its send time,
// so its latency is counted once.
func (w *worker) report(o record.Outcome) {
	var code uint64
	code, o.Code = w.run.codes.number(o.Code)
	w.mu.Lock()
	previous := w.journals[o.Phase].previous
	w.journals[o.Phase].add(o, code)
	w.mu.Unlock()
	w.run.observe(o, o.Sent != previous.Sent)
}
