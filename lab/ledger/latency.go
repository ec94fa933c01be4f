package ledger

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"jaegerlab/lab/record"
)

func newLatency(h *hdrhistogram.Histogram) *record.Latency {
	if h.TotalCount() == 0 {
		return nil
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil
	}
	return &record.Latency{
		N:         h.TotalCount(),
		P50:       float64(h.ValueAtQuantile(50)) / 1000,
		P99:       float64(h.ValueAtQuantile(99)) / 1000,
		Max:       float64(h.Max()) / 1000,
		Histogram: string(text),
	}
}
