package report

import (
	"slices"
	"strings"

	"jaegerlab/lab/record"
)

// runCells begin a row that stands for one run.
func runCells(run record.Run, rounds bool) []Cell {
	cells := []Cell{armName(run)}
	if rounds {
		cells = append(cells, whole(int64(run.Round)))
	}
	return cells
}

func runColumns(rounds bool, columns ...Column) []Column {
	if rounds {
		return append([]Column{colArm, colRound}, columns...)
	}
	return append([]Column{colArm}, columns...)
}

// ledger is one row for each run that has a ledger; warm-up spans have one of their own.
func (b *builder) ledger(r record.Record, rounds bool) {
	udp := slices.ContainsFunc(r.Runs, func(run record.Run) bool { return run.Ledger.NoReply > 0 })
	columns := []Column{colGenerated, colUnsent, colAcked, colRefused, colUnanswered}
	if udp {
		columns = append(columns, colNoReply)
	}
	columns = append(columns, colStored, colMissing, colForeign, colDuplicates, colRows, colRewritten, colLaws)
	b.begin("Ledger", runColumns(rounds, columns...)...)
	for _, run := range r.Runs {
		if !accounted(run) {
			cells := runCells(run, rounds)
			for range columns {
				cells = append(cells, b.unknown("the run ended before its spans could be accounted for"))
			}
			b.row(cells...)
			continue
		}
		b.row(append(runCells(run, rounds), b.ledgerCells(run, run.Ledger, udp)...)...)
		if run.WarmupLedger != nil {
			cells := runCells(run, rounds)
			cells[0].Text += "\n(warm-up)"
			cells[0].Plain += " (warm-up)"
			b.row(append(cells, b.ledgerCells(run, *run.WarmupLedger, udp)...)...)
		}
	}
}

func (b *builder) ledgerCells(run record.Run, l record.Ledger, udp bool) []Cell {
	cells := []Cell{whole(l.Generated), whole(l.Unsent), whole(l.Acked), whole(l.Refused), whole(l.Unanswered)}
	if udp {
		cells = append(cells, whole(l.NoReply))
	}
	stored, missing := whole(l.Stored), whole(l.Missing)
	if noStore(run) {
		for range 6 {
			cells = append(cells, b.unknown(whyNoStore))
		}
		return append(cells, b.laws(l))
	}
	foreign := b.examples(b.count(l.Foreign, b.cannot(run, "foreign ids")), l, "foreign")
	duplicates := b.examples(b.count(l.Duplicates, b.cannot(run, "duplicates")), l, "duplicate")
	rows := b.count(l.Rows, b.cannot(run, "rows"))
	if partial(run) {
		why := whyPartial(run)
		stored = b.note(bound(">=", stored), why)
		for _, c := range []*Cell{&foreign, &duplicates, &rows} {
			if c.Plain != "" {
				*c = b.note(bound(">=", *c), why)
			}
		}
	}
	if run.Verdict == record.Unknown && l.Missing > 0 {
		missing = b.note(bound("<=", missing), "at most: "+strings.Join(run.Reasons, "; "))
	}
	rewritten := b.count(l.Rewritten, b.cannot(run, "when a row was written"))
	return append(cells, stored, b.examples(missing, l, "missing"), foreign, duplicates, rows,
		b.examples(rewritten, l, "rewritten"), b.laws(l))
}

func (b *builder) cannot(run record.Run, what string) string {
	if run.Spec.Backend.Engine.Embedded() {
		return string(run.Spec.Backend.Engine) + " is read back by trace ids and can't show " + what
	}
	if run.Spec.Target != "" {
		return "a target is read back by the run's own trace ids and can't show " + what
	}
	return "the read-back could not show " + what
}

// examples names the first ids of a kind below a figure that is not zero.
func (b *builder) examples(c Cell, l record.Ledger, kind string) Cell {
	for _, e := range l.Examples {
		if e.Kind != kind || len(e.IDs) == 0 {
			continue
		}
		const shown = 3
		text := kind + ": " + strings.Join(e.IDs[:min(shown, len(e.IDs))], ", ")
		if len(e.IDs) > shown {
			text += ", ... (more in record.json)"
		}
		c = b.note(c, text)
	}
	return c
}

func (b *builder) laws(l record.Ledger) Cell {
	c := text("hold")
	for _, law := range l.Laws {
		if !law.Holds {
			c = b.note(Cell{Text: "BROKEN", Plain: "BROKEN", Notes: c.Notes}, "law: "+law.Law+": "+law.Seen)
		}
	}
	return c
}

// cells is the crossed account: answer x stored.
func (b *builder) cells(r record.Record, rounds bool) {
	b.begin("Answers and what was stored", runColumns(rounds, colAnswer, colPresent, colAbsent)...)
	b.table().Detail = true
	for _, run := range r.Runs {
		sums := map[string][2]int64{}
		var answers []string
		for _, cell := range run.Ledger.Cells {
			sum, seen := sums[cell.Answer]
			if !seen {
				answers = append(answers, cell.Answer)
			}
			if cell.Stored {
				sum[0] += cell.Spans
			} else {
				sum[1] += cell.Spans
			}
			sums[cell.Answer] = sum
		}
		for _, answer := range answers {
			if sum := sums[answer]; sum != [2]int64{} {
				b.row(append(runCells(run, rounds), text(answer), whole(sum[0]), whole(sum[1]))...)
			}
		}
	}
}

// reasons lists why requests were refused or stayed without an answer.
func (b *builder) reasons(r record.Record, rounds bool) {
	reason := Column{Title: "refused or unanswered because", Left: true}
	b.begin("Refusals", runColumns(rounds, reason, Column{Title: "spans"})...)
	b.table().Detail = true
	for _, run := range r.Runs {
		for _, why := range run.Sent.RefusedReasons {
			b.row(append(runCells(run, rounds), text(why.Reason), whole(why.Spans))...)
		}
	}
}
