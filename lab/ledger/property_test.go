package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// fate is what a random world did to one span, as the oracle knows it.
type fate struct {
	ref   trace.Ref
	class record.Class
	rows  []int64 // write times
}

// drawWorld gives random workers, requests and rows of each span, in a random order.
func drawWorld(t *rapid.T) (generated map[trace.Phase][]uint64, outcomes []record.Outcome, fates []fate, rows []record.Row) {
	generated = map[trace.Phase][]uint64{}
	for _, phase := range []trace.Phase{trace.Measured, trace.Warmup} {
		for w := range rapid.IntRange(0, 3).Draw(t, "workers") {
			count := rapid.Uint64Range(0, 40).Draw(t, "generated")
			generated[phase] = append(generated[phase], count)
			for next := uint64(0); next < count; {
				spans := rapid.Uint64Range(1, count-next).Draw(t, "spans")
				class := record.Class(rapid.IntRange(0, int(record.NoReply)).Draw(t, "class"))
				if class != record.Unsent { // unsent spans have no outcome
					outcomes = append(outcomes, record.Outcome{Phase: phase, Worker: uint32(w), First: next, Spans: uint32(spans),
						Sent: startNS, Attempts: uint16(rapid.IntRange(1, 2).Draw(t, "attempts")), Class: class})
				}
				for end := next + spans; next < end; next++ {
					f := fate{ref: trace.Ref{Phase: phase, Worker: uint32(w), Index: next}, class: class}
					if class != record.Unsent {
						// Far beyond what 32 bits of microseconds hold, too.
						f.rows = rapid.SliceOfN(rapid.Int64Range(startNS/1000, startNS/1000+1<<34), 0, 3).Draw(t, "writes")
					}
					fates = append(fates, f)
				}
			}
		}
	}
	for _, f := range fates {
		for i, at := range f.rows {
			rows = append(rows, record.Row{ID: numbering.ID(f.ref), Hash: int64(i), WriteTime: at})
		}
	}
	return generated, rapid.Permutation(outcomes).Draw(t, "outcomes"), fates, rows
}

// Whatever happened to the spans, the laws hold, every cell is right, and exactly the lost ids
// are named.
func TestAnyWorldIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		generated, outcomes, fates, rows := drawWorld(t)
		strangers := rapid.SliceOfDistinct(rapid.Uint64Range(1, 1<<40), func(x uint64) uint64 { return x }).Draw(t, "foreign")
		for _, low := range strangers {
			rows = append(rows, record.Row{ID: trace.ID{High: 5, Low: low}, WriteTime: 1})
		}
		b, err := New(numbering, generated, outcomes)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rapid.Permutation(rows).Draw(t, "rows") {
			b.Add(row)
		}
		r := b.Close(facts())
		for _, l := range []*record.Ledger{&r.Measured, r.Warmup} {
			if laws := broken(l); len(laws) > 0 {
				t.Fatalf("broken laws: %+v", laws)
			}
		}
		want := expect(fates, trace.Measured)
		compare(t, want, r.Measured)
		if r.Warmup != nil {
			compare(t, expect(fates, trace.Warmup), *r.Warmup)
		}
		if *r.Measured.Foreign != int64(len(strangers)) {
			t.Fatalf("foreign %d, want %d", *r.Measured.Foreign, len(strangers))
		}
		if *r.StoredInWindow != want.inWindow {
			t.Fatalf("stored in the window %d, want %d", *r.StoredInWindow, want.inWindow)
		}
		var missing []trace.ID
		for id := range b.Missing {
			missing = append(missing, id)
		}
		if diff := cmp.Diff(want.missing, missing); diff != "" {
			t.Fatalf("missing ids (-want +got):\n%s", diff)
		}
		if (r.Verdict == record.Lossy) != (len(missing) > 0) {
			t.Fatalf("verdict %s with %d missing", r.Verdict, len(missing))
		}
	})
}

// expected is the oracle's account: slow, and written without the book's bits.
type expected struct {
	cells                         map[record.Cell]bool
	stored, duplicates, rewritten int64
	inWindow                      int64
	missing                       []trace.ID
}

func expect(fates []fate, phase trace.Phase) expected {
	count := map[record.Cell]int64{}
	for class := record.Unsent; class <= record.NoReply; class++ {
		count[record.Cell{Answer: class.String(), Stored: true}] = 0
		count[record.Cell{Answer: class.String(), Stored: false}] = 0
	}
	e := expected{cells: map[record.Cell]bool{}}
	for _, f := range fates {
		if f.ref.Phase != phase {
			continue
		}
		count[record.Cell{Answer: f.class.String(), Stored: len(f.rows) > 0}]++
		if len(f.rows) == 0 {
			if f.class == record.Acked {
				e.missing = append(e.missing, numbering.ID(f.ref))
			}
			continue
		}
		e.stored++
		e.duplicates += int64(len(f.rows) - 1)
		first := f.rows[0]
		for _, at := range f.rows {
			first = min(first, at)
			if at > facts().DrainEndUS {
				e.rewritten++
			}
		}
		if first <= endNS/1000 {
			e.inWindow++
		}
	}
	for cell, spans := range count {
		cell.Spans = spans
		e.cells[cell] = true
	}
	return e
}

func compare(t *rapid.T, want expected, got record.Ledger) {
	cells := map[record.Cell]bool{}
	for _, cell := range got.Cells {
		cells[cell] = true
	}
	if diff := cmp.Diff(want.cells, cells); diff != "" {
		t.Fatalf("cells (-want +got):\n%s", diff)
	}
	if got.Stored != want.stored || *got.Duplicates != want.duplicates || *got.Rewritten != want.rewritten {
		t.Fatalf("stored %d, duplicates %d, rewritten %d; want %+v", got.Stored, *got.Duplicates, *got.Rewritten, want)
	}
	if got.Unsent+got.Acked+got.Refused+got.Unanswered+got.NoReply != got.Generated {
		t.Fatalf("answers do not sum to generated: %+v", got)
	}
}
