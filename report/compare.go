package report

import (
	"fmt"
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/report/stat"
)

// Gate is what a comparison of two saved results comes to for a pipeline.
type Gate int

// The gates, the worst first: a comparison is as bad as its worst arm. Unknown is not good: it
// says that a change beyond the threshold could be neither found nor excluded.
const (
	Regressed Gate = iota
	Undecided
	Unchanged // no change for the worse beyond the threshold
)

// String gives the gate as reports spell it.
func (g Gate) String() string { return [...]string{"REGRESSION", "unknown", "ok"}[g] }

// Change is one arm in two results.
type Change struct {
	Decision
	Gate Gate
	Why  string // in one sentence
}

// Compared is two saved results side by side.
type Compared struct {
	Changes []Change
	Gate    Gate
	Doc     Document
}

// Saved is a result on disk, read.
type Saved struct {
	Record record.Record
	Series map[string]Series // by the runs' folders; may be nil
}

// ReadSaved loads a comparison with the series of its runs, as far as they are there.
func ReadSaved(dir string) (Saved, error) {
	folder, err := record.Find(dir)
	if err != nil {
		return Saved{}, err
	}
	r, err := record.Load(folder)
	if err != nil {
		return Saved{}, err
	}
	saved := Saved{Record: r, Series: map[string]Series{}}
	for _, run := range r.Runs {
		if one, err := ReadSeries(folder, run); err == nil { // a record alone is enough
			saved.Series[run.Folder] = one
		}
	}
	return saved, nil
}

// Compare sets NEW against OLD, arm by arm. Threshold is the relative change for the worse that
// is a regression (0.05 = 5 %); quantity names what is compared, "" = spans stored in the window by
// the best source that both results have in every round.
func Compare(old, new Saved, threshold float64, quantity string) (Compared, error) {
	if threshold <= 0 || threshold >= 1 {
		return Compared{}, fmt.Errorf("compare: threshold %v: accepted is a share above 0 and below 1 (5%% = 0.05)",
			threshold)
	}
	pairs, alone, err := match(old.Record, new.Record)
	if err != nil {
		return Compared{}, err
	}
	q, s, err := chooseQuantity(quantity, pairs)
	if err != nil {
		return Compared{}, err
	}
	c := Compared{Gate: Unchanged}
	for _, p := range pairs {
		alpha := stat.Alpha / float64(len(pairs))
		c.Changes = append(c.Changes, change(old, new, p, q, threshold, alpha))
	}
	for _, name := range alone {
		c.Changes = append(c.Changes, Change{Decision: Decision{Old: name, New: name, Quantity: q}, Gate: Undecided,
			Why: "measured in one of the two results only"})
	}
	for _, one := range c.Changes {
		c.Gate = min(c.Gate, one.Gate)
	}
	c.Doc = compareDocument(old.Record, new.Record, c, pairs, s, threshold)
	return c, nil
}

// pair is an arm in both results.
type pair struct{ old, new arm }

// match pairs arms by name. Two results with one measured arm each are paired whatever its name.
func match(old, new record.Record) (pairs []pair, alone []string, err error) {
	before, after := measuredArms(old), measuredArms(new)
	for _, a := range before {
		i := slices.IndexFunc(after, func(b arm) bool { return a.name == b.name })
		if i < 0 {
			alone = append(alone, a.name)
			continue
		}
		pairs = append(pairs, pair{a, after[i]})
	}
	for _, b := range after {
		if !slices.ContainsFunc(before, func(a arm) bool { return a.name == b.name }) {
			alone = append(alone, b.name)
		}
	}
	switch {
	case len(before) == 0 || len(after) == 0:
		return nil, nil, fmt.Errorf("compare %s with %s: %d and %d arms were measured to their end; both need one",
			old.ID, new.ID, len(before), len(after))
	case len(pairs) > 0:
		return pairs, alone, nil
	case len(before) == 1 && len(after) == 1:
		return []pair{{before[0], after[0]}}, nil, nil
	}
	return nil, nil, fmt.Errorf("compare %s with %s: no arm is in both; the first has %s, the second %s",
		old.ID, new.ID, armNames(before), armNames(after))
}

func measuredArms(r record.Record) (all []arm) {
	for _, a := range stores(arms(r)) { // a black hole stores nothing that could have got worse
		if len(a.measured()) > 0 {
			all = append(all, a)
		}
	}
	return all
}

func armNames(all []arm) string {
	var names []string
	for _, a := range all {
		names = append(names, a.name)
	}
	return strings.Join(names, ", ")
}

// chooseQuantity finds what is compared; the source counts for figures that are derived from it.
func chooseQuantity(name string, pairs []pair) (Quantity, source, error) {
	var all []arm
	for _, p := range pairs {
		all = append(all, p.old, p.new)
	}
	s := pickSource(all)
	if name == "" {
		return s.quantity(), s, nil
	}
	var names []string
	for _, q := range Quantities(s) {
		if q.Name == name {
			return q, s, nil
		}
		names = append(names, q.Name)
	}
	return Quantity{}, s, fmt.Errorf("compare: quantity %q: accepted are %s", name, strings.Join(names, ", "))
}

// change judges one arm.
func change(old, new Saved, p pair, q Quantity, threshold, alpha float64) Change {
	limits := map[string]Limit{} // two results are not ranked, so what held them back forbids nothing
	treatment := inferred(p.old.asked().Spec, p.new.asked().Spec)
	if treatment == nil {
		treatment = []string{}
	}
	c := Change{Decision: decide(sideOf(old.Record, p.old), sideOf(new.Record, p.new), q, alpha, treatment, limits)}
	c.Winner = ""
	c.Gate, c.Why = judgeChange(c.Decision, p, threshold, generatorBound(old, p.old)+generatorBound(new, p.new))
	return c
}

// generatorBound says that the load node held back half of an arm's rounds or more: what they stored is
// its figure, not the store's.
func generatorBound(saved Saved, a arm) string {
	bound, why := 0, ""
	for _, run := range a.measured() {
		limit := LimitOf(saved.Record.Host, run, saved.Series[run.Folder])
		if limit.Kind != LimitGenerator {
			continue
		}
		if bound++; bound == 1 {
			why = limit.Evidence[0]
		}
	}
	if bound == 0 || 2*bound < len(a.measured()) {
		return ""
	}
	return fmt.Sprintf("; %s: %s was generator-bound in %d of %d rounds: %s", saved.Record.ID, a.name, bound, len(a.measured()), why)
}

// judgeChange decides in this order: what can't be compared, what was lost, what the generator hid, what
// the rounds say.
func judgeChange(d Decision, p pair, threshold float64, hidden string) (Gate, string) {
	if why := incomparable(d, p); why != "" {
		return Undecided, why
	}
	if lost := newLoss(p, threshold); lost != "" {
		return Regressed, lost
	}
	x := d.Difference
	switch {
	case !d.Known:
		return Undecided, d.Quantity.Title + " is not known in every round"
	case d.Quantity.Exact:
		return judgeCount(d.Quantity, p)
	case hidden != "":
		return Undecided, "nothing follows for what is compared" + hidden
	case x.Need > 0:
		return Undecided, fmt.Sprintf("n=%s, and the test needs %d rounds of each (LAB_ROUNDS)", rounds(x), x.Need)
	case x.Relative == nil:
		return Undecided, "the old median is 0, so there is no relative change"
	}
	worse, worst := *x.Relative, x.Hi
	if d.Quantity.Better == stat.Higher {
		worse, worst = -*x.Relative, negative(x.Lo)
	}
	text := strings.TrimSuffix(d.found(), ".")
	switch {
	case x.Real() && worse > threshold:
		return Regressed, text
	case x.Real() && worse < 0: // for the better, whatever its size
	case worst == nil:
		return Undecided, text + "; rounds with nothing in them give no interval that could exclude a change for the worse"
	case *worst > threshold:
		return Undecided, text + fmt.Sprintf("; a change for the worse of more than %.1f %% is not excluded%s", 100*threshold,
			neededFor(d, threshold))
	}
	return Unchanged, text
}

func negative(f *float64) *float64 {
	if f == nil {
		return nil
	}
	return new(-*f)
}

func neededFor(d Decision, threshold float64) string {
	if n, ok := d.Noise.Plan(threshold, d.Difference.Alpha); ok {
		return fmt.Sprintf(" (%d rounds would find it)", n)
	}
	return ""
}

// incomparable says why two sides are not the same measurement; "" when they are.
func incomparable(d Decision, p pair) string {
	old, new := p.old.measured(), p.new.measured()
	for _, one := range []struct {
		name string
		of   func(record.Run) string
	}{
		{"stand-in", func(run record.Run) string { return fmt.Sprint(run.Engine.StandIn) }},
		{"limits in force", func(run record.Run) string { return fmt.Sprint(run.LimitsInForce) }},
		{"profile", func(run record.Run) string { return string(run.Profile) }},
		{"load", func(run record.Run) string { return loadText(run.Load) }},
	} {
		for _, run := range slices.Concat(old, new) {
			if one.of(run) != one.of(old[0]) {
				return fmt.Sprintf("not the same measurement: %s is %s and %s", one.name, one.of(old[0]), one.of(run))
			}
		}
	}
	for _, run := range slices.Concat(old, new) {
		if run.Verdict == record.Unknown {
			return fmt.Sprintf("the verdict of %s, round %d, is unknown: %s", run.Arm, run.Round, strings.Join(run.Reasons,
				"; "))
		}
	}
	for _, a := range []arm{p.old, p.new} {
		if text := deaths(a.runs, a.name); text != "" {
			return text + ": what is left to compare are the rounds that went well"
		}
	}
	return ""
}

// newLoss compares the share of acked spans that are missing: a loss that was not there is a
// regression whatever the threshold, one that was there when it grew by more than that.
func newLoss(p pair, threshold float64) string {
	share := func(runs []record.Run) (missing, acked int64) {
		for _, run := range runs {
			missing, acked = missing+run.Ledger.Missing, acked+run.Ledger.Acked
		}
		return missing, acked
	}
	lostBefore, ackedBefore := share(p.old.measured())
	lost, acked := share(p.new.measured())
	grown := float64(lost)*float64(ackedBefore) > float64(lostBefore)*float64(acked)*(1+threshold)
	if lost == 0 || lostBefore > 0 && !grown {
		return ""
	}
	return fmt.Sprintf("%d of %d acked spans are missing, before it were %d of %d", lost, acked, lostBefore, ackedBefore)
}

func judgeCount(q Quantity, p pair) (Gate, string) {
	before, _ := q.values(p.old.measured())
	after, _ := q.values(p.new.measured())
	text := fmt.Sprintf("%s: %.0f in %d rounds, before %.0f in %d", q.Title, sum(after), len(after), sum(before),
		len(before))
	if mean(after) > mean(before) {
		return Regressed, text
	}
	return Unchanged, text
}
