package protocol_test

import (
	"context"
	"testing"
	"time"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/protocol/sink"
	"jaegerlab/lab/record"
)

// Case 2: a tight loop generates far more than leaves. What is reported as acked is exactly what
// the sink took, and the rest is known to have been dropped, at every size.
func TestJaegerClientCountsDeliveriesNotIntentions(t *testing.T) {
	for _, traces := range []uint64{10, 100, 1000, 3000} {
		s := &sink.Sink{}
		c, l := open(t, "jaeger-client", start(t, "jaeger-client", s), 5*time.Second)
		for seq := range traces {
			c.Send(t.Context(), protocol.Work{Seq: seq, StartUS: int64(1000 + seq*width)})
		}
		totals := c.Close(t.Context())
		generated, acked := int64(traces*width), int64(l.spans(record.Acked))
		if totals.QueueDropped == nil || acked+*totals.QueueDropped != generated {
			t.Fatalf("acked %d + dropped %v is not the %d generated", acked, totals.QueueDropped, generated)
		}
		if totals.Queued == nil || *totals.Queued != 0 || totals.Requests != s.Requests() || totals.Bytes != s.Bytes() {
			t.Errorf("totals %+v, the sink saw %d requests of %d bytes", totals, s.Requests(), s.Bytes())
		}
		seen := map[uint64]bool{}
		for _, o := range l.outcomes {
			for index := o.First; index < o.First+uint64(o.Spans); index++ {
				if seen[index] || index >= uint64(generated) {
					t.Fatalf("span %d is reported twice or was never generated", index)
				}
				seen[index] = true
			}
		}
	}
}

// Case 2's variant: the flush has a deadline, and what was still queued then is reported.
func TestJaegerClientFlushDeadlineReportsWhatIsQueued(t *testing.T) {
	s := &sink.Sink{Answer: always(sink.Reply{Delay: time.Hour})}
	c, l := open(t, "jaeger-client", start(t, "jaeger-client", s), time.Minute)
	for seq := range uint64(20) { // 220 spans: one batch on its way, the next ones queued or dropped
		c.Send(t.Context(), protocol.Work{Seq: seq, StartUS: int64(1000 + seq*width)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	totals := c.Close(ctx)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("close took %v after a deadline of 100 ms", took)
	}
	if *totals.Queued == 0 || *totals.QueueDropped < *totals.Queued-100 {
		t.Errorf("queued %d, dropped %d: want spans that were still queued", *totals.Queued, *totals.QueueDropped)
	}
	unanswered := int64(l.spans(record.Unanswered))
	if unanswered == 0 || unanswered+*totals.QueueDropped != 20*width {
		t.Errorf("unanswered %d + dropped %d is not the %d generated", unanswered, *totals.QueueDropped, 20*width)
	}
	if l.spans(record.Acked)+l.spans(record.Refused) != 0 {
		t.Errorf("outcomes %+v: nothing was answered", l.outcomes)
	}
}
