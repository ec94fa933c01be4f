package load

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
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
		var away shelf
		codes := newCodebook()
		for _, o := range want {
			number, _ := codes.number(o.Code)
			j.add(o, number, &away)
		}
		got, err := unpack(nil, packed(t, &j, &away), trace.Warmup, 9, codes.list())
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
	folder := t.TempDir()
	for name, away := range map[string]*shelf{"in a file": {folder: folder}, "in memory": {folder: filepath.Join(folder, "missing")}} {
		t.Run(name, func(t *testing.T) { longJournal(t, away) })
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// A disk that fills up in mid-run loses no outcome: what is in the file is read there, the rest is kept.
func TestJournalOutlivesItsFile(t *testing.T) {
	away := &shelf{folder: t.TempDir()}
	var j journal
	for n := range uint64(20_000) {
		if n == 10_000 {
			away.err = syscall.ENOSPC // what a write to a full disk leaves there
		}
		j.add(record.Outcome{First: n, Spans: 1, Sent: int64(n) << 30}, 0, away)
	}
	first, last := j.full[0], j.full[len(j.full)-1]
	if first.kept != nil || last.kept == nil {
		t.Fatalf("of %d chunks the first is in memory or the last is not", len(j.full))
	}
	all, err := unpack(nil, packed(t, &j, away), trace.Measured, 0, []string{""})
	if err != nil || len(all) != j.outcomes || all[len(all)-1] != (record.Outcome{First: 19_999, Spans: 1, Sent: 19_999 << 30}) {
		t.Errorf("%d of %d outcomes, %v", len(all), j.outcomes, err)
	}
}

func longJournal(t *testing.T, away *shelf) {
	var j journal
	for n := range int64(91_000) {
		sent := 1_700_000_000_000_000_000 + n*5_000_000
		j.add(record.Outcome{First: uint64(n) * 11, Spans: 11, Intended: sent, Sent: sent,
			Answered: sent + 4_000_000 + n, Attempts: 1, Class: record.Acked}, 0, away)
	}
	if bits := float64(8*j.size()) / (91_000 * 11); bits > 16 {
		t.Errorf("%.1f bits a span in %d bytes", bits, j.size())
	}
	all, err := unpack(nil, packed(t, &j, away), trace.Measured, 0, []string{""})
	if err != nil || len(all) != 91_000 || all[90_999].First != 90_999*11 || len(j.full) < 10 {
		t.Errorf("%d outcomes of %d full chunks, %v", len(all), len(j.full), err)
	}
}

// packed are the bytes of a journal.
func packed(t interface {
	Helper()
	Fatal(args ...any)
}, j *journal, away *shelf) (all []byte) {
	t.Helper()
	for _, p := range j.pieces() {
		chunk, err := away.read(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, chunk...)
	}
	return all
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
	j.add(record.Outcome{First: 5, Spans: 11, Sent: 100, Answered: 200, Attempts: 2, Class: record.Refused}, 0, &shelf{})
	f.Add(j.packed)
	f.Add([]byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		outcomes, err := unpack(nil, data, trace.Measured, 0, []string{""})
		if err == nil && len(data) > 0 && len(outcomes) == 0 {
			t.Error("bytes were read as nothing")
		}
	})
}
