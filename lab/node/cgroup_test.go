//go:build unix

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"

	"jaegerlab/lab/spec"
)

// tree writes control files below a folder that stands for /sys/fs/cgroup.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// figures spells CPU, throttled time, memory, peak and OOM kills; "-" is unknown.
func figures(u Usage) string {
	return strings.Join([]string{
		figure(u.CPUSeconds), figure(u.ThrottledS), figure(u.MemoryBytes), figure(u.MemoryPeakBytes), figure(u.OOMKills),
	}, " ")
}

func figure[T int64 | float64](value *T) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprint(*value)
}

func TestReadVersion2(t *testing.T) {
	root := tree(t, map[string]string{
		"jaegerlab/run/n/cpu.max":               "50000 100000\n",
		"jaegerlab/run/n/cpu.weight":            "20\n",
		"jaegerlab/run/n/cpuset.cpus.effective": "0-1\n",
		"jaegerlab/run/n/memory.max":            "1073741824\n",
		"jaegerlab/run/n/cpu.stat":              "usage_usec 2500000\nuser_usec 1\nnr_throttled 3\nthrottled_usec 250000\n",
		"jaegerlab/run/n/memory.current":        "1000\n",
		"jaegerlab/run/n/memory.stat":           "anon 1\ninactive_file 400\n",
		"jaegerlab/run/n/memory.peak":           "2000\n",
		"jaegerlab/run/n/memory.events":         "low 0\noom 1\noom_kill 1\n",
		"jaegerlab/run/memory.max":              "max\n",
	})
	g := groupFromFile("0::/jaegerlab/run/n\n", root)
	asked := spec.Limits{CPUSet: []int{0, 1}, CPUShares: 512, CPUs: 0.5, MemoryBytes: 1 << 30}
	got := g.limits(asked, 8)
	if diff := cmp.Diff(&asked, got); diff != "" {
		t.Error(diff)
	}
	if got := figures(g.usage()); got != "2.5 0.25 600 2000 1" {
		t.Errorf("usage %s", got)
	}
}

// A limit above the node, such as the container the lab itself runs in, is in force too; what
// was not asked for and is only the default is no limit.
func TestTightestAncestorIsInForce(t *testing.T) {
	root := tree(t, map[string]string{
		"a/memory.max": "500\n", "a/cpu.max": "200000 100000\n", "a/b/memory.max": "max\n", "a/b/cpu.max": "max 100000\n",
		"a/b/cpu.weight": "100\n", "a/b/cpuset.cpus.effective": "0-3\n",
	})
	got := groupFromFile("0::/a/b\n", root).limits(spec.Limits{}, 4)
	if diff := cmp.Diff(&spec.Limits{CPUs: 2, MemoryBytes: 500}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadVersion1(t *testing.T) {
	root := tree(t, map[string]string{
		"cpu/docker/x/cpu.shares": "512", "cpu/docker/x/cpu.cfs_quota_us": "-1", "cpu/docker/x/cpu.cfs_period_us": "100000",
		"cpu/docker/x/cpu.stat": "nr_periods 1\nthrottled_time 500000000", "cpuset/docker/x/cpuset.cpus": "1",
		"cpuacct/docker/x/cpuacct.usage":        "1500000000",
		"memory/docker/x/memory.limit_in_bytes": "9223372036854771712",
		"memory/docker/x/memory.usage_in_bytes": "300",
		"memory/docker/x/memory.oom_control":    "oom_kill_disable 0\nunder_oom 0\noom_kill 2",
		"memory/docker/memory.limit_in_bytes":   "9223372036854771712",
	})
	g := groupFromFile("7:memory:/docker/x\n3:cpuset:/docker/x\n2:cpu,cpuacct:/docker/x\n0::/system.slice\n", root)
	got := g.limits(spec.Limits{CPUSet: []int{0}, CPUShares: 512, CPUs: 1, MemoryBytes: 1 << 30}, 2)
	if diff := cmp.Diff(&spec.Limits{CPUSet: []int{1}, CPUShares: 512}, got); diff != "" {
		t.Error(diff)
	}
	differences := notInForce(spec.Limits{CPUSet: []int{0}, CPUShares: 512, CPUs: 1, MemoryBytes: 1 << 30}, got)
	want := []string{"CPU set: asked 0, in force 1", "CPUs: asked 1, in force none", "memory: asked 1 GiB, in force none"}
	if diff := cmp.Diff(want, differences); diff != "" {
		t.Error(diff)
	}
	if got := figures(g.usage()); got != "1.5 0.5 300 - 2" {
		t.Errorf("usage %s", got)
	}
}

// Unreadable is not unlimited, and not zero.
func TestNothingToReadIsNil(t *testing.T) {
	g := groupFromFile("0::/gone\n", t.TempDir())
	if limits := g.limits(spec.Limits{MemoryBytes: 1}, 2); limits != nil {
		t.Errorf("limits %+v", limits)
	}
	if got := figures(g.usage()); got != "- - - - -" {
		t.Errorf("usage %s", got)
	}
	var none *cgroup
	if none.limits(spec.Limits{}, 2) != nil || none.usage().CPUSeconds != nil || none.remove() != nil {
		t.Error("no cgroup gave values")
	}
	if differences := notInForce(spec.Limits{MemoryBytes: 1 << 20}, nil); len(differences) != 1 {
		t.Errorf("%q", differences)
	}
	if differences := notInForce(spec.Limits{}, nil); len(differences) != 0 {
		t.Errorf("%q", differences)
	}
}

// Both conversions of shares into version 2's weights count as what was asked.
func TestSharesFromWeights(t *testing.T) {
	for shares, weights := range map[int][]string{512: {"20", "59"}, 1024: {"39", "100"}} {
		for _, weight := range weights {
			g := groupFromFile("0::/n\n", tree(t, map[string]string{"n/cpu.weight": weight}))
			if got := g.shares(shares); got != shares {
				t.Errorf("weight %s: %d shares, asked %d", weight, got, shares)
			}
		}
	}
	g := groupFromFile("0::/n\n", tree(t, map[string]string{"n/cpu.weight": "1000"}))
	if got := g.shares(512); got == 512 {
		t.Error("another weight counts as what was asked")
	}
}

func FuzzParseCPUSet(f *testing.F) {
	for _, text := range []string{"0", "0-1,4", "", "1-0", "0-99999999", ",", "3-", "0,0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := parseCPUSet(text)
		if err != nil {
			return
		}
		again, err := parseCPUSet(formatCPUSet(set))
		if err != nil || !slices.Equal(set, again) {
			t.Errorf("%q: %v, then %v (%v)", text, set, again, err)
		}
	})
}

func FuzzGroupFromFile(f *testing.F) {
	f.Add("0::/a\n")
	f.Add("7:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n")
	f.Add("::\n:::")
	f.Fuzz(func(_ *testing.T, text string) {
		if g := groupFromFile(text, "/none"); g != nil {
			_ = g.folders()
			_ = g.limits(spec.Limits{}, 1)
		}
	})
}

// Case 34: the text says that pools are used up and how many leftovers are the lab's own.
func TestPoolsUsedUp(t *testing.T) {
	for _, text := range []string{
		"could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network",
		"all predefined address pools have been fully subnetted",
	} {
		cause := errors.New(text)
		if !poolsUsedUp(cause) {
			t.Errorf("not recognised: %s", text)
		}
		networks := make([]network.Summary, 31)
		networks[3].Labels = map[string]string{labLabel: "1"}
		networks[4].Labels = map[string]string{labLabel: "1"}
		got := poolError("jaegerlab-1", cause, networks).Error()
		for _, want := range []string{"used up by 31 networks", "2 of them the lab's own", "jaegerlab clean", text} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
	}
	if poolsUsedUp(errors.New("permission denied")) {
		t.Error("any error counts as pools used up")
	}
}

// What a sweep may remove: only what carries the lab's labels and has no live owner.
func TestSweepJudgesByOwner(t *testing.T) {
	owner := thisOwner(runOwner{RunID: "r"})
	dead, away := owner, owner
	dead.Lab.Start = "1"
	away.Host = "elsewhere"
	label := func(o runOwner, keep string) leftover {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		l := leftover{kind: "container", name: "c", labels: map[string]string{ownerLabel: string(text), runLabel: "r"}}
		if keep != "" {
			l.labels[keepLabel] = keep
		}
		return l
	}
	for name, c := range map[string]struct {
		left          leftover
		kept          map[string]bool
		byStart, byCl bool
	}{
		"live run":                     {label(owner, ""), nil, false, false},
		"dead run":                     {label(dead, ""), nil, true, true},
		"other host's":                 {label(away, ""), nil, false, false},
		"kept":                         {label(dead, "1"), map[string]bool{"r": true}, false, true},
		"kept, state gone":             {label(dead, "1"), nil, false, true},
		"killed before it was kept":    {label(dead, "1"), map[string]bool{"r": false}, true, true},
		"live run that will be kept":   {label(owner, "1"), map[string]bool{"r": false}, false, false},
		"no owner, made by hand maybe": {leftover{labels: map[string]string{labLabel: "1"}}, nil, false, true},
	} {
		if got, _ := c.left.judge(Dead, c.kept); got != c.byStart {
			t.Errorf("%s: a start removes it: %v", name, got)
		}
		if got, _ := c.left.judge(All, c.kept); got != c.byCl {
			t.Errorf("%s: clean removes it: %v", name, got)
		}
	}
}

func TestUsageFromTheDaemonsStatistics(t *testing.T) {
	var stats container.StatsResponse
	text := `{"read":"2026-01-02T03:04:05Z",
		"cpu_stats":{"cpu_usage":{"total_usage":1500000000},"throttling_data":{"throttled_time":250000000}},
		"memory_stats":{"usage":1000,"stats":{"inactive_file":400}}}`
	if err := json.Unmarshal([]byte(text), &stats); err != nil {
		t.Fatal(err)
	}
	u, err := usageFromStats(stats)
	if got := figures(u); err != nil || got != "1.5 0.25 600 - -" {
		t.Errorf("usage %s, %v", got, err)
	}
	if _, err := usageFromStats(container.StatsResponse{}); err == nil {
		t.Error("an empty answer, as of a dead container, counts as usage")
	}
}
