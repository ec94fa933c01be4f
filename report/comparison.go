package report

import (
	"fmt"

	"jaegerlab/lab/record"
	"jaegerlab/report/stat"
)

// comparison is one row for each arm that is compared with the first.
func (b *builder) comparison(list []Decision) {
	b.begin("Comparison", colArm, colBase, colDelta, colInterval, colP, colN, colRanking)
	for _, d := range list {
		base := armName(record.Run{Arm: d.Old})
		cells := []Cell{armName(record.Run{Arm: d.New}), base}
		cells = append(cells, b.differenceCells(d.Difference, d.Known)...)
		winner := "none"
		if d.Winner != "" {
			winner = d.Winner
		}
		b.row(append(cells, armName(record.Run{Arm: winner}))...)
	}
}

// differenceCells are difference, interval, p and n.
func (b *builder) differenceCells(d stat.Difference, known bool) []Cell {
	if !known {
		none := b.unknown("not known in every round of both arms")
		return []Cell{none, none, none, none}
	}
	delta := text(Delta(d))
	if d.Need > 0 {
		delta = b.unknown(fmt.Sprintf("fewer rounds than the test needs: %d of each (LAB_ROUNDS)", d.Need))
	}
	var interval Cell
	if d.Lo != nil {
		interval = text(percent(*d.Lo) + " to " + percent(*d.Hi))
	} else {
		interval = b.unknown("an interval needs as many rounds as the test, and no zeros")
	}
	p := fixed(d.P, 3)
	if d.P < leastP {
		p = bound("<", fixed(0.001, 3))
	}
	if d.Need > 0 {
		p = Cell{Text: notAvailable, Notes: delta.Notes}
	}
	return []Cell{delta, interval, p, text(rounds(d))}
}

// quantities compares every quantity of every arm with the first arm's.
func (b *builder) quantities(r record.Record, all []arm, s source) {
	b.begin("Every quantity compared", colArm, colQuantity, colBetter, colOther, colThis, colDelta, colInterval, colP,
		colN)
	b.table().Detail = true
	var base *arm
	for _, a := range all {
		if len(a.measured()) == 0 {
			continue
		}
		if base == nil {
			base = &a
			continue
		}
		b.allQuantities(*base, a, s)
	}
}

func (b *builder) allQuantities(base, a arm, s source) {
	for _, q := range Quantities(s) {
		b.quantity(base, a, q, stat.Alpha)
	}
	b.latency(base, a, "send to store", sendToStore)
	b.latency(base, a, "request", request)
}

func (b *builder) quantity(base, a arm, q Quantity, alpha float64) {
	title := q.Title
	if q.Unit != "" {
		title += " (" + q.Unit + ")"
	}
	before, allOld := q.values(base.measured())
	after, allNew := q.values(a.measured())
	cells := []Cell{armName(a.asked()), text(title), text(string(q.Better))}
	if !allOld || !allNew {
		return // what one side does not have is no comparison; the tables above say why
	}
	if q.Exact {
		none := Cell{Text: "-"}
		b.row(append(cells, fixed(sum(before), 0), fixed(sum(after), 0), text(exactDelta(mean(before), mean(after))), none,
			none, text(exactRounds(before, after)))...)
		return
	}
	d := stat.Compare(before, after, alpha)
	b.row(append(append(cells, summaryCell(before, q.digits), summaryCell(after, q.digits)), b.differenceCells(d,
		true)...)...)
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// mean is of at least one value. Sums of unequal numbers of rounds are only compared by it.
func mean(values []float64) float64 { return sum(values) / float64(len(values)) }

// exactRounds is the n of a count: of how many rounds each sum is, where that differs.
func exactRounds(old, new []float64) string {
	if len(old) == len(new) {
		return "exact"
	}
	return fmt.Sprintf("exact, %d+%d", len(old), len(new))
}

func exactDelta(old, new float64) string {
	switch {
	case old == new:
		return "same"
	case old == 0:
		return "?"
	}
	return percent(new/old - 1)
}

func summaryCell(values []float64, digits int) Cell {
	s := stat.Summarize(values)
	c := fixed(s.Median, digits)
	if s.Lo != nil {
		c.Text += " [" + fixed(*s.Lo, digits).Text + " to " + fixed(*s.Hi, digits).Text + "]"
	}
	return c
}

// latency compares percentiles of all rounds together: one value a side, so nothing to test.
func (b *builder) latency(base, a arm, title string, of func(record.Run) *record.Latency) {
	before, err1 := merged(base.measured(), of)
	after, err2 := merged(a.measured(), of)
	if before == nil || after == nil || err1 != nil || err2 != nil {
		return
	}
	for _, p := range []struct {
		name     string
		old, new float64
	}{{"p50", before.P50, after.P50}, {"p99", before.P99, after.P99}, {"max", before.Max, after.Max}} {
		none := Cell{Text: "-"}
		b.row(armName(a.asked()), text(title+" "+p.name+" (ms)"), text(string(stat.Lower)), fixed(p.old, 1), fixed(p.new, 1),
			text(exactDelta(p.old, p.new)), none, none, text("merged"))
	}
}
