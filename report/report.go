package report

import (
	"fmt"
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// Of gives the document of a record: first lines, headline, ledger, resources, and the details
// that only files show.
func Of(r record.Record) Document {
	all := arms(r)
	s := pickSource(all)
	doc := Document{
		Title: clean(fmt.Sprintf("%s, %s", r.Experiment, r.ID)),
		Notes: firstLines(r, all, s),
	}
	b := &builder{numbers: map[string]int{}}
	rounds := severalRounds(r, all)
	b.headline(r, all, s)
	if rounds {
		b.rounds(r, s)
	}
	b.ledger(r, rounds)
	b.resources(r, rounds)
	b.cells(r, rounds)
	b.reasons(r, rounds)
	b.timing(r, rounds)
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
		colStoreP50, colStoreP99, colVerdict)
	for _, run := range r.Runs {
		cells := runCells(run, true)
		one := arm{name: run.Arm, runs: []record.Run{run}}
		f := figures{b: b, runs: one.measured()}
		cells = append(cells, f.whole(s.value, s.why), f.show(s.perSecond, 1, s.why))
		cells = append(cells, f.ledgerCells()...)
		b.row(append(cells, b.verdictCell(one))...)
	}
}

// firstLines is what decides how the figures may be read, the worst first.
func firstLines(r record.Record, all []arm, s source) []string {
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
	overcommitted(r, say)
	limitsNotInForce(all, say)
	say("%s", setting(r))
	if s.note != "" {
		say("%s", s.note)
	}
	winner(all, say)
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

// winner says how far the figures go: never to a winner.
func winner(all []arm, say func(string, ...any)) {
	compared, most := 0, 0
	for _, a := range all {
		n := len(a.measured())
		if n == 0 || a.asked().Engine.StandIn {
			continue
		}
		compared++
		most = max(most, n)
	}
	switch {
	case compared < 2:
	case most == 1:
		say("One round: no winner. Single runs on one machine differ by more than ten per cent by themselves; " +
			"LAB_ROUNDS asks for more.")
	default:
		say("Medians of up to %d rounds with their range: no winner is named.", most)
	}
}
