// Package ledger accounts for every generated span by identity: generated x answered x stored.
// It takes what the load node says (how many spans each worker generated, what became of each
// request) and the rows that a backend read back, and says which cell every span is in, which
// acknowledged spans are missing, which ids are foreign, and whether the laws hold. It is pure
// and imports trace and record only, so that a recorded run can be judged again without a
// database. It is the step between the read-back and the record.
package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// Book is the account of one run. A span costs four bytes (its least write time), a request 32.
// It is used by one goroutine.
type Book struct {
	numbering   trace.Numbering
	baseUS      int64 // write times are kept relative to it
	phases      [2]phase
	outliers    map[trace.Ref]int64 // write times that 32 bits after baseUS can't hold
	foreign     map[trace.ID]struct{}
	foreignRows int64
}

// phase is the measured load or the warm-up.
type phase struct {
	workers   []worker
	generated int64
	rows      int64   // rows read of known ids
	distinct  int64   // ids among them
	extras    []extra // rows of ids that already had one
}

type worker struct {
	requests []request // by first span, without overlaps
	slots    []uint32  // one for each span, see below
}

// request is what the ledger needs of an outcome.
type request struct {
	first  uint64
	sentNS int64
	spans  uint32
	worker uint32
	phase  trace.Phase
	class  record.Class
	once   bool // sent once
}

func (r request) end() uint64 { return r.first + uint64(r.spans) } // first span behind it

// extra is a row of an id that has another row, written no earlier than that one.
type extra struct {
	ref     trace.Ref
	writeUS int64
}

// Values of a slot: no row; a row without a write time; a write time kept in Book.outliers; and
// everything from firstOffset on is a write time of baseUS + slot - firstOffset.
const (
	absent      uint32 = 0
	timeless    uint32 = 1
	outlier     uint32 = 2
	firstOffset uint32 = 3
)

const (
	// clockSlackUS is how far write times may lie before the first send and still be kept in 32
	// bits; 71 minutes after it are left.
	clockSlackUS = 60_000_000
	maxSpans     = 1 << 34 // more than any load of this lab; a larger count is a broken message
	maxNamed     = 10      // broken outcomes that an error names
)

// New opens the account of one run: generated gives, for each phase, how many spans each worker
// generated (index = worker), outcomes what became of the requests, in any order. Two outcomes
// for one span, and outcomes for spans that nobody generated, are errors of the harness.
func New(numbering trace.Numbering, generated map[trace.Phase][]uint64, outcomes []record.Outcome) (*Book, error) {
	b := &Book{numbering: numbering, outliers: map[trace.Ref]int64{}, foreign: map[trace.ID]struct{}{}}
	if numbering.Width < 1 {
		return nil, errors.New("open the ledger: the numbering has no width; use trace.New")
	}
	for which, counts := range generated {
		if err := b.open(which, counts); err != nil {
			return nil, fmt.Errorf("open the ledger: %w", err)
		}
	}
	if err := b.enter(outcomes); err != nil {
		return nil, fmt.Errorf("open the ledger: the load node contradicts itself: %w", err)
	}
	return b, nil
}

// open makes room for the spans of one phase.
func (b *Book) open(which trace.Phase, counts []uint64) error {
	if int(which) >= len(b.phases) {
		return fmt.Errorf("phase %d does not exist", which)
	}
	p := &b.phases[which]
	p.workers = make([]worker, len(counts))
	for w, count := range counts {
		if count > maxSpans || p.generated+int64(count) > maxSpans {
			return fmt.Errorf("worker %d of the %s phase generated %d spans, more than the %d that can be accounted "+
				"for", w, phaseName(which), count, maxSpans)
		}
		p.generated += int64(count)
		p.workers[w].slots = make([]uint32, count)
	}
	return nil
}

// enter sorts the outcomes into the workers' accounts and checks that none contradict.
func (b *Book) enter(outcomes []record.Outcome) error {
	requests := make([]request, 0, len(outcomes))
	firstNS := int64(math.MaxInt64)
	for _, o := range outcomes {
		requests = append(requests, request{
			first: o.First, sentNS: o.Sent, spans: o.Spans,
			worker: o.Worker, phase: o.Phase, class: o.Class, once: o.Attempts == 1,
		})
		if o.Sent > 0 {
			firstNS = min(firstNS, o.Sent)
		}
	}
	if firstNS != math.MaxInt64 {
		b.baseUS = firstNS/1000 - clockSlackUS
	}
	slices.SortFunc(requests, func(x, y request) int {
		return cmp.Or(cmp.Compare(x.phase, y.phase), cmp.Compare(x.worker, y.worker), cmp.Compare(x.first, y.first))
	})
	var problems []error
	start := 0
	for i, r := range requests {
		if problem := b.contradiction(requests, i); problem != nil {
			problems = append(problems, problem)
			continue
		}
		if i+1 == len(requests) || requests[i+1].phase != r.phase || requests[i+1].worker != r.worker {
			b.phases[r.phase].workers[r.worker].requests = requests[start : i+1]
			start = i + 1
		}
	}
	if more := len(problems) - maxNamed; more > 0 {
		problems = append(problems[:maxNamed], fmt.Errorf("and %d more", more))
	}
	return errors.Join(problems...)
}

// contradiction says what is wrong with the i-th of the sorted requests.
func (b *Book) contradiction(requests []request, i int) error {
	r := requests[i]
	fail := func(format string, args ...any) error {
		what := fmt.Sprintf("worker %d, %s phase, %s (%s): ", r.worker, phaseName(r.phase), r.span(), className(r.class))
		return fmt.Errorf(what+format, args...)
	}
	switch {
	case r.spans == 0:
		return fail("the outcome covers no span")
	case r.class > record.NoReply:
		return fail("class %d does not exist", r.class)
	case int(r.phase) >= len(b.phases) || int64(r.worker) >= int64(len(b.phases[r.phase].workers)):
		return fail("that worker generated nothing")
	}
	if generated := uint64(len(b.phases[r.phase].workers[r.worker].slots)); r.end() > generated || r.end() < r.first {
		return fail("that worker generated only %d spans", generated)
	}
	if i == 0 {
		return nil
	}
	before := requests[i-1]
	if before.phase == r.phase && before.worker == r.worker && before.end() > r.first {
		return fail("%s have an outcome already (%s)", before.span(), className(before.class))
	}
	return nil
}

func (r request) span() string { return fmt.Sprintf("spans %d to %d", r.first, r.end()-1) }

func phaseName(p trace.Phase) string {
	switch p {
	case trace.Measured:
		return "measured"
	case trace.Warmup:
		return "warm-up"
	}
	return fmt.Sprintf("%d.", p)
}

func className(c record.Class) string {
	if c > record.NoReply {
		return "no class"
	}
	return c.String()
}

// Add enters one row that was read back. Rows come in any order, each row once.
func (b *Book) Add(row record.Row) {
	ref, ok := b.numbering.Locate(row.ID)
	if !ok || !b.generated(ref) {
		b.foreign[row.ID] = struct{}{}
		b.foreignRows++
		return
	}
	p := &b.phases[ref.Phase]
	p.rows++
	slot := &p.workers[ref.Worker].slots[ref.Index]
	if *slot == absent {
		p.distinct++
		b.put(slot, ref, row.WriteTime)
		return
	}
	// The first row of an id is the one written first; the later one is the extra.
	earlier, later := b.writeUS(*slot, ref), row.WriteTime
	if later != 0 && (earlier == 0 || later < earlier) {
		b.put(slot, ref, later)
		later = earlier
	}
	p.extras = append(p.extras, extra{ref: ref, writeUS: later})
}

func (b *Book) generated(ref trace.Ref) bool {
	workers := b.phases[ref.Phase].workers
	return int64(ref.Worker) < int64(len(workers)) && ref.Index < uint64(len(workers[ref.Worker].slots))
}

func (b *Book) put(slot *uint32, ref trace.Ref, writeUS int64) {
	if *slot == outlier {
		delete(b.outliers, ref)
	}
	offset := writeUS - b.baseUS
	switch {
	case writeUS == 0:
		*slot = timeless
	case writeUS < b.baseUS || offset > math.MaxUint32-int64(firstOffset) || offset < 0:
		*slot = outlier
		b.outliers[ref] = writeUS
	default:
		*slot = uint32(offset) + firstOffset
	}
}

// writeUS is the write time in a slot that is not absent; 0 = it has none.
func (b *Book) writeUS(slot uint32, ref trace.Ref) int64 {
	switch slot {
	case timeless:
		return 0
	case outlier:
		return b.outliers[ref]
	}
	return b.baseUS + int64(slot-firstOffset)
}

// span is one generated span with all that is known of it.
type span struct {
	ref    trace.Ref
	class  record.Class
	slot   uint32
	sentNS int64 // 0 = never
	once   bool
}

// spans visits every generated span of a phase, worker by worker in generation order.
func (b *Book) spans(which trace.Phase, visit func(span) bool) {
	for w, worker := range b.phases[which].workers {
		requests := worker.requests
		for i, slot := range worker.slots {
			index := uint64(i)
			for len(requests) > 0 && requests[0].end() <= index {
				requests = requests[1:]
			}
			s := span{ref: trace.Ref{Phase: which, Worker: uint32(w), Index: index}, slot: slot}
			if len(requests) > 0 && requests[0].first <= index {
				s.class, s.sentNS, s.once = requests[0].class, requests[0].sentNS, requests[0].once
			}
			if !visit(s) {
				return
			}
		}
	}
}

// Missing yields the ids of the measured spans that were acknowledged and not read back.
func (b *Book) Missing(yield func(trace.ID) bool) {
	b.spans(trace.Measured, func(s span) bool {
		return s.class != record.Acked || s.slot != absent || yield(b.numbering.ID(s.ref))
	})
}

// Foreign yields the ids that were read back and never generated, in order.
func (b *Book) Foreign(yield func(trace.ID) bool) {
	ids := make([]trace.ID, 0, len(b.foreign))
	for id := range b.foreign {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareIDs)
	for _, id := range ids {
		if !yield(id) {
			return
		}
	}
}

// Duplicates yields the ids of the measured spans that have more than one row, in order.
func (b *Book) Duplicates(yield func(trace.ID) bool) {
	for _, ref := range b.distinctExtras(trace.Measured, func(extra) bool { return true }) {
		if !yield(b.numbering.ID(ref)) {
			return
		}
	}
}

func (b *Book) distinctExtras(which trace.Phase, keep func(extra) bool) []trace.Ref {
	var refs []trace.Ref
	for _, e := range b.phases[which].extras {
		if keep(e) {
			refs = append(refs, e.ref)
		}
	}
	return sortedRefs(refs)
}

// sortedRefs sorts the spans of one phase and drops repeats.
func sortedRefs(refs []trace.Ref) []trace.Ref {
	slices.SortFunc(refs, func(x, y trace.Ref) int {
		return cmp.Or(cmp.Compare(x.Worker, y.Worker), cmp.Compare(x.Index, y.Index))
	})
	return slices.Compact(refs)
}

func compareIDs(x, y trace.ID) int {
	return cmp.Or(cmp.Compare(x.High, y.High), cmp.Compare(x.Low, y.Low), cmp.Compare(x.Span, y.Span))
}
