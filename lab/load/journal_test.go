package load

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// A packed journal gives back every outcome, whatever the order, gaps and times.
func TestJournalGivesBackEveryOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) record.Outcome {
			return record.Outcome{
				Phase: trace.Warmup, Worker: 9,
				First: rapid.Uint64Max(trace.MaxIndex).Draw(t, "first"), Spans: rapid.Uint32().Draw(t, "spans"),
				Intended: rapid.Int64().Draw(t, "intended"), Sent: rapid.Int64().Draw(t, "sent"),
				Answered: rapid.Int64().Draw(t, "answered"),
				Attempts: uint16(rapid.IntRange(0, math.MaxUint16).Draw(t, "attempts")),
				Class:    record.Class(rapid.IntRange(0, int(record.NoReply)).Draw(t, "class")),
				Code:     rapid.SampledFrom([]string{"", "UNAVAILABLE", "HTTP 503: busy"}).Draw(t, "code"),
			}
		}), 0, 20).Draw(t, "outcomes")
		var j journal
		codes := newCodebook()
		for _, o := range want {
			number, _ := codes.number(o.Code)
			j.add(o, number)
		}
		got, err := unpack(nil, slices.Concat(j.chunks()...), trace.Warmup, 9, codes.list())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || j.outcomes != len(want) {
			t.Fatalf("%d outcomes differ (-want +got):\n%s", j.outcomes, diff)
		}
	})
}

// A million spans must not cost a struct each: 91,000 requests of 11 spans stay below 16 bits a span.
func TestJournalTakesABitOrSoPerSpan(t *testing.T) {
	var j journal
	for n := range int64(91_000) {
		sent := 1_700_000_000_000_000_000 + n*5_000_000
		j.add(record.Outcome{First: uint64(n) * 11, Spans: 11, Intended: sent, Sent: sent,
			Answered: sent + 4_000_000 + n, Attempts: 1, Class: record.Acked}, 0)
	}
	if bits := float64(8*j.size()) / (91_000 * 11); bits > 16 {
		t.Errorf("%.1f bits a span in %d bytes", bits, j.size())
	}
	all, err := unpack(nil, slices.Concat(j.chunks()...), trace.Measured, 0, []string{""})
	if err != nil || len(all) != 91_000 || all[90_999].First != 90_999*11 || len(j.chunks()) < 10 {
		t.Errorf("%d outcomes of %d chunks, %v", len(all), len(j.chunks()), err)
	}
}

func TestCodebookIsBounded(t *testing.T) {
	codes := newCodebook()
	for i := range 5000 {
		codes.number(fmt.Sprint("reason ", i))
	}
	list := codes.list()
	if len(list) > maxCodes+1 || list[len(list)-1] != "other reasons" {
		t.Errorf("%d codes, the last one %q", len(list), list[len(list)-1])
	}
	if _, kept := codes.number("reason 7"); kept != "reason 7" {
		t.Errorf("a known reason is kept as %q", kept)
	}
}

func FuzzUnpackNeverPanics(f *testing.F) {
	var j journal
	j.add(record.Outcome{First: 5, Spans: 11, Sent: 100, Answered: 200, Attempts: 2, Class: record.Refused}, 0)
	f.Add(j.packed)
	f.Add([]byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		outcomes, err := unpack(nil, data, trace.Measured, 0, []string{""})
		if err == nil && len(data) > 0 && len(outcomes) == 0 {
			t.Error("bytes were read as nothing")
		}
	})
}
