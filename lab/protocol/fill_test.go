package protocol

import (
	"testing"

	"jaegerlab/lab/trace"
)

// BenchmarkFill is the ceiling of the senders: it patches a batch of 100 traces of 11 spans and
// sends nothing.
func BenchmarkFill(b *testing.B) {
	const traces = 100
	n := trace.New(42, 10)
	for _, w := range wires() {
		w.maxSpans = traces * n.Width
		b.Run(w.client, func(b *testing.B) {
			pool, err := w.plan(trace.Content{Tags: 10}, n.Width, traces)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			spans := 0
			for b.Loop() {
				for _, p := range pool[0] {
					p.fill(n, trace.Measured, 3, uint64(spans), 1<<49)
					spans += p.count
				}
			}
			b.ReportMetric(float64(spans)/b.Elapsed().Seconds(), "spans/s")
		})
	}
}
