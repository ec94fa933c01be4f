package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/opencontainers/runtime-spec/specs-go"

	"jaegerlab/lab/spec"
)

const (
	groupMount   = "/sys/fs/cgroup"
	groupParent  = "jaegerlab" // <groupParent>/<run>/<node>
	quotaPeriod  = 100_000     // microseconds; the kernel's default
	probeSubject = "probe"
)

// cgroupVersion is 1 or 2, or 0 where there are no control groups.
func cgroupVersion() int {
	switch cgroups.Mode() {
	case cgroups.Unified:
		return 2
	case cgroups.Legacy, cgroups.Hybrid:
		return 1
	}
	return 0
}

// probeGroups tries the whole way of a node, once: make a group, enter it, remove it.
func probeGroups(ctx context.Context, runID string) error {
	if cgroupVersion() == 0 {
		return errors.New("limits are not enforced: no control groups at " + groupMount)
	}
	trial := spec.Limits{CPUShares: 512, CPUs: 0.5, MemoryBytes: 64 << 20, CPUSet: []int{0}}
	group, err := newGroup(runID, probeSubject, trial)
	if err == nil {
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "exit 0")
		wrap(cmd, os.DevNull, group)
		if output, runErr := cmd.CombinedOutput(); runErr != nil {
			err = fmt.Errorf("enter a control group: %w: %s", runErr, strings.TrimSpace(string(output)))
		}
		err = errors.Join(err, group.remove())
	}
	if err = errors.Join(err, removeRunGroups(runID)); err != nil {
		return fmt.Errorf("limits are not enforced: %w (root or a delegated cgroup is needed)", err)
	}
	return nil
}

// newGroup makes the group jaegerlab/<run>/<node> with these limits. On an error nothing is left.
func newGroup(runID, name string, limits spec.Limits) (*cgroup, error) {
	path := filepath.Join(groupParent, runID, name)
	var group *cgroup
	var err error
	for range 3 { // another run that ends may remove the common parent in between
		if cgroupVersion() == 2 {
			group, err = newGroupV2(groupMount, path, limits)
		} else {
			group, err = newGroupV1(path, limits)
		}
		if err == nil {
			return group, nil
		}
		_ = group.remove()
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, err
}

var groupControllersV1 = []cgroup1.Name{cgroup1.Cpu, cgroup1.Cpuacct, cgroup1.Cpuset, cgroup1.Memory}

func newGroupV1(path string, limits spec.Limits) (*cgroup, error) {
	group := &cgroup{version: 1, dirs: map[string]string{}, roots: map[string]string{}}
	for _, name := range groupControllersV1 {
		root := filepath.Join(groupMount, string(name))
		if _, err := os.Stat(root); err != nil {
			return group, fmt.Errorf("control group version 1 without its %s controller: %w", name, err)
		}
		group.dirs[string(name)] = filepath.Join(root, path)
		group.roots[string(name)] = root
	}
	hierarchy := func() ([]cgroup1.Subsystem, error) {
		all, err := cgroup1.Default()
		return slices.DeleteFunc(all, func(s cgroup1.Subsystem) bool {
			return !slices.Contains(groupControllersV1, s.Name())
		}), err
	}
	_, err := cgroup1.New(cgroup1.StaticPath("/"+path), resourcesV1(limits), cgroup1.WithHierarchy(hierarchy))
	if err == nil && limits.MemoryBytes > 0 {
		err = swapOffV1(group, limits.MemoryBytes)
	}
	if err != nil {
		return group, fmt.Errorf("make control group: %w", err)
	}
	return group, nil
}

// swapOffV1 lets memory and swap together not exceed the memory limit, where the kernel accounts
// swap, and makes it unwilling to swap where not.
func swapOffV1(group *cgroup, memoryBytes int64) error {
	dir := group.dirs[memoryController]
	err := writeExisting(filepath.Join(dir, "memory.memsw.limit_in_bytes"), fmt.Sprint(memoryBytes))
	if errors.Is(err, fs.ErrNotExist) {
		err = writeExisting(filepath.Join(dir, "memory.swappiness"), "0")
	}
	return err
}

func resourcesV1(limits spec.Limits) *specs.LinuxResources {
	cpu := &specs.LinuxCPU{Cpus: formatCPUSet(limits.CPUSet)}
	if limits.CPUShares > 0 {
		cpu.Shares = pointer(uint64(limits.CPUShares))
	}
	if limits.CPUs > 0 {
		cpu.Period, cpu.Quota = pointer(uint64(quotaPeriod)), pointer(int64(limits.CPUs*quotaPeriod))
	}
	resources := &specs.LinuxResources{CPU: cpu}
	if limits.MemoryBytes > 0 {
		resources.Memory = &specs.LinuxMemory{Limit: &limits.MemoryBytes}
	}
	return resources
}

// newGroupV2 makes the group below the mount point or, for a user with a delegated tree, below
// the nearest ancestor of the lab's own group that may be written.
func newGroupV2(mount, path string, limits spec.Limits) (*cgroup, error) {
	var errs []error
	for _, parent := range parentsV2(mount) {
		group, err := newGroupV2At(mount, filepath.Join(parent, path), limits)
		if err == nil {
			return group, nil
		}
		_ = group.remove()
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("make control group: %w", errors.Join(errs...))
}

// parentsV2 lists where the lab's groups may stand: the root, then the ancestors of its own group.
func parentsV2(mount string) []string {
	parents := []string{"/"}
	_, own, err := cgroups.ParseCgroupFileUnified("/proc/self/cgroup")
	if err != nil {
		return parents
	}
	for dir := filepath.Dir(own); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if syscall.Access(filepath.Join(mount, dir), 2) == nil {
			parents = append(parents, dir)
		}
	}
	return parents
}

func newGroupV2At(mount, path string, limits spec.Limits) (*cgroup, error) {
	dir := filepath.Join(mount, path)
	group := &cgroup{version: 2, dirs: map[string]string{}, roots: map[string]string{}}
	for _, name := range []string{cpuController, cpusetController, memoryController} {
		group.dirs[name], group.roots[name] = dir, mount
	}
	manager, err := cgroup2.NewManager(mount, "/"+strings.TrimPrefix(path, "/"), &cgroup2.Resources{})
	if err != nil {
		return group, err
	}
	needed := []string{cpuController, memoryController}
	if len(limits.CPUSet) > 0 {
		needed = append(needed, cpusetController)
	}
	for _, name := range needed {
		if err := manager.ToggleControllers([]string{name}, cgroup2.Enable); err != nil {
			return group, err
		}
	}
	for file, value := range valuesV2(limits) {
		if err := writeExisting(filepath.Join(dir, file), value); err != nil {
			return group, err
		}
	}
	if limits.MemoryBytes > 0 {
		err = writeExisting(filepath.Join(dir, "memory.swap.max"), "0")
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without swap has no such file
			return group, err
		}
	}
	return group, nil
}

func valuesV2(limits spec.Limits) map[string]string {
	values := map[string]string{}
	if len(limits.CPUSet) > 0 {
		values["cpuset.cpus"] = formatCPUSet(limits.CPUSet)
	}
	if limits.CPUShares > 0 {
		values["cpu.weight"] = fmt.Sprint(linearWeight(limits.CPUShares))
	}
	if limits.CPUs > 0 {
		values["cpu.max"] = fmt.Sprintf("%d %d", int64(limits.CPUs*quotaPeriod), quotaPeriod)
	}
	if limits.MemoryBytes > 0 {
		values["memory.max"] = fmt.Sprint(limits.MemoryBytes)
	}
	return values
}

// writeExisting writes a control file; unlike os.WriteFile it never tries to create one.
func writeExisting(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

// runGroups lists the folders of a run's groups that exist, the deepest first.
func runGroups(runID string) []string {
	var parents []string
	if cgroupVersion() == 2 {
		for _, parent := range parentsV2(groupMount) {
			parents = append(parents, filepath.Join(groupMount, parent))
		}
	} else {
		for _, name := range groupControllersV1 {
			parents = append(parents, filepath.Join(groupMount, string(name)))
		}
	}
	var folders []string
	for _, parent := range parents {
		root := filepath.Join(parent, groupParent, runID)
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				folders = append(folders, path)
			}
			return nil
		})
	}
	slices.SortFunc(folders, func(a, b string) int { return len(b) - len(a) })
	return folders
}

// removeRunGroups removes every group of a run, and the lab's own parent when it was the last.
func removeRunGroups(runID string) error {
	var errs []error
	for _, folder := range runGroups(runID) {
		errs = append(errs, removeBusy(folder))
		if filepath.Base(folder) == runID {
			_ = os.Remove(filepath.Dir(folder)) // fails while other runs are there
		}
	}
	return errors.Join(errs...)
}

// signal sends a signal to every process in the group.
func (g *cgroup) signal(sig syscall.Signal) {
	for _, pid := range g.processes() {
		_ = syscall.Kill(pid, sig)
	}
}

// kill ends every process in the group, also those that are being forked meanwhile.
func (g *cgroup) kill() {
	for deadline := time.Now().Add(time.Second); len(g.processes()) > 0 && time.Now().Before(deadline); {
		g.signal(syscall.SIGKILL)
		time.Sleep(time.Millisecond)
	}
}

func pointer[T any](value T) *T { return &value }
