package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// LimitKind names what held a run back.
type LimitKind string

// The kinds. A disk is judged by the machine's own figure, since no cgroup that the lab reads says how
// long a node waited for it.
const (
	LimitMemory     LimitKind = "memory"           // the kernel killed for want of it
	LimitGenerator  LimitKind = "generator"        // the load node had no CPU left
	LimitRate       LimitKind = "offered rate"     // all that was offered was taken: more was not asked for
	LimitCollector  LimitKind = "collector CPU"    // the collector had none left
	LimitThrottling LimitKind = "throttling"       // a database node waited for its quota
	LimitStalled    LimitKind = "stalled node"     // a database node used no CPU at all for long
	LimitNodeCPU    LimitKind = "node CPU"         // database nodes had none left
	LimitHost       LimitKind = "host CPU"         // the machine had none left, and is smaller than the profile's hosts
	LimitDisk       LimitKind = "disk"             // of the machine: it had requests under way nearly all the time
	LimitWriters    LimitKind = "writes in flight" // the collector's writers were all busy, each write was quick
	LimitLatency    LimitKind = "store latency"    // the collector's writers were all busy, each write was slow
	LimitQueue      LimitKind = "collector queue"  // its queue was full and nobody knows why
	LimitNotFound   LimitKind = "not found"        // nothing that is measured was near its end
	LimitNotKnown   LimitKind = "not known"        // too little was recorded
)

// Limit is what held a run back, with the evidence.
type Limit struct {
	Kind     LimitKind
	Node     string   // whose; "" = no single node's
	Evidence []string // figures that say so, and what else was near its end
}

// Text is the limit as tables show it: "node CPU: cassandra-1".
func (l Limit) Text() string {
	if l.Node == "" {
		return string(l.Kind)
	}
	return string(l.Kind) + ": " + l.Node
}

// sentence is the limit with its evidence.
func (l Limit) sentence() string {
	what := "held back by " + l.Text()
	switch l.Kind {
	case LimitNotFound:
		what = "what held it back was not found"
	case LimitNotKnown:
		what = "what held it back is not known"
	}
	return what + ": " + strings.Join(l.Evidence, "; ")
}

// BeforeStore reports whether spans were held back before they could reach the store, so that the
// run says nothing of it.
func (l Limit) BeforeStore() bool {
	switch l.Kind {
	case LimitGenerator, LimitRate, LimitCollector, LimitWriters, LimitQueue:
		return true
	}
	return false
}

// From where on something counts as used up: shares of what it is given.
const (
	cpuFull       = 0.90 // a node's or the machine's CPU
	throttledLong = 0.20 // of the time, the mean of the CPUs it may run on
	stalledLong   = 0.20 // of the window
	diskFull      = 0.90 // of the time
	writersBusy   = 0.75 // on average: a mean of 1 is never seen
	queueFull     = 0.90 // of its capacity
	queueLong     = 0.50 // of the samples
	slowWriteMS   = 10.0 // mean of one statement, above which a store with many writers is called slow
	fewWriters    = 10   // fewer are never taken for a slow store
	keptUp        = 0.90 // of the acknowledged spans saved within the window; a second's worth may be on its way
	unevenNodes   = 0.25 // difference of two nodes' CPU that is worth a note
)

// LimitOf names what held a run back: a pure function of what was recorded. Series may be nil.
func LimitOf(host record.Host, run record.Run, series Series) Limit {
	if run.WindowS <= 0 || len(run.Nodes) == 0 {
		return Limit{Kind: LimitNotKnown, Evidence: []string{"the run has no usage of its nodes"}}
	}
	s := suspects{host: host, run: run, series: series, busyS: usageS(run)}
	s.memory()
	s.pace()
	s.nodes()
	s.writers(true)
	s.database()
	s.machine()
	s.disk()
	s.writers(false)
	s.queue()
	if len(s.found) == 0 {
		return Limit{Kind: LimitNotFound, Evidence: s.seen}
	}
	limit := s.found[0]
	for _, other := range s.found[1:] {
		limit.Evidence = append(limit.Evidence, "also "+other.Text()+": "+strings.Join(other.Evidence, "; "))
	}
	return limit
}

// usageS is how long the nodes' figures of CPU are of, in seconds: of the window, in records of earlier
// labs with the warm-up before it.
func usageS(run record.Run) float64 {
	if run.UsageOfWindow {
		return run.WindowS
	}
	return run.WindowS + float64(run.Load.WarmupS)
}

// suspects collects limits, the most certain first, and what was looked at in vain.
type suspects struct {
	host   record.Host
	run    record.Run
	series Series
	busyS  float64
	found  []Limit
	seen   []string
}

func (s *suspects) name(kind LimitKind, node string, evidence ...string) {
	s.found = append(s.found, Limit{Kind: kind, Node: node, Evidence: evidence})
}

func (s *suspects) memory() {
	for _, n := range s.run.Nodes {
		if n.OOMKills != nil && *n.OOMKills > 0 {
			s.name(LimitMemory, n.Name, fmt.Sprintf("%d out-of-memory kills under a limit of %d MiB", *n.OOMKills,
				limitsOf(n).MemoryBytes>>20))
		}
	}
}

// pace takes what the load node says of itself: its timers and sockets know more than its CPU.
func (s *suspects) pace() {
	p := s.run.Sent.Pace
	if p == nil {
		return
	}
	switch p.Bound {
	case record.GeneratorBound:
		s.name(LimitGenerator, "", p.Why)
	case record.RateReached:
		if behind := s.behind(); behind != "" {
			s.seen = append(s.seen, p.Why+", but "+behind)
			return
		}
		s.name(LimitRate, "", p.Why)
	default:
		s.seen = append(s.seen, p.Why)
	}
}

// behind says that what was acknowledged at the offered rate was not stored at that rate: queues and
// buffers took the rest, and what holds the store back is still to be named. "" = it kept up.
func (s *suspects) behind() string {
	saved, acked := s.run.SavedInWindowCounter, s.run.Ledger.Acked
	if saved == nil || float64(*saved) >= keptUp*float64(acked) {
		return ""
	}
	return fmt.Sprintf("only %d of %d acknowledged spans were saved within the window", *saved, acked)
}

// limitsOf is what holds for a node: what was read back, or what was asked for.
func limitsOf(n record.Node) spec.Limits {
	if n.InForce != nil {
		return *n.InForce
	}
	return n.Asked
}

// cpus is how many CPUs a node may use at once.
func (s *suspects) cpus(n record.Node) float64 {
	switch l := limitsOf(n); {
	case l.CPUs > 0:
		return l.CPUs
	case len(l.CPUSet) > 0:
		return float64(len(l.CPUSet))
	}
	return float64(s.host.CPUs)
}

// nodes looks at the load node and the collector.
func (s *suspects) nodes() {
	for _, n := range s.run.Nodes {
		kind := LimitGenerator
		switch n.Host {
		case spec.LoadHost:
		case spec.CollectorHost:
			kind = LimitCollector
		default:
			continue
		}
		text, full := s.cpuOf(n)
		if kind == LimitCollector && noStore(s.run) {
			s.seen = append(s.seen, text+" as the black hole")
			continue
		}
		if full && kind == LimitGenerator && len(s.found) > 0 && s.found[len(s.found)-1].Kind == LimitGenerator {
			s.found[len(s.found)-1].Evidence = append(s.found[len(s.found)-1].Evidence, text) // said already
			continue
		}
		if full {
			if kind == LimitCollector && s.run.Spec.Backend.Engine.Embedded() {
				text += fmt.Sprintf("; %s runs inside it", s.run.Spec.Backend.Engine)
			}
			s.name(kind, "", text)
			continue
		}
		s.seen = append(s.seen, text)
	}
}

// cpuOf says what a node used of its CPUs, and whether that was all.
func (s *suspects) cpuOf(n record.Node) (text string, full bool) {
	if n.CPUSeconds == nil || s.cpus(n) <= 0 {
		return n.Name + ": CPU not known", false
	}
	used, given := *n.CPUSeconds/s.busyS, s.cpus(n)
	text = fmt.Sprintf("%s used %.2f of %s CPUs", n.Name, used, short(given))
	full = used >= cpuFull*given
	if share := s.throttled(n); share > 0 {
		text += fmt.Sprintf(", throttled for %.1f s in %.1f s, the sum of %d CPUs", *n.ThrottledS, s.busyS, s.runsOn(n))
		full = full || share >= throttledLong
	}
	return text, full
}

// throttled is for how much of the time a node waited for its quota. The kernel counts that for each
// CPU, and sums it: one burst of eight threads is eight times as long as the wait that follows.
func (s *suspects) throttled(n record.Node) float64 {
	if n.ThrottledS == nil || s.runsOn(n) == 0 {
		return 0
	}
	return *n.ThrottledS / s.busyS / float64(s.runsOn(n))
}

// runsOn is how many CPUs a node's threads are spread over, whatever its quota is.
func (s *suspects) runsOn(n record.Node) int {
	if set := limitsOf(n).CPUSet; len(set) > 0 {
		return len(set)
	}
	return s.host.CPUs
}

func short(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func databaseNodes(run record.Run) (nodes []record.Node) {
	for _, n := range run.Nodes {
		if n.Host == spec.DatabaseHost {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// database looks at each database node, and at all of those that share CPUs.
func (s *suspects) database() {
	used := map[string]float64{}
	most := map[string]record.Node{}
	for _, n := range databaseNodes(s.run) {
		s.stalled(n)
		text, full := s.cpuOf(n)
		switch {
		case full && n.ThrottledS != nil && *n.ThrottledS >= throttledLong*s.busyS: // of one CPU: it is full
			s.name(LimitThrottling, n.Name, text)
		case full:
			s.name(LimitNodeCPU, n.Name, text)
		default:
			s.seen = append(s.seen, text)
		}
		if n.CPUSeconds == nil || full || limitsOf(n).CPUs > 0 {
			continue
		}
		set := fmt.Sprint(limitsOf(n).CPUSet)
		used[set] += *n.CPUSeconds / s.busyS
		if last, ok := most[set]; !ok || *n.CPUSeconds > *last.CPUSeconds {
			most[set] = n
		}
	}
	for set, sum := range used {
		if n := most[set]; sum >= cpuFull*s.cpus(n) && s.cpus(n) > 0 {
			s.name(LimitNodeCPU, n.Name, fmt.Sprintf("database nodes used %.2f of the %s CPUs that they share, %s the most",
				sum, short(s.cpus(n)), n.Name))
		}
	}
}

// stalled finds a node that was frozen: even an idle server uses some CPU every second.
func (s *suspects) stalled(n record.Node) {
	still, watched := s.series.standstill(SeriesKey{n.Name, "cpu"}, s.run.WindowS)
	if watched > 0 && still >= stalledLong*watched {
		s.name(LimitStalled, n.Name, fmt.Sprintf("%s used no CPU at all for %.0f of %.0f s of the window", n.Name, still,
			watched))
	}
}

// machine looks at all nodes together, on a machine that is smaller than the profile's hosts.
func (s *suspects) machine() {
	var sum float64
	for _, n := range s.run.Nodes {
		if n.CPUSeconds != nil {
			sum += *n.CPUSeconds / s.busyS
		}
	}
	text := fmt.Sprintf("all nodes together used %.2f of the machine's %d CPUs", sum, s.host.CPUs)
	if s.host.CPUs > 0 && sum >= cpuFull*float64(s.host.CPUs) {
		if s.run.Overcommitted {
			text += ", which are fewer than the profile's hosts have together (overcommitted)"
		}
		s.name(LimitHost, "", text)
		return
	}
	s.seen = append(s.seen, text)
}

// disk looks at the busiest disk of the machine, whoever used it.
func (s *suspects) disk() {
	disk := s.run.Disk
	if disk == nil {
		return
	}
	text := fmt.Sprintf("the machine's disk %s had requests under way for %.0f %% of the time", disk.Device, 100*disk.Busy)
	if disk.Busy >= diskFull {
		s.name(LimitDisk, disk.Device, text)
		return
	}
	s.seen = append(s.seen, text)
}

// writers compares writes in flight with how many the collector can have: Little's law, writes in
// flight = time that all writes took together / time in which they were made. Few writers that are
// all busy come before a busy database: one write after another leaves most of it idle between them,
// and a node with a small quota is throttled all the same.
func (s *suspects) writers(few bool) {
	run := s.run
	if run.DrainS == nil {
		run.DrainS = drainSampled(run, s.series)
	}
	w := writesOf(run)
	if w.inFlight == nil || few != (w.writers != nil && *w.writers < fewWriters) {
		return
	}
	text := fmt.Sprintf("%.2f statements in flight on average, %.1f ms each", *w.inFlight, *w.latencyMS)
	if w.writers == nil {
		s.seen = append(s.seen, text+"; how many the collector can have is not known")
		return
	}
	text = fmt.Sprintf("%.2f of at most %d writes in flight on average, %.1f ms each", *w.inFlight, *w.writers, *w.latencyMS)
	if w.ceiling != nil {
		text += fmt.Sprintf(", %.1f statements a span: at most %.0f spans/s", *s.run.WriteStatementsPerSpan, *w.ceiling)
	}
	switch {
	case *w.inFlight < writersBusy*float64(*w.writers):
		s.seen = append(s.seen, text)
	case few || *w.latencyMS < slowWriteMS:
		s.name(LimitWriters, "", text)
	default:
		s.name(LimitLatency, "", text)
	}
}

// queue looks for a full queue that busy writers don't explain.
func (s *suspects) queue() {
	capacity := counter(s.run, "queue_capacity")
	if capacity == nil || *capacity <= 0 {
		return
	}
	full, n := 0, 0
	for _, name := range s.run.Nodes {
		if name.Host != spec.CollectorHost {
			continue
		}
		for _, sample := range s.series.within(SeriesKey{name.Name, "queue_size"}, s.run.WindowS) {
			if n++; sample.Value >= queueFull**capacity {
				full++
			}
		}
	}
	if n == 0 {
		return
	}
	text := fmt.Sprintf("the collector's queue of %.0f spans was full in %d of %d samples", *capacity, full, n)
	if float64(full) >= queueLong*float64(n) {
		if i := slices.IndexFunc(s.found, func(l Limit) bool { return l.Kind != LimitHost }); i >= 0 {
			s.found[i].Evidence = append(s.found[i].Evidence, text) // it has a cause
			return
		}
		if engine := s.run.Spec.Backend.Engine; engine.Embedded() {
			s.name(LimitLatency, "", text+fmt.Sprintf(" while the collector had CPU left: %s in it took writes no faster",
				engine))
			return
		}
		s.name(LimitQueue, "", text)
		return
	}
	s.seen = append(s.seen, text)
}

// imbalance says how unlike the database nodes of a run were; "" when they were alike.
func imbalance(run record.Run) string {
	var parts []string
	least, most := -1.0, 0.0
	for _, n := range databaseNodes(run) {
		if n.CPUSeconds == nil {
			return ""
		}
		parts = append(parts, fmt.Sprintf("%s %.1f", n.Name, *n.CPUSeconds))
		most = max(most, *n.CPUSeconds)
		if least < 0 || *n.CPUSeconds < least {
			least = *n.CPUSeconds
		}
	}
	if len(parts) < 2 || most <= 0 || (most-least)/most < unevenNodes {
		return ""
	}
	return "uneven nodes, CPU seconds: " + strings.Join(parts, ", ")
}
