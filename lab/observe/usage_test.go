package observe

import (
	"strings"
	"testing"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

func ptr[T any](v T) *T { return &v }

func TestUsageIsLastLessFirst(t *testing.T) {
	n := newFakeNode("collector")
	n.program.Limits = spec.Limits{MemoryBytes: 1 << 30, CPUs: 1}
	got := Usage(n,
		node.Usage{CPUSeconds: ptr(2.0), ThrottledS: ptr(0.5), OOMKills: ptr(int64(0))},
		node.Usage{CPUSeconds: ptr(12.0), ThrottledS: ptr(1.0), OOMKills: ptr(int64(1)),
			MemoryBytes: ptr(int64(5)), MemoryPeakBytes: ptr(int64(9))},
		&spec.Limits{MemoryBytes: 1 << 30, CPUs: 1})
	if *got.CPUSeconds != 10 || *got.ThrottledS != 0.5 || *got.OOMKills != 1 {
		t.Errorf("got %+v", got)
	}
	if *got.MemoryBytes != 5 || *got.MemoryPeakBytes != 9 {
		t.Errorf("memory %+v", got)
	}
	if !got.Enforced || got.Name != "collector" || got.Host != spec.CollectorHost || got.Log != "collector.log" {
		t.Errorf("got %+v", got)
	}
}

// What can't be read is nil, never 0; a node without a cgroup is not called limited.
func TestUsageOfWhatCantBeRead(t *testing.T) {
	n := newFakeNode("collector")
	n.program.Limits = spec.Limits{MemoryBytes: 1 << 30}
	n.die("killed by SIGKILL (out of memory)")
	got := Usage(n, node.Usage{CPUSeconds: ptr(3.0)}, node.Usage{CPUSeconds: ptr(1.0)}, nil)
	if got.CPUSeconds != nil || got.MemoryBytes != nil || got.OOMKills != nil || got.InForce != nil || got.Enforced {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(got.Exit, "SIGKILL") {
		t.Errorf("exit %q", got.Exit)
	}
}

func TestUnenforced(t *testing.T) {
	all := spec.Limits{MemoryBytes: 1 << 30, CPUs: 0.5, CPUShares: 512, CPUSet: []int{0, 1}}
	for name, test := range map[string]struct {
		asked   spec.Limits
		inForce *spec.Limits
		want    []string
	}{
		"all":           {all, &spec.Limits{MemoryBytes: 1<<30 - 4096, CPUs: 0.5, CPUShares: 500, CPUSet: []int{1, 0}}, nil},
		"nothing asked": {spec.Limits{}, nil, nil},
		"nothing read":  {all, nil, []string{"no limit could be read back"}},
		"none in force": {all, &spec.Limits{}, []string{"memory", "CPUs", "CPU shares", "CPU set", "in force none"}},
		"other memory": {all, &spec.Limits{MemoryBytes: 2 << 30, CPUs: 0.5, CPUShares: 512, CPUSet: []int{0, 1}},
			[]string{"1073741824", "2147483648"}},
		"a larger quota": {all, &spec.Limits{MemoryBytes: 1 << 30, CPUs: 1, CPUShares: 512, CPUSet: []int{0, 1}},
			[]string{"0.5", "1"}},
	} {
		got := Unenforced(test.asked, test.inForce)
		if (got == "") != (test.want == nil) {
			t.Errorf("%s: got %q", name, got)
		}
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q lacks %q", name, got, want)
			}
		}
	}
}

// Case 12: a kill under a limit is a warning with the limit; so are missing limits and deaths.
func TestUsageWarnings(t *testing.T) {
	warnings := UsageWarnings([]record.Node{
		{Name: "sound"},
		{Name: "collector", Asked: spec.Limits{MemoryBytes: 200 << 20}, OOMKills: ptr(int64(1)),
			Exit: "killed by SIGKILL (OOM)", Log: "c.log"},
	})
	text := strings.Join(warnings, "\n")
	for _, want := range []string{
		"not limited as asked", "1 out-of-memory kills under its limit of 200 MiB", "SIGKILL (OOM)", "c.log",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("warnings lack %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "sound") {
		t.Errorf("a sound node is warned of:\n%s", text)
	}
}
