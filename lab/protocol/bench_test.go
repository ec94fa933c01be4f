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
// with 10 tags a request. The jaeger-client's figure counts acknowledged spans only.
func BenchmarkClients(b *testing.B) {
	for _, client := range protocol.Names() {
		b.Run(client, func(b *testing.B) {
			s := &sink.Sink{}
			serve := sink.HTTP
			if client == "otlp-grpc" {
				serve = sink.OTLP
			}
			if err := serve(s); err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			p, err := protocol.Get(client)
			if err != nil {
				b.Fatal(err)
			}
			var acked atomic.Int64
			c, err := p.Open(s.Addr(), protocol.Config{
				Numbering: trace.New(42, children), Load: spec.Load{TagsCount: 10}, Timeout: 30 * time.Second,
				Report: func(o record.Outcome) {
					if o.Class == record.Acked {
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
				c.Send(b.Context(), seq, int64(1_000_000+seq*width))
				seq++
			}
			totals := c.Close(b.Context())
			b.ReportMetric(float64(acked.Load())/b.Elapsed().Seconds(), "acked-spans/s")
			b.ReportMetric(float64(totals.Bytes)/float64(max(acked.Load(), 1)), "B/span")
		})
	}
}
