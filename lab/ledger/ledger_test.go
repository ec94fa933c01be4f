package ledger

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

const (
	second  = int64(time.Second)
	startNS = 1_700_000_000 * second
	endNS   = startNS + 60*second
)

var numbering = trace.New(42, 10)

// facts are those of a Cassandra read-back without any trouble.
func facts() Facts {
	return Facts{
		Window: record.Window{Start: startNS, End: endNS}, DrainEndUS: (endNS + 30*second) / 1000,
		HasForeign: true, HasDuplicates: true, HasWriteTime: true,
		Ranges: record.Ranges{Asked: 256, Read: 256}, ClockOffset: new(time.Duration),
	}
}

// load gives each worker traces of 11 spans, sent one after another and acknowledged.
func load(workers, traces int) (map[trace.Phase][]uint64, []record.Outcome) {
	counts := make([]uint64, workers)
	var outcomes []record.Outcome
	for w := range workers {
		counts[w] = uint64(traces * 11)
		for i := range traces {
			sent := startNS + int64(i)*second/100
			outcomes = append(outcomes, record.Outcome{Worker: uint32(w), First: uint64(i * 11), Spans: 11, Sent: sent,
				Answered: sent + second/1000, Attempts: 1, Class: record.Acked})
		}
	}
	return map[trace.Phase][]uint64{trace.Measured: counts}, outcomes
}

// row is the row of a span written tookMS after a moment.
func row(ref trace.Ref, atNS, tookMS int64) record.Row {
	return record.Row{ID: numbering.ID(ref), Hash: 7, WriteTime: atNS/1000 + tookMS*1000}
}

// stored enters a row 20 ms after its request was sent for every span that keep wants.
func stored(b *Book, outcomes []record.Outcome, keep func(trace.Ref) bool) {
	for _, o := range outcomes {
		for i := range uint64(o.Spans) {
			if ref := (trace.Ref{Phase: o.Phase, Worker: o.Worker, Index: o.First + i}); keep(ref) {
				b.Add(row(ref, o.Sent, 20))
			}
		}
	}
}

func all(trace.Ref) bool { return true }

func open(t *testing.T, generated map[trace.Phase][]uint64, outcomes []record.Outcome) *Book {
	t.Helper()
	b, err := New(numbering, generated, outcomes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantLaws(t *testing.T, r Result, holds bool) {
	t.Helper()
	for _, l := range []*record.Ledger{&r.Measured, r.Warmup} {
		if got := broken(l); (len(got) == 0) != holds {
			t.Errorf("broken laws %v, want all to hold: %t", got, holds)
		}
	}
}

func TestEverythingStoredIsWhole(t *testing.T) {
	generated, outcomes := load(10, 6000)
	b := open(t, generated, outcomes)
	stored(b, outcomes, all)
	r := b.Close(facts())
	wantLaws(t, r, true)
	if r.Verdict != record.Whole || len(r.Reasons) > 0 || len(r.Warnings) > 0 {
		t.Errorf("verdict %s, reasons %q, warnings %q", r.Verdict, r.Reasons, r.Warnings)
	}
	// 6000 traces a worker, one each 10 ms, written 20 ms later: those of the last 20 ms are late
	// by their write (the edge itself counts as inside).
	if want := int64(10 * 5999 * 11); *r.StoredInWindow != want || r.StoredInWindowSource != WriteTime {
		t.Errorf("stored in the window %d (%s), want %d", *r.StoredInWindow, r.StoredInWindowSource, want)
	}
	sum := int64(0)
	for _, n := range r.StoredEachS {
		sum += n
	}
	if sum < *r.StoredInWindow || sum > r.Measured.Stored || len(r.StoredEachS) < 2 {
		t.Errorf("stored by the second: %d in %d seconds, of %d stored and %d in the window", sum, len(r.StoredEachS),
			r.Measured.Stored, *r.StoredInWindow)
	}
	if r.SendToStore.N != 660_000 || r.SendToStore.P50 < 20 || r.SendToStore.Max > 20.1 {
		t.Errorf("send to store %+v, want 20 ms for each of 660,000", r.SendToStore)
	}
	if *r.StoredAfterDrain != 660_000 || *r.Measured.Rows != 660_000 || *r.Measured.Foreign != 0 || *r.Measured.Rewritten != 0 {
		t.Errorf("ledger %+v", r.Measured)
	}
}

// The defects that the whole tool exists to find: planted between drain and read-back, and named
// one by one.
func TestPlantedDefectsAreNamedExactly(t *testing.T) {
	generated, outcomes := load(10, 100)
	b := open(t, generated, outcomes)
	lost := []trace.Ref{{Worker: 0, Index: 0}, {Worker: 3, Index: 517}, {Worker: 9, Index: 1099}}
	twice := []trace.Ref{{Worker: 1, Index: 5}, {Worker: 8, Index: 11}}
	over := []trace.Ref{{Worker: 2, Index: 7}}
	foreign := []trace.ID{
		numbering.ID(trace.Ref{Worker: 9, Index: 1100}), // one more than was generated
		{High: 1, Low: 2, Span: 3},
		trace.New(43, 10).ID(trace.Ref{}), // of another run
	}
	late := endNS + 40*second
	stored(b, outcomes, func(ref trace.Ref) bool { return !slices.Contains(lost, ref) && !slices.Contains(over, ref) })
	for _, ref := range twice {
		again := row(ref, late, 0)
		again.Hash = 8
		b.Add(again)
	}
	b.Add(row(over[0], late, 0)) // the same key, written again after the drain
	for _, id := range slices.Concat(foreign, foreign[:1]) {
		b.Add(record.Row{ID: id, WriteTime: late / 1000})
	}
	r := b.Close(facts())
	wantLaws(t, r, true)
	if r.Verdict != record.Lossy || !strings.Contains(r.Reasons[0], "3 acknowledged spans") {
		t.Errorf("verdict %s, %q", r.Verdict, r.Reasons)
	}
	l := r.Measured
	if l.Missing != 3 || *l.Foreign != 3 || *l.Duplicates != 2 || *l.Rewritten != 3 || *l.Rows != 11000-3+2+4 || l.Stored != 10997 {
		t.Errorf("missing %d, foreign %d, duplicates %d, rewritten %d, rows %d, stored %d", l.Missing, *l.Foreign, *l.Duplicates, *l.Rewritten, *l.Rows, l.Stored)
	}
	want := []record.Example{
		{Kind: "missing", IDs: names(lost)},
		{Kind: "foreign", IDs: []string{foreign[1].String(), foreign[0].String(), foreign[2].String()}},
		{Kind: "duplicate", IDs: names(twice)},
		{Kind: "rewritten", IDs: names([]trace.Ref{twice[0], over[0], twice[1]})},
	}
	if diff := cmp.Diff(want, l.Examples); diff != "" {
		t.Errorf("named ids (-want +got):\n%s", diff)
	}
	for kind, seq := range map[string]func(func(trace.ID) bool){"missing": b.Missing, "foreign": b.Foreign, "duplicate": b.Duplicates} {
		var got []string
		for id := range seq {
			got = append(got, id.String())
		}
		i := slices.IndexFunc(want, func(e record.Example) bool { return e.Kind == kind })
		if diff := cmp.Diff(want[i].IDs, got); diff != "" {
			t.Errorf("all %s ids (-want +got):\n%s", kind, diff)
		}
	}
	// The extra rows do not move the time of the first: only what is lost or was overwritten is.
	if *r.StoredInWindow != 11000-3-1 {
		t.Errorf("stored in the window %d, want %d", *r.StoredInWindow, 11000-3-1)
	}
}

func names(refs []trace.Ref) (ids []string) {
	for _, ref := range refs {
		ids = append(ids, numbering.ID(ref).String())
	}
	return ids
}

// One loss and one foreign row leave the totals equal; only identity tells.
func TestEqualTotalsAreNotWhole(t *testing.T) {
	generated, outcomes := load(1, 1)
	b := open(t, generated, outcomes)
	stored(b, outcomes, func(ref trace.Ref) bool { return ref.Index != 4 })
	b.Add(record.Row{ID: trace.ID{High: 9}, WriteTime: startNS / 1000})
	if r := b.Close(facts()); r.Verdict != record.Lossy || *r.Measured.Rows != 11 {
		t.Errorf("verdict %s with %d rows for 11 spans", r.Verdict, *r.Measured.Rows)
	}
}

func TestVerdicts(t *testing.T) {
	one := func(class record.Class) []record.Outcome {
		return []record.Outcome{{Spans: 11, Sent: startNS, Attempts: 1, Class: class}}
	}
	none := func(trace.Ref) bool { return false }
	nine := func(ref trace.Ref) bool { return ref.Index < 9 }
	foreign := record.Row{ID: trace.ID{High: 9}, WriteTime: startNS / 1000}
	for name, test := range map[string]struct {
		outcomes []record.Outcome
		keep     func(trace.Ref) bool
		rows     []record.Row
		facts    func(*Facts)
		verdict  record.Verdict
		reason   string
	}{
		"all acked, all stored":                {one(record.Acked), all, nil, nil, record.Whole, ""},
		"acked and absent":                     {one(record.Acked), nine, nil, nil, record.Lossy, "2 acknowledged spans are not stored"},
		"a range is missing":                   {one(record.Acked), nine, nil, func(f *Facts) { f.Ranges.Read = 250 }, record.Unknown, "250 of 256 ranges"},
		"a range is missing, nothing else":     {one(record.Acked), all, nil, func(f *Facts) { f.Ranges.Read = 255 }, record.Unknown, "255 of 256 ranges"},
		"nothing was read":                     {one(record.Acked), none, nil, func(f *Facts) { f.Ranges = record.Ranges{} }, record.Unknown, "nothing was read back"},
		"still moving":                         {one(record.Acked), nine, nil, func(f *Facts) { f.StillMoving = true }, record.Unknown, "still being written"},
		"others go on":                         {one(record.Acked), all, nil, func(f *Facts) { f.StillMoving, f.HasForeign = true, false }, record.Whole, ""},
		"still moving, all there so far":       {one(record.Acked), all, nil, func(f *Facts) { f.StillMoving = true }, record.Unknown, "still being written"},
		"others go on, or not only they":       {one(record.Acked), nine, nil, func(f *Facts) { f.StillMoving, f.HasForeign = true, false }, record.Unknown, "still being written"},
		"node gone, absent":                    {one(record.Acked), nine, nil, func(f *Facts) { f.AbsentUnknown = true }, record.Unknown, "a node was gone"},
		"node gone, all there":                 {one(record.Acked), all, nil, func(f *Facts) { f.AbsentUnknown = true }, record.Whole, ""},
		"foreign":                              {one(record.Acked), all, []record.Row{foreign}, nil, record.Unknown, "1 stored ids were never generated"},
		"foreign and absent":                   {one(record.Acked), nine, []record.Row{foreign}, nil, record.Lossy, "2 acknowledged"},
		"foreign not checkable":                {one(record.Acked), all, nil, func(f *Facts) { f.HasForeign = false }, record.Whole, ""},
		"unanswered and absent":                {one(record.Unanswered), nine, nil, nil, record.Unknown, "2 spans without an answer"},
		"unanswered and stored":                {one(record.Unanswered), all, nil, nil, record.Whole, ""},
		"no reply (UDP) and absent":            {one(record.NoReply), none, nil, nil, record.Unknown, "11 spans without an answer"},
		"all refused":                          {one(record.Refused), none, nil, nil, record.Unknown, "nothing to judge"},
		"nothing left":                         {nil, none, nil, nil, record.Unknown, "nothing to judge"},
		"stored though its client never sent":  {nil, all, nil, nil, record.Unknown, "no unsent span is stored"},
		"partly refused, acked ones all there": {[]record.Outcome{{Spans: 9, Sent: startNS, Attempts: 1, Class: record.Acked}, {First: 9, Spans: 2, Sent: startNS, Attempts: 1, Class: record.Refused}}, nine, nil, nil, record.Whole, ""},
	} {
		b := open(t, map[trace.Phase][]uint64{trace.Measured: {11}}, test.outcomes)
		for i := range uint64(11) {
			if ref := (trace.Ref{Index: i}); test.keep(ref) {
				b.Add(row(ref, startNS, 5))
			}
		}
		for _, row := range test.rows {
			b.Add(row)
		}
		f := facts()
		if test.facts != nil {
			test.facts(&f)
		}
		r := b.Close(f)
		if r.Verdict != test.verdict || !strings.Contains(strings.Join(r.Reasons, "; "), test.reason) || (test.reason == "") != (len(r.Reasons) == 0) {
			t.Errorf("%s: verdict %s because %q, want %s because %q", name, r.Verdict, r.Reasons, test.verdict, test.reason)
		}
	}
}

// What a store can't tell is null; a number would be an invention.
func TestWhatAStoreCanNotTellIsNull(t *testing.T) {
	generated, outcomes := load(1, 1)
	b := open(t, generated, outcomes)
	for i := range uint64(11) {
		b.Add(record.Row{ID: numbering.ID(trace.Ref{Index: i})})
	}
	r := b.Close(Facts{Window: record.Window{Start: startNS, End: endNS}, Ranges: record.Ranges{Asked: 1, Read: 1}})
	l := r.Measured
	if l.Foreign != nil || l.Duplicates != nil || l.Rows != nil || l.Rewritten != nil || r.StoredInWindow != nil || r.SendToStore != nil || r.StoredInWindowSource != "" {
		t.Errorf("a store without rows and write times gave %+v, %+v", l, r)
	}
	if r.Verdict != record.Whole || *r.StoredAfterDrain != 11 {
		t.Errorf("verdict %s, stored after drain %v", r.Verdict, r.StoredAfterDrain)
	}
	wantLaws(t, r, true)
}

func TestWindowFiguresAreUnknownWhenTheirTimesAreNot(t *testing.T) {
	off := 51 * time.Millisecond
	for name, test := range map[string]struct {
		change func(*Book, *Facts)
		want   string
	}{
		"clocks not compared":    {func(_ *Book, f *Facts) { f.ClockOffset = nil }, "not compared"},
		"clocks differ":          {func(_ *Book, f *Facts) { f.ClockOffset = &off }, "differ by 51ms"},
		"written before sent":    {func(b *Book, _ *Facts) { b.Add(row(trace.Ref{Index: 10}, startNS, -51)) }, "1 spans have a write time more than 50ms before"},
		"no write time":          {func(b *Book, _ *Facts) { b.Add(record.Row{ID: numbering.ID(trace.Ref{Index: 10})}) }, "1 rows have no write time"},
		"ranges missing":         {func(_ *Book, f *Facts) { f.Ranges.Read-- }, "255 of 256 ranges"},
		"node gone, some absent": {func(_ *Book, f *Facts) { f.AbsentUnknown = true }, "more may be stored"},
		"no window":              {func(_ *Book, f *Facts) { f.Window = record.Window{} }, "no window"},
	} {
		generated, outcomes := load(1, 1)
		b := open(t, generated, outcomes)
		stored(b, outcomes, func(ref trace.Ref) bool { return ref.Index < 10 })
		f := facts()
		test.change(b, &f)
		r := b.Close(f)
		if r.StoredInWindow != nil || r.SendToStore != nil || !strings.Contains(strings.Join(r.Warnings, "; "), test.want) {
			t.Errorf("%s: stored in window %v, warnings %q, want unknown and %q", name, r.StoredInWindow, r.Warnings, test.want)
		}
	}
	generated, outcomes := load(1, 1)
	b := open(t, generated, outcomes)
	stored(b, outcomes, func(ref trace.Ref) bool { return ref.Index < 10 })
	b.Add(row(trace.Ref{Index: 10}, startNS, -49)) // within what clocks may differ
	if r := b.Close(facts()); r.StoredInWindow == nil || r.SendToStore.N != 11 {
		t.Errorf("a write time 49 ms early made the figures unknown: %q", r.Warnings)
	}
}

func TestLatencyCountsOnlyWhatWasSentOnce(t *testing.T) {
	generated, outcomes := load(1, 3)
	outcomes[1].Attempts = 2
	outcomes[2].Class = record.Refused
	b := open(t, generated, outcomes)
	stored(b, outcomes, all)
	r := b.Close(facts())
	if r.SendToStore.N != 11 || !strings.Contains(strings.Join(r.Warnings, ";"), "leaves out 11 stored spans that were sent more than once") {
		t.Errorf("latency of %d spans, warnings %q", r.SendToStore.N, r.Warnings)
	}
}

func TestTheFirstRowOfASpanDecidesItsTime(t *testing.T) {
	for _, order := range [][]int64{{20, 70_000}, {70_000, 20}} {
		b := open(t, map[trace.Phase][]uint64{trace.Measured: {1}}, []record.Outcome{{Spans: 1, Sent: startNS, Attempts: 1, Class: record.Acked}})
		for _, took := range order {
			b.Add(row(trace.Ref{}, startNS, took))
		}
		r := b.Close(facts())
		if *r.StoredInWindow != 1 || *r.Measured.Duplicates != 1 || r.SendToStore.Max > 21 {
			t.Errorf("rows in the order %v ms: in window %d, latency %+v", order, *r.StoredInWindow, r.SendToStore)
		}
	}
}

func TestWarmUpHasALedgerOfItsOwn(t *testing.T) {
	generated, outcomes := load(1, 2)
	generated[trace.Warmup] = []uint64{11}
	outcomes = append(outcomes, record.Outcome{Phase: trace.Warmup, Spans: 11, Sent: startNS - 10*second, Attempts: 1, Class: record.Acked})
	b := open(t, generated, outcomes)
	stored(b, outcomes, func(ref trace.Ref) bool { return ref.Phase == trace.Measured || ref.Index > 0 })
	r := b.Close(facts())
	wantLaws(t, r, true)
	if r.Warmup == nil || r.Warmup.Missing != 1 || r.Measured.Missing != 0 || *r.Measured.Foreign != 0 || r.Measured.Stored != 22 || *r.StoredInWindow != 22 {
		t.Fatalf("warm-up %+v, measured %+v", r.Warmup, r.Measured)
	}
	if r.Verdict != record.Whole || !strings.Contains(strings.Join(r.Warnings, ";"), "warm-up: 1 acknowledged") {
		t.Errorf("verdict %s, warnings %q", r.Verdict, r.Warnings)
	}
}

func TestContradictionsOfTheLoadNodeAreErrors(t *testing.T) {
	acked := func(worker uint32, first uint64, spans uint32) record.Outcome {
		return record.Outcome{Worker: worker, First: first, Spans: spans, Class: record.Acked}
	}
	for want, outcomes := range map[string][]record.Outcome{
		"worker 0, measured phase, spans 10 to 20 (acked): spans 0 to 10 have an outcome already (acked)": {acked(0, 10, 11), acked(0, 0, 11)},
		"worker 1, measured phase, spans 11 to 22 (acked): that worker generated only 22 spans":           {acked(1, 11, 12)},
		"spans 18446744073709551615 to 9 (acked): that worker generated only 22":                          {acked(1, 1<<64-1, 11)},
		"worker 7, measured phase, spans 0 to 10 (acked): that worker generated nothing":                  {acked(7, 0, 11)},
		"warm-up phase, spans 0 to 0 (acked): that worker generated nothing":                              {{Phase: trace.Warmup, Spans: 1, Class: record.Acked}},
		"phase, spans 0 to 0 (acked): that worker generated nothing":                                      {{Phase: 9, Spans: 1, Class: record.Acked}},
		"covers no span":         {acked(0, 0, 0)},
		"class 9 does not exist": {{Spans: 1, Class: 9}},
	} {
		_, err := New(numbering, map[trace.Phase][]uint64{trace.Measured: {22, 22}}, outcomes)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q", err, want)
		}
	}
	many := make([]record.Outcome, 100)
	if _, err := New(numbering, nil, many); err == nil || !strings.Contains(err.Error(), "and 90 more") {
		t.Errorf("a hundred contradictions gave %v", err)
	}
	if _, err := New(numbering, map[trace.Phase][]uint64{trace.Measured: {1 << 60}}, nil); err == nil {
		t.Error("an absurd number of generated spans was taken")
	}
}

// A million spans fit in 64 MiB, the load node's outcomes (one for 11 spans) included.
func TestAMillionSpansFitIn64MiB(t *testing.T) {
	before := heap()
	generated, outcomes := load(10, 9091)
	b := open(t, generated, outcomes)
	stored(b, outcomes, all)
	used := heap() - before
	runtime.KeepAlive(outcomes)
	r := b.Close(facts())
	if r.Measured.Stored != 1_000_010 || r.Verdict != record.Whole {
		t.Fatalf("stored %d, verdict %s", r.Measured.Stored, r.Verdict)
	}
	t.Logf("%d spans in %d requests take %.1f MiB", r.Measured.Stored, len(outcomes), float64(used)/(1<<20))
	if used > 64<<20 {
		t.Errorf("a million spans take %d bytes", used)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkAdd(b *testing.B) {
	generated, outcomes := load(10, 9091)
	var rows []record.Row
	for _, o := range outcomes {
		for i := range uint64(o.Spans) {
			rows = append(rows, row(trace.Ref{Worker: o.Worker, Index: o.First + i}, o.Sent, 20))
		}
	}
	total := 0
	for b.Loop() {
		book, err := New(numbering, generated, outcomes)
		if err != nil {
			b.Fatal(err)
		}
		for _, row := range rows {
			book.Add(row)
		}
		total += len(rows)
	}
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkClose(b *testing.B) {
	generated, outcomes := load(10, 9091)
	book, err := New(numbering, generated, outcomes)
	if err != nil {
		b.Fatal(err)
	}
	stored(book, outcomes, all)
	for b.Loop() {
		book.Close(facts())
	}
	b.ReportMetric(float64(b.N)*1_000_010/b.Elapsed().Seconds(), "spans/s")
}

func Example() {
	numbering := trace.New(1, 10)
	book, err := New(numbering, map[trace.Phase][]uint64{trace.Measured: {11}}, []record.Outcome{{Spans: 11, Attempts: 1, Class: record.Acked}})
	if err != nil {
		return
	}
	for i := range uint64(10) {
		book.Add(record.Row{ID: numbering.ID(trace.Ref{Index: i})})
	}
	result := book.Close(Facts{Ranges: record.Ranges{Asked: 1, Read: 1}})
	fmt.Println(result.Verdict, result.Reasons)
	for id := range book.Missing {
		fmt.Println(id)
	}
	// Output:
	// lossy [1 acknowledged spans are not stored]
	// 40000000000400004000000000000000:400000000000000a
}
