package lab

import (
	"fmt"
	"strings"
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// What the steps around the load take in ordinary runs on two CPUs, measured and rounded up:
// cassandra:1 needs 35 s beside its window, cassandra:2 45 s, badger and memory 10 s and, for their
// read-back through Jaeger's query API, about the window once more. What is slower than planned
// ends at the deadline, with what was measured until then.
const (
	nodeStart  = 16 * time.Second // a database node joining
	restStart  = 6 * time.Second  // schema, collector, monitoring
	usualDrain = 10 * time.Second
	readBack   = 5 * time.Second
	tearDown   = 5 * time.Second
	stockDrain = 150 * time.Second // v2-stock takes thousands of spans at once and writes them one by one
	runDisk    = 2 << 30           // data, commit logs and results of one run, bytes
	labMemory  = 512 << 20         // the lab's own process and node-exporter
)

// Plan is what a comparison will take.
type Plan struct {
	Runs        int
	Time        time.Duration
	MemoryBytes int64 // of the largest arm
	DiskBytes   int64
}

// MakePlan estimates a comparison from its spec.
func MakePlan(s spec.Spec) Plan {
	plan := Plan{DiskBytes: runDisk}
	for _, arm := range s.Arms() {
		plan.Time += roundTime(s, arm) * time.Duration(s.Rounds)
		plan.Runs += s.Rounds
		plan.MemoryBytes = max(plan.MemoryBytes, armMemory(arm))
	}
	return plan
}

// roundTime is what one round of an arm takes.
func roundTime(s spec.Spec, arm spec.Arm) time.Duration {
	loading := time.Duration(s.Load.WarmupS+s.Load.DurationS) * time.Second
	one := restStart + time.Duration(arm.Backend.Nodes)*nodeStart + loading + usualDrain + readBack + tearDown
	switch {
	case arm.Backend.Engine.Embedded():
		one += loading
	case arm.Collector == "v2-stock":
		one += stockDrain
	}
	return one
}

// armMemory is what an arm's nodes may use together: their limits, which also size heaps where
// no limit is in force.
func armMemory(arm spec.Arm) int64 {
	memory := int64(labMemory)
	hosts := []spec.Host{spec.CollectorHost, spec.LoadHost, spec.MonitorHost}
	if arm.Target != "" {
		hosts = hosts[1:] // its collector and database are somewhere else
	}
	for _, host := range hosts {
		memory += spec.LimitsFor(spec.T2, host, arm.Backend.Engine, 1).MemoryBytes
	}
	return memory + int64(arm.Backend.Nodes)*spec.NodeMemoryBytes(arm.Backend.Engine)
}

// String says the plan in one line.
func (p Plan) String() string {
	return fmt.Sprintf("%d runs, about %s, up to %.1f GiB memory and %.0f GiB disk",
		p.Runs, p.Time.Round(time.Minute/2), gib(p.MemoryBytes), gib(p.DiskBytes))
}

// Check refuses a plan that can't fit: in the time until deadline (zero: no deadline), in the
// memory of the machine the nodes run on, or on the disk that has diskFree bytes left.
func (p Plan) Check(host record.Host, diskFree int64, left time.Duration) error {
	var problems []string
	if left > 0 && p.Time > left {
		problems = append(problems, fmt.Sprintf("it needs about %s and go test leaves %s: run it with -timeout %s (or 0)",
			p.Time.Round(time.Second), left.Round(time.Second), (p.Time+p.Time/4).Round(time.Minute)+time.Minute))
	}
	if host.MemoryBytes > 0 && p.MemoryBytes > host.MemoryBytes {
		problems = append(problems, fmt.Sprintf("it needs %.1f GiB of memory and the machine of the nodes has %.1f GiB: "+
			"take fewer nodes (LAB_BACKENDS) or give Docker more memory", gib(p.MemoryBytes), gib(host.MemoryBytes)))
	}
	if diskFree >= 0 && p.DiskBytes > diskFree {
		problems = append(problems, fmt.Sprintf("it needs %.0f GiB of disk and %.1f GiB are free: "+
			"free some or point LAB_RESULTS and LAB_CACHE elsewhere", gib(p.DiskBytes), gib(diskFree)))
	}
	if problems == nil {
		return nil
	}
	return fmt.Errorf("refuse to start (%s): %s", p, strings.Join(problems, "; "))
}

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }
