package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jaegerlab/lab/spec"
)

// Version 2: controllers are enabled in the parents, and every limit lands in its file, swap off.
// The tree is a fake; what a kernel makes of it, only a machine with version 2 can tell.
func TestVersion2GroupIsWritten(t *testing.T) {
	root := tree(t, map[string]string{
		"cgroup.subtree_control":                 "",
		"jaegerlab/cgroup.subtree_control":       "",
		"jaegerlab/run/cgroup.subtree_control":   "",
		"jaegerlab/run/n/cgroup.subtree_control": "", "jaegerlab/run/n/cpuset.cpus": "", "jaegerlab/run/n/cpu.weight": "",
		"jaegerlab/run/n/cpu.max": "", "jaegerlab/run/n/memory.max": "", "jaegerlab/run/n/memory.swap.max": "max",
	})
	limits := spec.Limits{CPUSet: []int{0, 1}, CPUShares: 512, CPUs: 0.5, MemoryBytes: 1 << 30}
	group, err := newGroupV2At(root, "/jaegerlab/run/n", limits)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, file := range []string{"cpuset.cpus", "cpu.weight", "cpu.max", "memory.max", "memory.swap.max"} {
		text, err := os.ReadFile(filepath.Join(group.dirs[memoryController], file))
		if err != nil {
			t.Fatal(err)
		}
		got[file] = strings.TrimSuffix(string(text), "ax") // the fake keeps what a shorter write left
	}
	want := map[string]string{
		"cpuset.cpus": "0,1", "cpu.weight": "20", "cpu.max": "50000 100000",
		"memory.max": "1073741824", "memory.swap.max": "0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, parent := range []string{"", "jaegerlab", "jaegerlab/run"} {
		text, err := os.ReadFile(filepath.Join(root, parent, "cgroup.subtree_control"))
		if err != nil || !strings.HasPrefix(string(text), "+") {
			t.Errorf("controllers in %q: %q, %v", parent, text, err)
		}
	}
}

// A controller that can't be had is an error with its name, not a silent gap.
func TestVersion2WithoutAControllerIsRefused(t *testing.T) {
	root := tree(t, map[string]string{"other": ""})
	_, err := newGroupV2At(root, "/jaegerlab/run/n", spec.Limits{MemoryBytes: 1 << 30})
	if err == nil || !strings.Contains(err.Error(), "subtree") {
		t.Error(err)
	}
}
