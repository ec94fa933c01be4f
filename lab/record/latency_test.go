package record_test

import (
	"testing"

	"jaegerlab/lab/record"
)

// Rounds are merged from what is on disk, so a latency must come back as the same distribution.
func TestLatencySurvivesTheRecord(t *testing.T) {
	hist := record.NewLatencyHistogram()
	for ms := range int64(1000) {
		if err := hist.RecordValue(ms * 1000); err != nil {
			t.Fatal(err)
		}
	}
	latency, err := record.NewLatency(hist)
	if err != nil {
		t.Fatal(err)
	}
	if latency.N != 1000 || latency.P50 < 498 || latency.P50 > 501 || latency.P99 < 988 || latency.Max < 998 {
		t.Errorf("latency %+v", latency)
	}
	back, err := latency.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if !back.Equals(hist) {
		t.Errorf("decoded histogram has %d values with median %d", back.TotalCount(), back.ValueAtQuantile(50))
	}
}

// Nothing measured is null, not a latency of zero.
func TestEmptyLatencyIsAbsent(t *testing.T) {
	if latency, err := record.NewLatency(record.NewLatencyHistogram()); latency != nil || err != nil {
		t.Errorf("latency %+v, %v: want none", latency, err)
	}
	if _, err := (record.Latency{Histogram: "garbage"}).Decode(); err == nil {
		t.Error("garbage decoded without an error")
	}
}
