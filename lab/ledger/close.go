package ledger

import (
	"fmt"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// Facts are what the ledger can't know from outcomes and rows; the record keeps them.
type Facts = record.Facts

// complete reports whether everything that was asked for was read.
func complete(f Facts) bool { return f.Ranges.Asked > 0 && f.Ranges.Read == f.Ranges.Asked }

// Result is the closed account of one run.
type Result struct {
	Measured record.Ledger
	Warmup   *record.Ledger // nil when no span was generated for it; foreign ids are counted in Measured

	// StoredInWindow counts measured spans whose first row was written inside the window; nil
	// when the store has no write times or they can't be trusted (then Warnings say why).
	StoredInWindow       *int64
	StoredInWindowSource string // WriteTime, or "" where StoredInWindow is nil
	// StoredEachS counts the same spans by the second in which they were written, from the window's
	// start to the drain's end; nil where StoredInWindow is.
	StoredEachS []int64
	// StoredAfterDrain counts distinct measured spans read back; nil when not all could be read.
	StoredAfterDrain *int64
	// SendToStore is write time minus send time of the acknowledged spans that were sent once.
	SendToStore *record.Latency

	Verdict  record.Verdict
	Reasons  []string // of the verdict; never empty unless it is whole
	Warnings []string
}

// WriteTime is the source of StoredInWindow as the record names it.
const WriteTime = "write time"

// cells counts spans by answer and by whether they were read back (1) or not (0).
type cells [record.NoReply + 1][2]int64

func (c cells) of(class record.Class) int64 { return c[class][0] + c[class][1] }

func (c cells) stored() (sum int64) {
	for _, cell := range c {
		sum += cell[1]
	}
	return sum
}

// absentUnanswered counts the spans that nobody answered for and that were not read back.
func (c cells) absentUnanswered() int64 { return c[record.Unanswered][0] + c[record.NoReply][0] }

// Close judges the account. It changes nothing: a book may be closed again with other facts.
func (b *Book) Close(f Facts) Result {
	measured, examples := b.count(trace.Measured, f)
	result := Result{Measured: b.ledger(trace.Measured, measured, f)}
	result.Measured.Examples = examples
	if b.phases[trace.Warmup].generated > 0 {
		counted, examples := b.count(trace.Warmup, f)
		warmup := b.ledger(trace.Warmup, counted, f)
		warmup.Examples = examples
		result.Warmup = &warmup
	}
	b.timing(&result, f, measured)
	if complete(f) && !(f.AbsentUnknown && result.Measured.Stored < result.Measured.Generated-result.Measured.Unsent) {
		stored := result.Measured.Stored
		result.StoredAfterDrain = &stored
	}
	result.Verdict, result.Reasons = judge(f, measured, result)
	result.Warnings = append(result.Warnings, warnings(f, measured, result)...)
	return result
}

// count visits every span of a phase once: its cell, and the first ids of each kind to name.
func (b *Book) count(which trace.Phase, f Facts) (cells, []record.Example) {
	var c cells
	var missing []string
	var rewritten []trace.Ref
	b.spans(which, func(s span) bool {
		stored := 0
		if s.slot != absent {
			stored = 1
		}
		c[s.class][stored]++
		if s.class == record.Acked && stored == 0 && len(missing) < record.MaxExamples {
			missing = append(missing, b.numbering.ID(s.ref).String())
		}
		if stored == 1 && late(f, b.writeUS(s.slot, s.ref)) && len(rewritten) < record.MaxExamples {
			rewritten = append(rewritten, s.ref)
		}
		return true
	})
	rewritten = append(rewritten, b.distinctExtras(which, func(e extra) bool { return late(f, e.writeUS) })...)
	if !complete(f) || f.AbsentUnknown {
		missing = nil // a span that was not looked for everywhere can't be called missing by name
	}
	examples := named(nil, "missing", missing)
	if which == trace.Measured {
		var foreign []string
		b.Foreign(func(id trace.ID) bool {
			foreign = append(foreign, id.String())
			return len(foreign) < record.MaxExamples
		})
		examples = named(examples, "foreign", foreign)
	}
	examples = named(examples, "duplicate", b.names(b.distinctExtras(which, func(extra) bool { return true })))
	return c, named(examples, "rewritten", b.names(sortedRefs(rewritten)))
}

func (b *Book) names(refs []trace.Ref) []string {
	var names []string
	for _, ref := range refs[:min(len(refs), record.MaxExamples)] {
		names = append(names, b.numbering.ID(ref).String())
	}
	return names
}

func named(examples []record.Example, kind string, ids []string) []record.Example {
	if len(ids) == 0 {
		return examples
	}
	return append(examples, record.Example{Kind: kind, IDs: ids})
}

// late reports whether a row of a known id was written when everything was already stored.
func late(f Facts, writeUS int64) bool { return f.DrainEndUS > 0 && writeUS > f.DrainEndUS }

// ledger fills the record's form of one phase's account.
func (b *Book) ledger(which trace.Phase, c cells, f Facts) record.Ledger {
	p := &b.phases[which]
	l := record.Ledger{
		Generated:  p.generated,
		Unsent:     c.of(record.Unsent),
		Acked:      c.of(record.Acked),
		Refused:    c.of(record.Refused),
		Unanswered: c.of(record.Unanswered),
		NoReply:    c.of(record.NoReply),
		Stored:     c.stored(),
		Missing:    c[record.Acked][0],
	}
	for class := record.Unsent; class <= record.NoReply; class++ {
		l.Cells = append(l.Cells,
			record.Cell{Answer: class.String(), Stored: true, Spans: c[class][1]},
			record.Cell{Answer: class.String(), Stored: false, Spans: c[class][0]})
	}
	rows, duplicates := p.rows, int64(len(p.extras))
	if which == trace.Measured {
		rows += b.foreignRows
		if foreign := int64(len(b.foreign)); f.HasForeign || foreign > 0 {
			l.Foreign = &foreign
		}
	}
	if f.HasDuplicates || duplicates > 0 {
		l.Duplicates = &duplicates
	}
	if f.HasDuplicates || f.HasWriteTime {
		l.Rows = &rows
	}
	if f.HasWriteTime && f.DrainEndUS > 0 {
		rewritten := b.rewritten(which, f)
		l.Rewritten = &rewritten
	}
	l.Laws = b.laws(which, c, rows)
	return l
}

// rewritten counts rows of known ids that were written after the drain.
func (b *Book) rewritten(which trace.Phase, f Facts) (rows int64) {
	b.spans(which, func(s span) bool {
		if s.slot != absent && late(f, b.writeUS(s.slot, s.ref)) {
			rows++
		}
		return true
	})
	for _, e := range b.phases[which].extras {
		if late(f, e.writeUS) {
			rows++
		}
	}
	return rows
}

// laws checks what must hold whatever was lost. The two sides of each are counted apart: cells by
// going through the generated spans, ids and rows while the rows were read.
func (b *Book) laws(which trace.Phase, c cells, rows int64) []record.Law {
	p := &b.phases[which]
	var foreign, foreignRows int64
	if which == trace.Measured {
		foreign, foreignRows = int64(len(b.foreign)), b.foreignRows
	}
	var sum int64
	for class := range c {
		sum += c.of(record.Class(class))
	}
	distinct, duplicates, more := p.distinct+foreign, int64(len(p.extras)), foreignRows-foreign
	return []record.Law{
		{
			Law:   "the cells sum to generated",
			Holds: sum == p.generated,
			Seen:  fmt.Sprintf("%d, generated %d", sum, p.generated),
		},
		{
			Law:   "stored + foreign = distinct ids read",
			Holds: c.stored()+foreign == distinct,
			Seen:  fmt.Sprintf("%d + %d, distinct %d", c.stored(), foreign, distinct),
		},
		{
			Law:   "rows = distinct ids + duplicates + further rows of foreign ids",
			Holds: rows == distinct+duplicates+more,
			Seen:  fmt.Sprintf("%d rows, %d + %d + %d", rows, distinct, duplicates, more),
		},
		{
			Law:   "no unsent span is stored",
			Holds: c[record.Unsent][1] == 0,
			Seen:  fmt.Sprintf("%d unsent and stored", c[record.Unsent][1]),
		},
	}
}
