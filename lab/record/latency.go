package record

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// NewLatencyHistogram counts microseconds up to an hour with three significant digits, as every
// latency of the lab, so that any two can be merged.
func NewLatencyHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 3_600_000_000, 3) }

// CountLatency adds a time in nanoseconds: at least a microsecond, at most what the histogram holds.
func CountLatency(hist *hdrhistogram.Histogram, ns int64) {
	us := max(ns/int64(time.Microsecond), 1)
	_ = hist.RecordValue(min(us, hist.HighestTrackableValue()))
}

// NewLatency turns a histogram of microseconds into what a record holds; nil when it is empty,
// since nothing was measured then.
func NewLatency(hist *hdrhistogram.Histogram) (*Latency, error) {
	if hist == nil || hist.TotalCount() == 0 {
		return nil, nil
	}
	encoded, err := hist.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode a latency histogram of %d values: %w", hist.TotalCount(), err)
	}
	const usPerMS = 1000
	return &Latency{
		N:         hist.TotalCount(),
		P50:       float64(hist.ValueAtQuantile(50)) / usPerMS,
		P99:       float64(hist.ValueAtQuantile(99)) / usPerMS,
		Max:       float64(hist.Max()) / usPerMS,
		Histogram: string(encoded),
	}, nil
}

// Decode gives back the histogram, in microseconds.
func (l Latency) Decode() (*hdrhistogram.Histogram, error) {
	hist, err := hdrhistogram.Decode([]byte(l.Histogram))
	if err != nil {
		return nil, fmt.Errorf("decode the latency histogram of a record: %w", err)
	}
	return hist, nil
}
