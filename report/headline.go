package report

import (
	"fmt"
	"slices"
	"strings"

	"jaegerlab/lab/record"
)

// headline is one row for each arm: its figures, or with several rounds their medians.
func (b *builder) headline(r record.Record, all []arm, s source, limits map[string]Limit) {
	columns := []Column{colArm}
	rounds := severalRounds(r, all)
	if rounds {
		columns = append(columns, colRounds)
	}
	b.begin("Stored", append(columns, s.column, colPerSecond, colMissing, colStoredAfterDrain, colVerdict, colLimit)...)
	for _, a := range all {
		cells := []Cell{b.armCell(a)}
		if rounds {
			cells = append(cells, roundsCell(a))
		}
		f := figures{b: b, runs: a.measured()}
		b.row(append(cells, f.whole(s.value, s.why), f.show(s.perSecond, 1, s.why), f.missing(), f.afterDrain(),
			b.verdictCell(a), b.limitCell(a, limits))...)
	}
}

// limitCell names what held an arm's runs back, with the evidence of the first run of each kind.
func (b *builder) limitCell(a arm, limits map[string]Limit) Cell {
	counts := map[string]int{}
	var order, evidence []string
	for _, run := range a.measured() {
		limit := limits[run.Folder]
		text := limit.Text()
		if counts[text]++; counts[text] == 1 {
			order = append(order, text)
			evidence = append(evidence, inRound(a, run, limit.sentence()))
		}
		if uneven := imbalance(run); uneven != "" {
			evidence = append(evidence, inRound(a, run, uneven))
		}
	}
	if len(order) == 0 {
		return b.unknown("no run of this arm was measured to its end")
	}
	if len(order) > 1 {
		for i, text := range order {
			order[i] = fmt.Sprintf("%s %d", text, counts[text])
		}
	}
	for i, text := range order {
		order[i] = strings.Join(breakAt(text, limitWidth), "\n")
	}
	plain := strings.ReplaceAll(strings.Join(order, ", "), "\n", " ")
	return b.notes(Cell{Text: strings.Join(order, "\n"), Plain: plain}, evidence)
}

const limitWidth = 18 // characters of a limit before it is broken at a space

// armsTable says what each arm really was, and what it stored for what it was given.
func (b *builder) armsTable(r record.Record, all []arm, s source) {
	b.begin("Arms", colArm, colEngine, colStoreCPU, colPerCPU, colPerGB)
	per := map[string]Quantity{}
	for _, q := range Quantities(s) {
		per[q.Name] = q
	}
	for _, a := range all {
		f := figures{b: b, runs: a.measured()}
		b.row(armName(a.asked()), b.engineCell(a),
			f.show(storeCPU, 1, func(record.Run) string { return "no cgroup of a database node could be read, or only with the warm-up" }),
			f.show(per["per_database_cpu"].Value, 1, func(record.Run) string {
				return "the CPU of the database's nodes, or the compared figure, is not known"
			}),
			f.show(per["per_gb"].Value, 0, func(record.Run) string {
				return "nothing limits the memory of the database's nodes, or the compared figure is not known"
			}))
	}
}

// times is one row for each arm: what else was stored when, and how long things took.
func (b *builder) times(all []arm, s source) {
	other := byWriteTime
	if s.column.Title == byWriteTime.column.Title {
		other = byCounter
	}
	b.begin("Times", colArm, other.column, colAcked, colDrain, colStoreP50, colStoreP99, colRequestP50, colRequestP99)
	for _, a := range all {
		f := figures{b: b, runs: a.measured()}
		cells := []Cell{armName(a.asked()), f.whole(other.value, other.why),
			f.whole(func(run record.Run) *int64 { return known(run, run.Ledger.Acked) }, noLedger), f.drain()}
		cells = append(cells, f.percentiles(sendToStore, noLatency)...)
		b.row(append(cells, f.percentiles(request, noRequest)...)...)
	}
}

func severalRounds(r record.Record, all []arm) bool {
	return r.Spec.Rounds > 1 || slices.ContainsFunc(all, func(a arm) bool { return len(a.runs) > 1 })
}

// armCell names the arm and hangs every warning of its runs on it.
func (b *builder) armCell(a arm) Cell {
	c := armName(a.asked())
	for _, run := range a.runs {
		for _, warning := range run.Warnings {
			c = b.note(c, inRound(a, run, warning))
		}
	}
	return c
}

// armName breaks the name after the backend, which keeps tables narrow. A stand-in is labelled
// here, so that no table is without the label.
func armName(run record.Run) Cell {
	backend, rest, found := strings.Cut(clean(run.Arm), " ")
	if run.Engine.StandIn {
		backend += " STAND-IN"
	}
	if !found {
		return text(backend)
	}
	return lines(backend, rest)
}

func inRound(a arm, run record.Run, text string) string {
	if len(a.runs) > 1 {
		return fmt.Sprintf("round %d: %s", run.Round, text)
	}
	return text
}

func (b *builder) engineCell(a arm) Cell {
	run := a.asked()
	e := run.Engine
	if e.Name == "" {
		return b.unknown("the run ended before a server could be asked what it is")
	}
	first := strings.TrimSpace(e.Name + " " + e.Version)
	var rest string
	switch {
	case e.Nodes == 1:
		rest = "1 node"
	case e.Nodes > 1:
		rest = fmt.Sprintf("%d nodes", e.Nodes)
	}
	if e.Nodes > 0 && run.Spec.Replication > 0 {
		rest += fmt.Sprintf(", RF %d", run.Spec.Replication)
	}
	said := []string{first}
	if rest != "" {
		said = append(said, rest)
	}
	if run.Spec.Target != "" && e.Replication != "" { // nobody asked for a number of copies
		said = append(said, e.Replication)
	}
	c := lines(said...)
	if e.StandIn {
		c = lines("STAND-IN:", first, rest)
		c = b.note(c, standInText(run))
	}
	if len(e.Differences) > 0 {
		ships := "differs from what the official image ships: "
		if run.Spec.Backend.Engine.Embedded() {
			ships = "set by the lab, beside the store's defaults: "
		}
		if run.Spec.Target != "" {
			ships = ""
		}
		c = b.note(c, ships+strings.Join(e.Differences, "; "))
	}
	if e.Image != "" && strings.HasPrefix(e.Image, "jaegerlab/") {
		c = b.note(c, "runs a locally built image: "+e.Image)
	}
	return c
}

func standInText(run record.Run) string {
	return fmt.Sprintf("stand-in: %s %s ran in the place of %s; its figures test the lab, say nothing about %s, "+
		"and are never ranked",
		run.Engine.Name, run.Engine.Version, run.Spec.Backend.Engine, run.Spec.Backend.Engine)
}

func roundsCell(a arm) Cell {
	n := len(a.measured())
	if n == len(a.runs) {
		return whole(int64(n))
	}
	return text(fmt.Sprintf("%d of %d", n, len(a.runs)))
}

// figures shows one quantity after another of an arm's measured runs.
type figures struct {
	b    *builder
	runs []record.Run
}

func (f figures) whole(value func(record.Run) *int64, why func(record.Run) string) Cell {
	return f.show(asFloat(value), 0, why)
}

// show gives the value of a single run, or median and range; n/a with the reason of the first
// run that has none.
func (f figures) show(value func(record.Run) *float64, decimals int, why func(record.Run) string) Cell {
	if len(f.runs) == 0 {
		return f.b.unknown("no run of this arm was measured to its end")
	}
	s := spreadOf(f.runs, value)
	reason := ""
	if s.n < s.of {
		i := slices.IndexFunc(f.runs, func(run record.Run) bool { return value(run) == nil })
		reason = why(f.runs[i])
	}
	if s.n == 0 {
		return f.b.unknown(reason)
	}
	c := fixed(s.median, decimals)
	if s.of > 1 {
		least, most, brackets := fixed(s.least, decimals), fixed(s.most, decimals), "()"
		if s.interval {
			brackets = "[]"
		}
		if least.Text != most.Text {
			c.Text += "\n" + brackets[:1] + least.Text + " to " + most.Text + brackets[1:]
		}
	}
	if s.n < s.of {
		c = f.b.note(c, fmt.Sprintf("known in %d of %d rounds: %s", s.n, s.of, reason))
	}
	return c
}

func (f figures) missing() Cell {
	if len(f.runs) > 1 { // an exact count: what is missing in one round is not made up for by another
		if values, all := quantityMissing.values(f.runs); all {
			return fixed(sum(values), 0)
		}
	}
	missing := f.whole(func(run record.Run) *int64 {
		if noStore(run) {
			return nil
		}
		return known(run, run.Ledger.Missing)
	}, noLedger)
	if slices.ContainsFunc(f.runs, missingIsBound) && len(f.runs) == 1 && missing.Plain != "" {
		missing = f.b.note(bound("<=", missing), "at most: "+strings.Join(f.runs[0].Reasons, "; "))
	}
	return missing
}

func (f figures) afterDrain() Cell {
	return f.whole(func(run record.Run) *int64 { return run.StoredAfterDrain }, whyPartial)
}

func (f figures) drain() Cell {
	return f.show(func(run record.Run) *float64 { return run.DrainS }, 1, func(record.Run) string {
		return "the drain's bound was reached before everything stood still"
	})
}

// missingIsBound reports whether missing spans may yet turn out to be stored.
func missingIsBound(run record.Run) bool {
	return run.Verdict == record.Unknown && run.Ledger.Missing > 0
}

func known(run record.Run, value int64) *int64 {
	if !accounted(run) {
		return nil
	}
	return &value
}

func noLedger(run record.Run) string {
	if noStore(run) {
		return whyNoStore
	}
	return "the run has no ledger"
}

func noLatency(run record.Run) string { return "send-to-store latency: " + noWriteTime(run) }

// noWriteTime says why a run has no figure by write time.
func noWriteTime(run record.Run) string {
	if noStore(run) {
		return whyNoStore
	}
	if run.Spec.Backend.Engine.Embedded() {
		return fmt.Sprintf("%s keeps no write times", run.Spec.Backend.Engine)
	}
	return "not known by write time, see the run's warnings"
}

// why says why a run has no figure of this source.
func (s source) why(run record.Run) string {
	if noStore(run) {
		return whyNoStore
	}
	if s.column.Title == byCounter.column.Title {
		return "the collector's version has no counter of saved spans that could be read"
	}
	return noWriteTime(run)
}

// verdictCell shows the verdicts of an arm's runs with their reasons, and runs that did not end.
func (b *builder) verdictCell(a arm) Cell {
	counts := map[string]int{}
	var order []string
	var notes []string
	for _, run := range a.runs {
		word := string(run.Verdict)
		if noStore(run) {
			word = "ceiling"
		}
		if !measured(run) {
			word = "INCOMPLETE"
			notes = append(notes, inRound(a, run, "the run did not end: "+firstLine(run.Error)))
		}
		if counts[word]++; counts[word] == 1 {
			order = append(order, word)
		}
		for _, reason := range run.Reasons {
			notes = append(notes, inRound(a, run, reason))
		}
		if run.Unfit != "" {
			notes = append(notes, inRound(a, run, "not used to judge the store: "+run.Unfit))
		}
	}
	if len(order) == 1 {
		return b.notes(text(order[0]), notes)
	}
	for i, word := range order {
		order[i] = fmt.Sprintf("%s %d", word, counts[word])
	}
	return b.notes(lines(order...), notes)
}

// firstLine keeps a footnote short; report.md holds the whole text below Errors.
func firstLine(text string) string {
	text = strings.TrimSpace(text)
	first, _, more := strings.Cut(text, "\n")
	const most = 300
	if runes := []rune(first); len(runes) > most {
		first, more = string(runes[:most]), true
	}
	switch {
	case first == "":
		return "no reason was recorded"
	case more:
		return first + " ... (all of it in report.md, Errors)"
	}
	return first
}
