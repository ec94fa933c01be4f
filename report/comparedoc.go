package report

import (
	"fmt"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/report/stat"
)

var (
	colGate = Column{Title: "gate", Left: true,
		How: "REGRESSION: worse by more than the threshold, and by more than noise, or " +
			"spans are lost that were not. unknown: a change beyond the threshold is neither found nor excluded. ok: excluded."}
	colOld = Column{Title: "old", How: "median of the old result's rounds, with interval."}
	colNew = Column{Title: "new", How: "median of the new result's rounds, with interval."}
)

// compareDocument shows two results side by side.
func compareDocument(old, new record.Record, c Compared, pairs []pair, s source, threshold float64) Document {
	doc := Document{Title: clean(fmt.Sprintf("%s %s against %s %s", new.Experiment, new.ID, old.Experiment, old.ID))}
	say := func(format string, args ...any) { doc.Notes = append(doc.Notes, clean(fmt.Sprintf(format, args...))) }
	say("Gate: %s, at a threshold of %.1f %%.", c.Gate, 100*threshold)
	for _, one := range c.Changes {
		say("%s: %s: %s.", one.New, one.Gate, one.Why)
	}
	if old.Experiment != new.Experiment {
		say("The results are of different experiments: %s and %s.", old.Experiment, new.Experiment)
	}
	for _, r := range []record.Record{old, new} {
		if !r.Complete {
			say("INCOMPLETE: %s: %s.", r.ID, firstLine(r.Incomplete))
		}
	}
	confounders(c, say)
	say("Each result is one session on its machine: what changes from one session to the next is in no p.")
	b := &builder{numbers: map[string]int{}}
	b.changes(c, pairs)
	b.begin("Every quantity compared", colArm, colQuantity, colBetter, colOther, colThis, colDelta, colInterval, colP,
		colN)
	b.table().Detail = true
	for _, p := range pairs {
		b.allQuantities(p.old, p.new, s)
	}
	doc.Tables = b.tables
	return doc
}

// confounders lists what differs beside the arm itself: a change may come from any of it.
func confounders(c Compared, say func(string, ...any)) {
	seen := map[string]bool{}
	var differs, unknown []string
	for _, one := range c.Changes {
		for _, d := range one.Fairness.Differs {
			if text := d.text(); !seen[text] {
				seen[text] = true
				differs = append(differs, text)
			}
		}
		for _, d := range one.Fairness.Unchecked {
			if !seen[d.Name] {
				seen[d.Name] = true
				unknown = append(unknown, d.Name)
			}
		}
	}
	if len(differs) > 0 {
		say("A change may come from anything in which the results differ: %s.", strings.Join(differs, "; "))
	} else {
		say("Nothing that was recorded differs between the results.")
	}
	if len(unknown) > 0 {
		say("Not recorded: %s.", strings.Join(unknown, ", "))
	}
}

func (b *builder) changes(c Compared, pairs []pair) {
	b.begin("Change", colArm, colQuantity, colOld, colNew, colDelta, colInterval, colP, colN, colGate)
	for i, one := range c.Changes {
		cells := []Cell{armName(record.Run{Arm: one.New}), lines(breakAt(one.Quantity.Title, limitWidth)...)}
		if i >= len(pairs) || !one.Known {
			none := b.unknown(one.Why)
			b.row(append(cells, none, none, none, none, none, none, text(one.Gate.String()))...)
			continue
		}
		before, _ := one.Quantity.values(pairs[i].old.measured())
		after, _ := one.Quantity.values(pairs[i].new.measured())
		if one.Quantity.Exact {
			none := Cell{Text: "-"}
			cells = append(cells, fixed(sum(before), 0), fixed(sum(after), 0), text(exactDelta(mean(before), mean(after))), none,
				none, text(exactRounds(before, after)))
		} else {
			cells = append(cells, medianCell(before, one.Quantity.digits), medianCell(after, one.Quantity.digits))
			cells = append(cells, b.differenceCells(one.Difference, true)...)
		}
		b.row(append(cells, b.note(text(one.Gate.String()), one.New+": "+one.Why))...)
	}
}

// medianCell puts the interval on a line of its own.
func medianCell(values []float64, digits int) Cell {
	s := stat.Summarize(values)
	c := fixed(s.Median, digits)
	if s.Lo != nil {
		c.Text += "\n[" + fixed(*s.Lo, digits).Text + " to " + fixed(*s.Hi, digits).Text + "]"
	}
	return c
}
