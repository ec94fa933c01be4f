package report

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// Confounder is something beside the treatment in which two arms differ, or may differ.
type Confounder struct {
	Name     string
	Old, New string // what each arm has; "" = not known
}

// Fairness says whether a difference between two arms can only come from the treatment.
type Fairness struct {
	Treatment []string     // what the arms are meant to differ in
	Declared  bool         // by the experiment, or inferred from the arms
	Differs   []Confounder // known to differ: no winner
	NotKnown  []Confounder // that could decide and was not recorded: no winner either
	Unchecked []Confounder // of the machine's state, not recorded: said, but no obstacle
}

// Fair reports whether a winner may be named.
func (f Fairness) Fair() bool { return len(f.Differs) == 0 && len(f.NotKnown) == 0 }

// Text is the fairness in one sentence.
func (f Fairness) Text() string {
	what := "nothing is meant to differ"
	if len(f.Treatment) > 0 {
		what = "meant to differ in " + strings.Join(f.Treatment, ", ")
	}
	if !f.Declared {
		what += " (inferred: the experiment declares no treatment)"
	}
	var also []string
	for _, c := range f.Differs {
		also = append(also, c.text())
	}
	for _, c := range f.NotKnown {
		also = append(also, c.Name+" (not known)")
	}
	text := "Fair: " + what + ", and nothing else that decides differs."
	if len(also) > 0 {
		text = "Unfair: " + what + ", but they also differ in " + strings.Join(also, "; ") + "."
	}
	if len(f.Unchecked) > 0 {
		var names []string
		for _, c := range f.Unchecked {
			names = append(names, c.Name)
		}
		text += " Not recorded: " + strings.Join(names, ", ") + "."
	}
	return text
}

func (c Confounder) text() string {
	if c.Old == "" && c.New == "" {
		return c.Name
	}
	return fmt.Sprintf("%s (%s against %s)", c.Name, orNothing(c.Old), orNothing(c.New))
}

func orNothing(value string) string {
	if value == "" {
		return "not known"
	}
	return value
}

// factor is one property of an arm that may decide its figures.
type factor struct {
	name string
	// of gives the property of one run; "" = not known
	of func(side) string
	// treatment that this belongs to; "" = it is always a confounder
	treatment string
	// state of the machine, which chance spreads over the arms: not known is no obstacle
	state bool
	// same decides whether two values count as one; nil = equal text
	same func(a, b string) bool
}

// side is one run in its record.
type side struct {
	run    record.Run
	record record.Record
}

func factors() []factor {
	return []factor{
		{name: "engine", of: func(s side) string { return engineText(s.run) }, treatment: spec.TreatEngine},
		{name: "node count", of: func(s side) string { return nodeCount(s.run) }, treatment: spec.TreatEngine},
		{name: "the database host's CPUs", of: func(s side) string { return storeCPUs(s.run) }},
		{name: "the database host's memory", of: func(s side) string { return storeMemory(s.run) }},
		{name: "where the store runs", of: func(s side) string { return whereStored(s.run) }},
		{name: "replication", of: func(s side) string { return strconv.Itoa(s.run.Spec.Replication) }},
		{name: "write consistency", of: func(s side) string { return consistency(s.run) }},
		{name: "read consistency", of: func(s side) string { return readConsistency(s.run) }},
		{name: "commit-log sync", of: func(s side) string { return serverSetting(s.run, "commitlog_sync") }},
		{name: "disk", of: func(s side) string { return serverSetting(s.run, "disk") }},
		{name: "collector", of: func(s side) string { return programText(s.run.Collector.Program) },
			treatment: spec.TreatCollector},
		{name: "client", of: func(s side) string { return s.run.Client }, treatment: spec.TreatClient},
		{name: "profile", of: func(s side) string { return string(s.run.Profile) }},
		{name: "limits in force", of: func(s side) string { return strconv.FormatBool(s.run.LimitsInForce) }},
		{name: "runtime", of: func(s side) string { return string(s.run.Runtime) }},
		{name: "load", of: func(s side) string { return loadText(s.run.Load) }},
		{name: "host", of: func(s side) string { return hostText(s.record.Host) }},
		{name: "version of the lab", of: func(s side) string { return s.record.Lab }},
		{name: "CPUs that others used on the host", of: func(s side) string { return number(s.run.HostLoad) }, state: true,
			same: alike(othersApart)},
		{name: "compactions pending at the end", of: func(s side) string { return backlog(s.run) }, state: true,
			same: alike(backlogApart)},
	}
}

// How far the machine's state may differ between two arms: CPUs used by others, and pending
// compactions, medians over the rounds.
const (
	othersApart  = 0.25
	backlogApart = 2
)

// alike takes numbers for one that are at most so far apart.
func alike(apart float64) func(a, b string) bool {
	return func(a, b string) bool {
		x, errX := strconv.ParseFloat(a, 64)
		y, errY := strconv.ParseFloat(b, 64)
		return errX == nil && errY == nil && max(x-y, y-x) <= apart
	}
}

// fairness compares two arms; treatment nil means that none was declared.
func fairness(old, new []side, treatment []string) Fairness {
	f := Fairness{Treatment: treatment, Declared: treatment != nil}
	if !f.Declared {
		f.Treatment = inferred(old[0].run.Spec, new[0].run.Spec)
	}
	engines := slices.Contains(f.Treatment, spec.TreatEngine) &&
		old[0].run.Spec.Backend.Engine != new[0].run.Spec.Backend.Engine
	for _, one := range factors() {
		if one.treatment != "" && slices.Contains(f.Treatment, one.treatment) {
			continue
		}
		c := Confounder{Name: one.name, Old: common(old, one), New: common(new, one)}
		same := one.same
		if same == nil {
			same = func(a, b string) bool { return a == b }
		}
		switch {
		case c.Old != "" && c.New != "" && same(c.Old, c.New):
		case c.Old != "" && c.New != "":
			f.Differs = append(f.Differs, c)
		case one.state:
			f.Unchecked = append(f.Unchecked, c)
		case engines || c.Old != c.New: // one engine from one lab has one configuration, said or not
			f.NotKnown = append(f.NotKnown, c)
		}
	}
	if !slices.Contains(f.Treatment, spec.TreatCollector) {
		f.Differs = append(f.Differs, settingsDiffer(old[0].run, new[0].run)...)
	}
	return f
}

// inferred is what the arms differ in by name.
func inferred(old, new spec.Arm) []string {
	var all []string
	if old.Backend != new.Backend {
		all = append(all, spec.TreatEngine)
	}
	if old.Collector != new.Collector {
		all = append(all, spec.TreatCollector)
	}
	if old.Client != new.Client {
		all = append(all, spec.TreatClient)
	}
	return all
}

// common is the value of all rounds of an arm; numbers are their median, other values that
// changed between rounds stand beside each other.
func common(sides []side, f factor) string {
	var values []string
	var numbers []float64
	for _, s := range sides {
		v := f.of(s)
		if v == "" {
			return ""
		}
		if n, err := strconv.ParseFloat(v, 64); err == nil && f.same != nil {
			numbers = append(numbers, n)
		}
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if len(numbers) == len(sides) && len(numbers) > 0 {
		slices.Sort(numbers)
		return short(numbers[len(numbers)/2])
	}
	return strings.Join(values, " or ")
}

func number(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', 2, 64)
}

func engineText(run record.Run) string {
	if run.Engine.Name == "" {
		return ""
	}
	text := strings.TrimSpace(run.Engine.Name + " " + run.Engine.Version)
	if run.Engine.StandIn {
		text = "STAND-IN " + text
	}
	return text
}

func nodeCount(run record.Run) string { return strconv.Itoa(run.Engine.Nodes) }

func whereStored(run record.Run) string {
	if run.Spec.Backend.Engine.Embedded() {
		return "inside the collector"
	}
	return "on its own host"
}

// storeCPUs is what CPU the store's nodes may use together.
func storeCPUs(run record.Run) string {
	var quota float64
	sets := map[string]bool{}
	nodes := storeNodes(run)
	for _, n := range nodes {
		l := limitsOf(n)
		quota += l.CPUs
		if len(l.CPUSet) > 0 {
			sets[strings.Trim(fmt.Sprint(l.CPUSet), "[]")] = true
		}
	}
	switch {
	case len(nodes) == 0:
		return ""
	case quota > 0:
		return "quota of " + short(quota) + " CPUs"
	case len(sets) > 0:
		return "CPU set " + strings.Join(slices.Sorted(maps.Keys(sets)), " and ")
	}
	return "no limit"
}

func storeMemory(run record.Run) string {
	var sum int64
	nodes := storeNodes(run)
	for _, n := range nodes {
		sum += limitsOf(n).MemoryBytes
	}
	switch {
	case len(nodes) == 0:
		return ""
	case sum == 0:
		return "no limit"
	}
	return fmt.Sprintf("%d MiB", sum>>20)
}

// consistency is the level that the collector writes and queries at: Jaeger's default where its
// settings don't say.
func consistency(run record.Run) string {
	if run.Spec.Backend.Engine.Embedded() {
		return "one copy"
	}
	for _, key := range slices.Sorted(maps.Keys(run.Collector.Settings)) { // the same of several stores in every rendering
		value := run.Collector.Settings[key]
		if (strings.HasSuffix(key, ".query.consistency") || strings.HasSuffix(key, "CASSANDRA_CONSISTENCY")) && value != "" {
			return value
		}
	}
	return "LOCAL_ONE"
}

// readConsistency is the level that the lab counts at.
func readConsistency(run record.Run) string {
	switch {
	case run.Facts == nil:
		return ""
	case run.Spec.Backend.Engine.Embedded():
		return "one copy"
	case run.Facts.AbsentUnknown:
		return "ONE"
	}
	return "ALL"
}

func serverSetting(run record.Run, name string) string {
	if run.Spec.Backend.Engine.Embedded() {
		return "of " + string(run.Spec.Backend.Engine)
	}
	return run.Engine.Settings[name]
}

func programText(p record.Program) string { return strings.TrimSpace(p.Name + " " + p.Version) }

// loadText spells everything of a load that decides what a store gets. What has its default is left
// out where a record of an earlier lab may lack it.
func loadText(l spec.Load) string {
	text := fmt.Sprintf("%d workers", l.Concurrency)
	if l.Rate != "" {
		text += " at " + l.Rate + " spans/s"
	}
	text += fmt.Sprintf(", 1+%d spans, %d tags, %d s after %d s, %d services, %d values, %d resource attributes, deadline %d s",
		l.SpansCount, l.TagsCount, l.DurationS, l.WarmupS, l.Services, l.TagValues, l.ResourceAttributes, l.RequestTimeoutS)
	for _, one := range []struct {
		value, usual int
		what         string
	}{
		{l.TracesPerRequest, 1, "traces a request"},
		{l.MaxRequestSpans, usualRequestSpans, "spans a request at most"},
		{l.Operations, 1, "operations"},
		{l.TagLength, 0, "bytes a tag's value"},
		{l.ErrorPercent, 0, "% errors"},
		{l.Events, 0, "events"},
	} {
		if one.value != 0 && one.value != one.usual {
			text += fmt.Sprintf(", %d %s", one.value, one.what)
		}
	}
	if l.Shape != "" && l.Shape != "star" {
		text += ", shape " + l.Shape
	}
	if l.Gzip {
		text += ", gzip"
	}
	return text
}

// usualRequestSpans is LAB_MAX_REQUEST_SPANS where it is not set.
const usualRequestSpans = 1000

func hostText(h record.Host) string {
	return fmt.Sprintf("%s/%s, %d x %s, %d MiB, kernel %s, Docker %s", h.OS, h.Arch, h.CPUs, h.CPUModel, h.MemoryBytes>>20,
		h.Kernel, orNothing(h.Docker))
}

func backlog(run record.Run) string {
	if run.Spec.Backend.Engine.Embedded() {
		return "0"
	}
	return number(run.Backlog)
}

// personal matches settings that are every run's own: addresses, ports, folders, keyspaces. A number of
// connections_per_host is none of them.
var personal = regexp.MustCompile(`(?i)(keyspace$|servers$|port$|endpoint$|(^|\.)hosts?$|directory_|\.directories\.)`)

// settingsDiffer lists settings of the collector in which two runs differ. Those of the storage
// count only between stores that take the same.
func settingsDiffer(old, new record.Run) (differs []Confounder) {
	sameStore := old.Spec.Backend.Engine.Embedded() == new.Spec.Backend.Engine.Embedded()
	skip := func(key, value string) bool {
		switch {
		case personal.MatchString(key), strings.Contains(value, "${"):
			return true
		case strings.Contains(key, ".receivers") && old.Client != new.Client:
			return true
		case !sameStore && (strings.Contains(key, "jaeger_storage.") || strings.Contains(key, "jaeger_query") ||
			strings.Contains(key, "service.extensions") || strings.Contains(key, "CASSANDRA") || strings.Contains(key,
			"BADGER") ||
			strings.Contains(key, "SPAN_STORAGE")):
			return true
		}
		return false
	}
	keys := map[string]bool{}
	for _, settings := range []map[string]string{old.Collector.Settings, new.Collector.Settings} {
		for key := range settings {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		a, b := old.Collector.Settings[key], new.Collector.Settings[key]
		if a != b && !skip(key, a+b) {
			differs = append(differs, Confounder{Name: "setting " + key, Old: a, New: b})
		}
	}
	return differs
}
