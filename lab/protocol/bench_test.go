package protocol_test

import (
	"sync/atomic"
	"testing"
	"time"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/protocol/sink"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// One worker's spans per second into a black hole that shares the machine: one trace of 11 spans
// with 10 tags a request. The figures count acknowledged spans only, and
// over UDP those that were sent.
func BenchmarkClients(b *testing.B) {
	for _, client := range protocol.Names() {
		b.Run(client, func(b *testing.B) {
			s := &sink.Sink{}
			addr := start(b, client, s)
			p, err := protocol.Get(client)
			if err != nil {
				b.Fatal(err)
			}
			var acked atomic.Int64
			c, err := p.Open(addr, protocol.Config{
				Numbering: trace.New(42, children), Load: spec.Load{TagsCount: 10}, Timeout: 30 * time.Second,
				Report: func(o record.Outcome) {
					if o.Class == record.Acked || o.Class == record.NoReply {
						acked.Add(int64(o.Spans))
					}
				},
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			seq := uint64(0)
			for b.Loop() {
				c.Send(b.Context(), protocol.Work{Seq: seq, StartUS: int64(1_000_000 + seq*width)})
				seq++
			}
			totals := c.Close(b.Context())
			b.ReportMetric(float64(acked.Load())/b.Elapsed().Seconds(), "acked-spans/s")
			b.ReportMetric(float64(totals.Bytes)/float64(max(acked.Load(), 1)), "B/span")
		})
	}
}
