package observe

import (
	"bytes"

	dto "github.com/prometheus/client_model/go"

	"jaegerlab/lab/record"
)

// What of node-exporter's page tells how busy the machine was.
const (
	machineCPU  = "node_cpu_seconds_total"
	machineDisk = "node_disk_io_time_seconds_total"
	machineTime = "node_time_seconds"
)

// Machine keeps of a node-exporter's page only what Others and BusiestDisk need, so that a run's
// folder need not hold the whole of it.
func Machine(page Snapshot) (Snapshot, error) {
	var kept bytes.Buffer
	for line := range bytes.Lines(page.Raw) {
		for _, name := range []string{machineCPU, machineDisk, machineTime} {
			if bytes.HasPrefix(line, []byte(name)) {
				kept.Write(line)
			}
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

// BusiestDisk is the disk of the machine that had requests under way for most of the time between two
// pages of its node-exporter; nil when the pages don't tell. Full time is not full throughput: a
// disk that takes many requests at once can be asked for more.
func BusiestDisk(first, last Snapshot) *record.Disk {
	_, at, ok := first.busy()
	_, until, okLast := last.busy()
	if !ok || !okLast || until <= at {
		return nil
	}
	before := first.disks()
	var busiest *record.Disk
	for device, seconds := range last.disks() {
		was, known := before[device]
		if !known || seconds < was {
			continue
		}
		share := min((seconds-was)/(until-at), 1) // the page's clock is a little off the counter's
		if busiest == nil || share > busiest.Busy || share == busiest.Busy && device < busiest.Device {
			busiest = &record.Disk{Device: device, Busy: share}
		}
	}
	return busiest
}

// disks are the seconds in which each disk had requests under way.
func (s Snapshot) disks() map[string]float64 {
	seconds := map[string]float64{}
	for _, m := range s.families[machineDisk].GetMetric() {
		seconds[labelOf(m, "device")] = number(m)
	}
	return seconds
}

// busy sums the seconds in which the machine's CPUs were not idle; at is the page's own time.
func (s Snapshot) busy() (seconds, at float64, ok bool) {
	clock := s.families[machineTime]
	cpus := s.families[machineCPU]
	if clock == nil || cpus == nil || len(clock.GetMetric()) == 0 {
		return 0, 0, false
	}
	for _, m := range cpus.GetMetric() {
		switch labelOf(m, "mode") {
		case "idle", "iowait":
		default:
			seconds += number(m)
		}
	}
	return seconds, number(clock.GetMetric()[0]), true
}

// number is the value of a counter, gauge or untyped sample, whichever the page declares.
func number(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
}
