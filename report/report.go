package report

import (
	"fmt"
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// Of gives the document of a record: first lines, headline, comparison, ledger, resources, and the
// details that only files show.
func Of(r record.Record) Document { return OfSeries(r, nil) }

// OfSeries is Of with the per-second series of the runs, by the runs' folders; they add evidence
// of what held a run back.
func OfSeries(r record.Record, series map[string]Series) Document {
	all := arms(r)
	s := pickSource(all)
	limits := map[string]Limit{}
	for _, run := range r.Runs {
		limits[run.Folder] = LimitOf(r.Host, run, series[run.Folder])
	}
	list := decisions(r, stores(all), s, limits)
	doc := Document{
		Title: clean(fmt.Sprintf("%s, %s", r.Experiment, r.ID)),
		Notes: firstLines(r, all, s, list),
	}
	for _, d := range list {
		doc.Judgements = append(doc.Judgements, Judgement{clean(d.Sentence()), clean(d.Fairness.Text()), d.Fairness.Fair()})
	}
	b := &builder{numbers: map[string]int{}}
	rounds := severalRounds(r, all)
	b.headline(r, all, s, limits)
	b.comparison(list)
	b.armsTable(r, all, s)
	b.times(all, s)
	if rounds {
		b.rounds(r, s)
	}
	b.ledger(r, rounds)
	b.resources(r, rounds)
	b.pace(r, rounds)
	b.quantities(r, stores(all), s)
	b.cells(r, rounds)
	b.reasons(r, rounds)
	b.timing(r, rounds)
	b.writes(r, rounds)
	b.writesByTable(r, rounds)
	b.counters(r, rounds)
	for _, t := range b.tables {
		if len(t.Rows) > 0 {
			doc.Tables = append(doc.Tables, t)
		}
	}
	return doc
}

// rounds shows what the headline's medians are made of, run by run.
func (b *builder) rounds(r record.Record, s source) {
	b.begin("Rounds", colArm, colRound, s.column, colPerSecond, colAcked, colMissing, colStoredAfterDrain, colDrain,
		colVerdict)
	for _, run := range r.Runs {
		one := arm{name: run.Arm, runs: []record.Run{run}}
		f := figures{b: b, runs: one.measured()}
		b.row(append(runCells(run, true), f.whole(s.value, s.why), f.show(s.perSecond, 1, s.why),
			f.whole(func(run record.Run) *int64 { return known(run, run.Ledger.Acked) }, noLedger), f.missing(), f.afterDrain(),
			f.drain(), b.verdictCell(one))...)
	}
}

// firstLines is what decides how the figures may be read, the worst first.
func firstLines(r record.Record, all []arm, s source, list []Decision) []string {
	var notes []string
	say := func(format string, args ...any) { notes = append(notes, clean(fmt.Sprintf(format, args...))) }
	if !r.Complete {
		say("INCOMPLETE: %s. %s", firstLine(r.Incomplete), progress(r, all))
	}
	for _, a := range all {
		if run := a.asked(); run.Engine.StandIn {
			say("STAND-IN: %s: %s", a.name, strings.TrimPrefix(standInText(run), "stand-in: "))
		}
	}
	targets(all, say)
	overcommitted(r, say)
	limitsNotInForce(all, say)
	say("%s", setting(r))
	if s.note != "" {
		say("%s", s.note)
	}
	verdicts(list, say)
	if text := ceilings(all, s); text != "" {
		say("%s", text)
	}
	for _, left := range r.LeftOut {
		if left.Arm == left.Reason {
			say("Left out: %s", left.Reason)
			continue
		}
		say("Left out: %s: %s", left.Arm, left.Reason)
	}
	for _, warning := range r.Warnings {
		say("Warning: %s", warning)
	}
	return notes
}

// progress says what of the plan was measured and which arms never started.
func progress(r record.Record, all []arm) string {
	done := 0
	for _, a := range all {
		done += len(a.measured())
	}
	text := fmt.Sprintf("%d runs were measured to their end", done)
	if done == 1 {
		text = "1 run was measured to its end"
	}
	var never []string
	for _, planned := range r.Spec.Arms() {
		name := planned.Name()
		started := slices.ContainsFunc(all, func(a arm) bool { return a.name == name })
		left := slices.ContainsFunc(r.LeftOut, func(l record.LeftOut) bool { return strings.HasPrefix(name+" ", l.Arm+" ") })
		if !started && !left {
			never = append(never, name)
		}
	}
	if never != nil {
		text += "; never started: " + strings.Join(never, ", ")
	}
	return text + "."
}

func overcommitted(r record.Record, say func(string, ...any)) {
	if slices.ContainsFunc(r.Runs, func(run record.Run) bool { return run.Overcommitted }) {
		say("OVERCOMMITTED: this machine has %d CPUs, fewer than the hosts that the profile stands for have together; "+
			"programs share them, and figures are lower than on such hosts.", r.Host.CPUs)
	}
}

func limitsNotInForce(all []arm, say func(string, ...any)) {
	var without, with []string
	for _, a := range all {
		for _, run := range a.runs {
			switch {
			case run.Profile == spec.None || len(run.Nodes) == 0 || !measured(run):
			case run.LimitsInForce:
				with = append(with, a.name)
			default:
				without = append(without, a.name)
			}
		}
	}
	with, without = slices.Compact(with), slices.Compact(without)
	switch {
	case len(without) > 0 && len(with) > 0:
		say("LIMITS NOT IN FORCE for %s: shown, but not comparable with %s.", strings.Join(without, ", "+
			""), strings.Join(with, ", "))
	case len(without) > 0:
		say("LIMITS NOT IN FORCE: this machine did not enforce the profile's limits, or they could not be read back.")
	}
}

// setting is the work and where it ran, in one line.
func setting(r record.Record) string {
	var runtimes []string
	for _, run := range r.Runs {
		if name := string(run.Runtime); !slices.Contains(runtimes, name) {
			runtimes = append(runtimes, name)
		}
	}
	runtime := strings.Join(runtimes, ", ")
	if runtime == "" {
		runtime = string(r.Spec.Runtime)
	}
	l := r.Spec.Load
	text := fmt.Sprintf("Runtime %s, profile %s; %d workers, traces of 1 + %d spans, %d tags a span, window %d s",
		runtime, r.Spec.Profile, l.Concurrency, l.SpansCount, l.TagsCount, l.DurationS)
	if l.WarmupS > 0 {
		text += fmt.Sprintf(" after %d s of warm-up", l.WarmupS)
	}
	return text + "."
}

// verdicts says what each comparison came to, and how far it is fair.
func verdicts(list []Decision, say func(string, ...any)) {
	if len(list) > 1 {
		say("Each arm is compared with the first; with %d comparisons a difference is called at p of at most %s.", len(list),
			short(list[0].Difference.Alpha))
	}
	for _, d := range list {
		say("%s", d.Sentence())
		say("%s", d.Fairness.Text())
	}
}
