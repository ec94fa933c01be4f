package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/report/stat"
)

// Decision is what a comparison of two arms comes to.
type Decision struct {
	Old, New   string
	Quantity   Quantity        // that decides
	Difference stat.Difference // in it; zero when a side has no value
	Known      bool            // both sides have the quantity in every measured round
	Noise      stat.Noise      // of both arms' rounds
	Fairness   Fairness
	Obstacles  []string // why no winner is named, whatever the figures are
	Winner     string   // "" = none
}

// No text of a verdict says more than this.
const (
	noWinner     = "No winner"
	noDifference = "No difference found"
)

// sideOf is an arm's measured runs with their record.
func sideOf(r record.Record, a arm) (sides []side) {
	for _, run := range a.measured() {
		sides = append(sides, side{run: run, record: r})
	}
	return sides
}

// decide compares two arms by the deciding quantity; limits are those of each run, by folder.
func decide(old, new []side, q Quantity, alpha float64, treatment []string, limits map[string]Limit) Decision {
	d := Decision{Old: old[0].run.Arm, New: new[0].run.Arm, Quantity: q}
	d.Fairness = fairness(old, new, treatment)
	before, allOld := d.Quantity.values(runsOf(old))
	after, allNew := d.Quantity.values(runsOf(new))
	if d.Known = allOld && allNew; d.Known {
		d.Difference = stat.Compare(before, after, alpha)
		d.Noise = stat.NoiseOf(before, after)
	}
	d.obstacles(old, new, limits)
	if len(d.Obstacles) == 0 && d.Fairness.Fair() && d.Known && d.Difference.Real() && d.Difference.Relative != nil {
		if d.Winner = d.New; (*d.Difference.Relative > 0) != (d.Quantity.Better == stat.Higher) {
			d.Winner = d.Old
		}
	}
	return d
}

func runsOf(sides []side) (runs []record.Run) {
	for _, s := range sides {
		runs = append(runs, s.run)
	}
	return runs
}

// obstacles are what forbids to rank at all.
func (d *Decision) obstacles(old, new []side, limits map[string]Limit) {
	say := func(format string, args ...any) { d.Obstacles = append(d.Obstacles, fmt.Sprintf(format, args...)) }
	for _, sides := range [][]side{old, new} {
		name, runs := sides[0].run.Arm, runsOf(sides)
		if one := runs[0].Spec.Backend.Engine; one == spec.Memory && old[0].run.Spec.Backend.Engine != new[0].run.Spec.Backend.Engine {
			say("%s is the collector's ceiling, which is not ranked as a store", name)
		}
		if runs[0].Engine.StandIn {
			say("%s is a stand-in, which is never ranked", name)
		}
		for _, verdict := range []record.Verdict{record.Lossy, record.Unknown} {
			n := 0
			for _, run := range runs {
				if run.Verdict == verdict {
					n++
				}
			}
			if n > 0 {
				say("%s is %s in %d of %d rounds", name, verdict, n, len(runs))
			}
		}
		for _, run := range runs {
			if run.Unfit != "" {
				say("%s, round %d, does not judge its store: %s", name, run.Round, run.Unfit)
			}
		}
		if text := deaths(sides[0].record.Runs, name); text != "" {
			say("%s: what is compared are the rounds that went well", text)
		}
		d.limits(name, runs, limits)
	}
	if !d.Known {
		say("%s is not known in every round", d.Quantity.Title)
	}
}

// deaths names what of an arm died under its load, so that the rounds left to compare are those that
// went well; "" = nothing. A run that was interrupted says nothing of its arm.
func deaths(runs []record.Run, name string) string {
	all, dead, first := 0, 0, ""
	for _, run := range runs {
		if run.Arm != name {
			continue
		}
		all++
		for _, n := range run.Nodes {
			if measured(run) || n.Exit == "" || n.Host != spec.DatabaseHost && n.Host != spec.CollectorHost {
				continue
			}
			if dead++; dead == 1 {
				first = fmt.Sprintf("%s in round %d: %s", n.Name, run.Round, firstLine(n.Exit))
			}
			break
		}
	}
	if dead == 0 {
		return ""
	}
	return fmt.Sprintf("%s died in %d of %d rounds (%s)", name, dead, all, first)
}

// limits says what held an arm back, and forbids to rank what could not show itself in half of its
// rounds, whatever hid it in each.
func (d *Decision) limits(name string, runs []record.Run, limits map[string]Limit) {
	before := map[string]int{}
	hidden := 0
	for _, run := range runs {
		if limit, ok := limits[run.Folder]; ok && d.hidesTreatment(limit) {
			before[string(limit.Kind)]++
			hidden++
		}
	}
	if hidden == 0 || 2*hidden < len(runs) {
		return
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(before)) {
		kinds = append(kinds, fmt.Sprintf("%s in %d", kind, before[kind]))
	}
	d.Obstacles = append(d.Obstacles, fmt.Sprintf("%s was held back by its %s of %d rounds, before what is compared "+
		"could show what it can do", name, strings.Join(kinds, " and "), len(runs)))
}

// hidesTreatment reports whether a limit stands before what is compared: the generator before a
// collector and a store, the collector before a store.
func (d *Decision) hidesTreatment(l Limit) bool {
	treated := func(what string) bool { return slices.Contains(d.Fairness.Treatment, what) }
	if l.Kind == LimitGenerator || l.Kind == LimitRate {
		return (treated(spec.TreatEngine) || treated(spec.TreatCollector)) && !treated(spec.TreatClient)
	}
	return l.BeforeStore() && treated(spec.TreatEngine) && !treated(spec.TreatCollector)
}

// percent spells a relative difference: "+12.3 %".
func percent(share float64) string {
	if math.IsInf(share, 0) || math.IsNaN(share) {
		return notAvailable
	}
	return fmt.Sprintf("%+.1f %%", 100*share)
}

// Delta is the difference for a table: "~" for noise, as benchstat has it.
func Delta(d stat.Difference) string {
	switch {
	case !d.Real():
		return "~"
	case d.Relative == nil:
		return "?" // from zero: no share
	}
	return percent(*d.Relative)
}

// rounds is n as benchstat writes it: "5", or "3+5".
func rounds(d stat.Difference) string {
	if d.Old.N == d.New.N {
		return fmt.Sprint(d.Old.N)
	}
	return fmt.Sprintf("%d+%d", d.Old.N, d.New.N)
}

// Sentence is the verdict of the comparison in words: what was found, and whether it ranks.
func (d Decision) Sentence() string {
	about := fmt.Sprintf("%s against %s, %s: ", d.New, d.Old, d.Quantity.Title)
	return about + strings.Join(append([]string{d.found()}, d.ranked()), " ")
}

// found says what the rounds say.
func (d Decision) found() string {
	x := d.Difference
	switch {
	case !d.Known:
		return "no figures to compare."
	case x.Need > 0:
		single := ""
		if x.Old.N == 1 || x.New.N == 1 {
			single = " Single runs on one machine differ by more than ten per cent by themselves."
		}
		return fmt.Sprintf("n=%s, and the test needs %d rounds of each (LAB_ROUNDS).%s", rounds(x), x.Need, single)
	case x.Real():
		text := Delta(x)
		if x.Lo != nil {
			text += fmt.Sprintf(" (%s %% interval %s to %s)", confidence(x.Alpha), percent(*x.Lo), percent(*x.Hi))
		}
		return fmt.Sprintf("%s, %s, n=%s.", text, pText(x.P), rounds(x))
	}
	text := fmt.Sprintf("~ (%s, n=%s)", pText(x.P), rounds(x))
	if x.Lo != nil {
		text += fmt.Sprintf(", between %s and %s", percent(*x.Lo), percent(*x.Hi))
	}
	return text + "." + d.sensitivity()
}

func confidence(alpha float64) string { return short(math.Round(1000*(1-alpha)) / 10) }

// sensitivity says what so many rounds would have found, and how many find a smaller effect.
func (d Decision) sensitivity() string {
	const planned = 0.05
	n := min(d.Difference.Old.N, d.Difference.New.N)
	effect, ok := d.Noise.Detectable(n, d.Difference.Alpha)
	if !ok {
		return ""
	}
	text := fmt.Sprintf(" At this noise %d rounds find %.1f %% in nine of ten comparisons", n, 100*effect)
	if effect > planned {
		if need, ok := d.Noise.Plan(planned, d.Difference.Alpha); ok {
			text += fmt.Sprintf(", 5 %% needs %d", need)
		} else {
			text += ", 5 % needs more than 200"
		}
	}
	return text + "."
}

// ranked says who wins, or why nobody does.
func (d Decision) ranked() string {
	switch {
	case d.Winner != "":
		return fmt.Sprintf("Winner: %s.", d.Winner)
	case d.Known && d.Difference.Need > 0:
		return noWinner + "."
	case len(d.Obstacles) > 0:
		return noWinner + ": " + strings.Join(d.Obstacles, "; ") + "."
	case d.Known && !d.Difference.Real():
		return noDifference + "."
	}
	return noWinner + ": the comparison is unfair."
}

// decisions compares every other arm with the first one that was measured. The risk of calling a
// difference where there is none is shared among them.
func decisions(r record.Record, all []arm, s source, limits map[string]Limit) (list []Decision) {
	var sides [][]side
	for _, a := range all {
		if one := sideOf(r, a); len(one) > 0 && !(a.engine() == spec.Memory && len(sides) > 0 && len(lacking([]arm{a}, s)) > 0) {
			sides = append(sides, one)
		}
	}
	for i := 1; i < len(sides); i++ {
		alpha := stat.Alpha / float64(len(sides)-1)
		list = append(list, decide(sides[0], sides[i], s.quantity(), alpha, r.Spec.Treatment, limits))
	}
	return list
}

// leastP is below what three places show: no probability is zero.
const leastP = 0.0005

// pText spells a probability.
func pText(p float64) string {
	if p < leastP {
		return "p<0.001"
	}
	return fmt.Sprintf("p=%.3f", p)
}
