package report

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"jaegerlab/lab/record"
)

// Percentiles of several rounds are those of all their requests together: the rounds' histograms
// are merged. A mean or median of percentiles is the percentile of nothing.

func sendToStore(run record.Run) *record.Latency { return run.SendToStore }
func request(run record.Run) *record.Latency     { return run.Request }

// merged gives the latency of all runs together; nil when one of them has none. A single run's
// is taken as it was recorded.
func merged(runs []record.Run, of func(record.Run) *record.Latency) (*record.Latency, error) {
	if len(runs) == 0 || slices.ContainsFunc(runs, func(run record.Run) bool { return of(run) == nil }) {
		return nil, nil
	}
	if len(runs) == 1 {
		return of(runs[0]), nil
	}
	var sum *hdrhistogram.Histogram
	for _, run := range runs {
		one, err := of(run).Decode()
		if err != nil {
			return nil, err
		}
		if sum == nil {
			sum = one
			continue
		}
		sum.Merge(one)
	}
	return record.NewLatency(sum)
}

// percentiles are the cells p50 and p99 of all runs together.
func (f figures) percentiles(of func(record.Run) *record.Latency, why func(record.Run) string) []Cell {
	if len(f.runs) == 0 {
		none := f.b.unknown("no run of this arm was measured to its end")
		return []Cell{none, none}
	}
	l, err := merged(f.runs, of)
	if l == nil || err != nil {
		reason := "the rounds' histograms can't be merged"
		if err == nil {
			i := slices.IndexFunc(f.runs, func(run record.Run) bool { return of(run) == nil })
			reason = why(f.runs[i])
		}
		none := f.b.unknown(reason)
		return []Cell{none, none}
	}
	return []Cell{fixed(l.P50, 1), fixed(l.P99, 1)}
}

func noRequest(record.Run) string { return "no request was answered" }
