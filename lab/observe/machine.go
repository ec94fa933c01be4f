package observe

import (
	"bytes"

	dto "github.com/prometheus/client_model/go"

	"jaegerlab/lab/record"
)

// What of node-exporter's page tells how busy the machine was.
const (
	machineCPU  = "node_cpu_seconds_total"
	machineTime = "node_time_seconds"
)

// Machine keeps of a node-exporter's page only what Others needs, so that a run's folder need not
// hold the whole of it.
func Machine(page Snapshot) (Snapshot, error) {
	var kept bytes.Buffer
	for line := range bytes.Lines(page.Raw) {
		if bytes.HasPrefix(line, []byte(machineCPU)) || bytes.HasPrefix(line, []byte(machineTime)) {
			kept.Write(line)
		}
	}
	return Parse(kept.Bytes(), page.At)
}

// Others is how many CPUs of the machine were used by anything but the run's nodes, on average
// between two pages of its node-exporter; nil when the pages don't tell, or not every node's CPU is
// known. Waiting for the disk is idle time; what a hypervisor took is not.
func Others(first, last Snapshot, nodes []record.Node) *float64 {
	before, at, ok := first.busy()
	after, until, okLast := last.busy()
	if !ok || !okLast || until <= at || after < before || len(nodes) == 0 {
		return nil
	}
	used := after - before
	for _, n := range nodes {
		if n.CPUSeconds == nil {
			return nil
		}
		used -= *n.CPUSeconds
	}
	others := max(used/(until-at), 0) // the nodes' reads are milliseconds apart from the pages
	return &others
}

// busy sums the seconds in which the machine's CPUs were not idle; at is the page's own time.
func (s Snapshot) busy() (seconds, at float64, ok bool) {
	clock := s.families[machineTime]
	cpus := s.families[machineCPU]
	if clock == nil || cpus == nil || len(clock.GetMetric()) == 0 {
		return 0, 0, false
	}
	for _, m := range cpus.GetMetric() {
		switch modeOf(m) {
		case "idle", "iowait":
		default:
			seconds += number(m)
		}
	}
	return seconds, number(clock.GetMetric()[0]), true
}

func modeOf(m *dto.Metric) string {
	for _, label := range m.GetLabel() {
		if label.GetName() == "mode" {
			return label.GetValue()
		}
	}
	return ""
}

// number is the value of a counter, gauge or untyped sample, whichever the page declares.
func number(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
}
