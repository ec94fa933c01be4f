package observe

import (
	"fmt"
	"math"
	"slices"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// Tolerances within which a limit read back counts as the one asked for: memory is kept in
// pages, quotas in whole microseconds, and shares go through the coarser weights of cgroup v2.
const (
	memoryTolerance = 64 << 10
	cpusTolerance   = 0.01
	sharesTolerance = 0.05
)

// Usage is what the cgroup of a node says of the time between two reads, with the limits that
// were asked for and those in force. What could not be read is nil.
func Usage(n node.Node, first, last node.Usage, inForce *spec.Limits) record.Node {
	p := n.Program()
	r := record.Node{
		Name: n.Name(), Host: p.Host, Asked: p.Limits, InForce: inForce,
		CPUSeconds:      difference(first.CPUSeconds, last.CPUSeconds),
		ThrottledS:      difference(first.ThrottledS, last.ThrottledS),
		MemoryBytes:     last.MemoryBytes,
		MemoryPeakBytes: last.MemoryPeakBytes,
		OOMKills:        difference(first.OOMKills, last.OOMKills),
		Exit:            n.Exit(),
		Log:             n.LogFile(),
	}
	r.Enforced = Unenforced(r.Asked, r.InForce) == ""
	return r
}

// Unenforced says which limits are not in force as asked for; "" when all are.
func Unenforced(asked spec.Limits, inForce *spec.Limits) string {
	if asked.MemoryBytes == 0 && asked.CPUs == 0 && asked.CPUShares == 0 && len(asked.CPUSet) == 0 {
		return "" // nothing was asked for
	}
	if inForce == nil {
		return "no limit could be read back"
	}
	var faults []string
	fault := func(what string, asked, got any) {
		faults = append(faults, fmt.Sprintf("%s: asked %v, in force %v", what, asked, got))
	}
	if a, g := asked.MemoryBytes, inForce.MemoryBytes; a > 0 && (g == 0 || abs(a-g) > memoryTolerance) {
		fault("memory bytes", a, none(g))
	}
	if a, g := asked.CPUs, inForce.CPUs; a > 0 && math.Abs(a-g) > cpusTolerance*a {
		fault("CPUs", a, none(g))
	}
	if a, g := float64(asked.CPUShares), float64(inForce.CPUShares); a > 0 && math.Abs(a-g) > sharesTolerance*a {
		fault("CPU shares", a, none(g))
	}
	if a, g := sorted(asked.CPUSet), sorted(inForce.CPUSet); len(a) > 0 && !slices.Equal(a, g) {
		fault("CPU set", a, g)
	}
	text := ""
	for i, f := range faults {
		if i > 0 {
			text += "; "
		}
		text += f
	}
	return text
}

// UsageWarnings names nodes whose limits are not in force and nodes that the kernel killed from,
// or that ended.
func UsageWarnings(nodes []record.Node) []string {
	var warnings []string
	for _, n := range nodes {
		if why := Unenforced(n.Asked, n.InForce); why != "" {
			warnings = append(warnings, fmt.Sprintf("%s is not limited as asked (%s): "+
				"this run is not comparable with one whose limits are in force", n.Name, why))
		}
		if n.OOMKills != nil && *n.OOMKills > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %d out-of-memory kills under its limit of %d MiB; "+
				"LAB_PROFILE=none lifts the limit, a lower RATE or DURATION_S gives it less to keep",
				n.Name, *n.OOMKills, n.Asked.MemoryBytes>>20))
		}
		if n.Exit != "" {
			warnings = append(warnings, fmt.Sprintf("%s ended in the run: %s; its log: %s", n.Name, n.Exit, n.Log))
		}
	}
	return warnings
}

// difference is nil when either end could not be read or the counter fell.
func difference[T int64 | float64](first, last *T) *T {
	if first == nil || last == nil || *last < *first {
		return nil
	}
	d := *last - *first
	return &d
}

func abs(v int64) int64 { return max(v, -v) }

func none[T int64 | float64](v T) any {
	if v == 0 {
		return "none"
	}
	return v
}

func sorted(cpus []int) []int { return slices.Sorted(slices.Values(cpus)) }
