package lab

import (
	"fmt"
	"strings"
	"time"

	"jaegerlab/lab/load"
	"jaegerlab/lab/node"
)

// From where on a part of the stack is named in the progress line as what holds the load back.
const (
	nearlyFull  = 0.9  // of a queue's capacity, or of a node's CPUs
	writersBusy = 0.75 // of the writers, on average over a second: each also waits between two writes
)

// schedule knows what is left of a comparison: what its plan says, corrected by how the finished
// rounds kept to it. Times are given to it, so that tests need no clock.
type schedule struct {
	rounds        int           // in all, of all arms
	begun         int           // the current one counts
	left          time.Duration // planned, of the rounds that have not begun
	current       time.Duration // planned, of the round under way
	since         time.Time     // when it began
	planned, took time.Duration // of the finished rounds
}

// begin starts the next round, which was planned to take so long.
func (s *schedule) begin(planned time.Duration, now time.Time) {
	s.begun++
	s.left -= planned
	s.current, s.since = planned, now
}

// end finishes the round under way.
func (s *schedule) end(now time.Time) {
	s.planned += s.current
	s.took += now.Sub(s.since)
	s.current = 0
}

// last reports whether the round under way is the comparison's last, whose stack LAB_KEEP leaves up.
func (s *schedule) last() bool { return s.begun == s.rounds }

// remaining is about how long the rest takes.
func (s *schedule) remaining(now time.Time) time.Duration {
	factor := 1.0
	if s.planned > 0 {
		factor = float64(s.took) / float64(s.planned)
	}
	ahead := time.Duration(factor * float64(s.left))
	return ahead + max(time.Duration(factor*float64(s.current))-now.Sub(s.since), 0)
}

// String says where a comparison of several rounds is; nothing of a single one.
func (s *schedule) String() string { return s.at(time.Now()) }

func (s *schedule) at(now time.Time) string {
	if s.rounds < 2 {
		return ""
	}
	left := s.remaining(now)
	if left < time.Minute {
		return fmt.Sprintf("[%d of %d, less than a minute left] ", s.begun, s.rounds)
	}
	return fmt.Sprintf("[%d of %d, about %.0f min left] ", s.begun, s.rounds, left.Minutes())
}

// line is the live line under load: where the comparison is, what was sent and acknowledged, what is
// stored of it so far by the collector's own counter, and what is used up at the moment.
func (r *round) line(p load.Progress) string {
	text := fmt.Sprintf("%s%s, round %d: %s %.0f of %.0f s: %d generated, %d acked, ", &r.schedule, r.arm.Name(), r.run.Round,
		p.State, min(p.ElapsedS, p.PlannedS), p.PlannedS, p.Generated, p.Acked)
	if saved, _, ok := r.sampler.Latest(r.Collector.Node.Name(), "saved"); ok {
		base, _, _ := r.atStart.Saved() // of the window, as what was acked
		text += fmt.Sprintf("%.0f stored, ", saved-float64(base))
	}
	text += fmt.Sprintf("%d refused, %d unanswered", p.Refused, p.Unanswered)
	if full := r.usedUp(); len(full) > 0 {
		text += "; at its limit: " + strings.Join(full, ", ")
	}
	return text
}

// usedUp names what has nothing to spare at the moment: the collector's queue, its writers, and
// nodes' CPUs.
func (r *round) usedUp() (full []string) {
	collector := r.Collector.Node.Name()
	if size, _, ok := r.sampler.Latest(collector, "queue_size"); ok {
		if capacity, known := r.atFirst.QueueCapacity(); known && size >= nearlyFull*float64(capacity) {
			full = append(full, fmt.Sprintf("queue (%.0f of %d)", size, capacity))
		}
	}
	// Little's law: the time that writes took together in a second is how many were in flight. It is
	// counted when a write ends, so that in one second it may be more than there can be.
	if _, inFlight, ok := r.sampler.Latest(collector, "write_latency_sum"); ok {
		if writers := r.run.Writers(); writers != nil && inFlight >= writersBusy*float64(*writers) {
			full = append(full, fmt.Sprintf("writes in flight (%.1f of %d)", min(inFlight, float64(*writers)), *writers))
		}
	}
	for _, n := range r.nodes() {
		_, used, ok := r.sampler.Latest(n.Name(), "cpu")
		if given := r.cpus(n); ok && used >= nearlyFull*given {
			full = append(full, fmt.Sprintf("%s CPU (%.1f of %.1f)", n.Name(), used, given))
		}
	}
	return full
}

// cpus is how many CPUs a node may use at once.
func (r *round) cpus(n node.Node) float64 {
	host := float64(r.Runtime.Host().CPUs)
	switch limits := n.Program().Limits; {
	case limits.CPUs > 0:
		return min(limits.CPUs, host)
	case len(limits.CPUSet) > 0:
		return min(float64(len(limits.CPUSet)), host)
	}
	return host
}
