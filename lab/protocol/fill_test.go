package protocol

import (
	"testing"

	"jaegerlab/lab/trace"
)

// BenchmarkFill is the ceiling of the senders: it patches one trace of 11 spans and sends nothing.
func BenchmarkFill(b *testing.B) {
	n := trace.New(42, 10)
	parts, err := plan(encodeOTLP, "otlp-grpc", trace.Content{Tags: 10}, n.Width)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	seq := uint64(0)
	for b.Loop() {
		parts[0].fill(n, trace.Measured, 3, seq*uint64(n.Width), int64(seq))
		seq++
	}
	b.ReportMetric(float64(seq)*float64(n.Width)/b.Elapsed().Seconds(), "spans/s")
}
