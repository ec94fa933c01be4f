package observe

import (
	"strings"
	"testing"
	"time"

	"jaegerlab/lab/record"
)

const machinePage = `# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} IDLE
node_cpu_seconds_total{cpu="0",mode="iowait"} 7
node_cpu_seconds_total{cpu="0",mode="user"} USER
node_cpu_seconds_total{cpu="0",mode="steal"} 2
node_load1 3
# TYPE node_disk_io_time_seconds_total counter
node_disk_io_time_seconds_total{device="sda"} USER
node_disk_io_time_seconds_total{device="zram0"} 0
# TYPE node_time_seconds gauge
node_time_seconds TIME
`

func machineAt(t *testing.T, idle, user, at string) Snapshot {
	t.Helper()
	page, err := Parse([]byte(strings.NewReplacer("IDLE", idle, "USER", user, "TIME", at).Replace(machinePage)), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := Machine(page)
	if err != nil || strings.Contains(string(kept.Raw), "node_load1") {
		t.Fatalf("kept %q, %v", kept.Raw, err)
	}
	return kept
}

func TestBusiestDisk(t *testing.T) {
	first, last := machineAt(t, "100", "50", "1.7e9"), machineAt(t, "102", "58", "1.70000001e9")
	if got := BusiestDisk(first, last); got == nil || got.Device != "sda" || got.Busy < 0.79 || got.Busy > 0.81 {
		t.Errorf("busiest disk %v, want sda for 8 of 10 seconds", got)
	}
	for name, got := range map[string]*record.Disk{"no page": BusiestDisk(Snapshot{}, last), "turned round": BusiestDisk(last, first)} {
		if got != nil {
			t.Errorf("%s gives %v, want not known", name, *got)
		}
	}
}

func TestOthersIsWhatTheNodesDidNotUse(t *testing.T) {
	first, last := machineAt(t, "100", "50", "1.7e9"), machineAt(t, "102", "58", "1.70000001e9")
	used := 6.0
	nodes := []record.Node{{Name: "a", CPUSeconds: &used}}
	if got := Others(first, last, nodes); got == nil || *got < 0.19 || *got > 0.21 {
		t.Errorf("others used %v CPUs, want 8 - 6 seconds of 10", got)
	}
	more := 60.0
	if got := Others(first, last, []record.Node{{CPUSeconds: &more}}); got == nil || *got != 0 {
		t.Errorf("never below nothing: %v", got)
	}
	for name, got := range map[string]*float64{
		"a node that is not known": Others(first, last, append(nodes, record.Node{})), "no nodes": Others(first, last, nil),
		"no page": Others(Snapshot{}, last, nodes), "turned round": Others(last, first, nodes),
	} {
		if got != nil {
			t.Errorf("%s gives %v, want not known", name, *got)
		}
	}
}
