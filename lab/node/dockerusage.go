//go:build unix

package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"jaegerlab/lab/spec"
)

// containerGroup finds a container's cgroup on this machine by its first process; nil when the
// daemon runs elsewhere (a virtual machine) or its cgroups can't be seen. That the path holds the
// container's id proves that the pid is not somebody else's.
func containerGroup(pid int, id string) *cgroup {
	if pid <= 0 || id == "" {
		return nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil || !strings.Contains(string(text), id) {
		return nil
	}
	g := groupFromFile(string(text), "/sys/fs/cgroup")
	if g == nil || g.usage().CPUSeconds == nil {
		return nil
	}
	return g
}

// groupFromFile reads /proc/PID/cgroup: "<number>:<controllers>:<path>" lines in version 1, one
// "0::<path>" line in version 2.
func groupFromFile(text, mount string) *cgroup {
	v1 := &cgroup{version: 1, dirs: map[string]string{}, roots: map[string]string{}}
	v2 := &cgroup{version: 2, dirs: map[string]string{}, roots: map[string]string{}}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			for _, name := range []string{cpuController, cpusetController, memoryController} {
				v2.dirs[name], v2.roots[name] = path.Join(mount, parts[2]), mount
			}
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			root := path.Join(mount, name)
			v1.dirs[name], v1.roots[name] = path.Join(root, parts[2]), root
		}
	}
	switch {
	case v1.dirs[memoryController] != "":
		return v1
	case v2.dirs[memoryController] != "":
		return v2
	}
	return nil
}

// Read implements Node. A container that has ended gives its last read before.
func (n *containerNode) Read(ctx context.Context) (Usage, error) {
	if !ended(n) {
		usage, err := n.readNow(ctx)
		if err == nil || !ended(n) {
			return usage, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last, nil
}

// readNow reads the cgroup, or asks the daemon, and keeps what it read.
func (n *containerNode) readNow(ctx context.Context) (Usage, error) {
	usage := n.group.usage()
	if usage.CPUSeconds == nil {
		var err error
		if usage, err = statistics(ctx, n.runtime.client, n.id); err != nil {
			return Usage{}, fmt.Errorf("read usage of %s: %w: %w", n.Name(), errNotRead, err)
		}
	}
	n.mu.Lock()
	n.last = usage
	n.mu.Unlock()
	return usage, nil
}

func usageFromStats(stats container.StatsResponse) (Usage, error) {
	u := Usage{At: stats.Read}
	if u.At.IsZero() || stats.CPUStats.CPUUsage.TotalUsage == 0 && stats.MemoryStats.Usage == 0 {
		return u, fmt.Errorf("the daemon has no statistics of it")
	}
	cpu := int64(stats.CPUStats.CPUUsage.TotalUsage)
	throttled := int64(stats.CPUStats.ThrottlingData.ThrottledTime)
	u.CPUSeconds, u.ThrottledS = scaled(&cpu, 1e-9), scaled(&throttled, 1e-9)
	if memory := stats.MemoryStats; memory.Usage > 0 {
		inactive, version1 := memory.Stats["total_inactive_file"]
		if !version1 {
			inactive = memory.Stats["inactive_file"]
		}
		used := int64(memory.Usage) - int64(inactive)
		u.MemoryBytes = &used
		if peak := int64(memory.MaxUsage); peak > 0 {
			u.MemoryPeakBytes = &peak
		}
	}
	return u, nil
}

// LimitsInForce implements Node.
func (n *containerNode) LimitsInForce(ctx context.Context) (*spec.Limits, error) {
	if !ended(n) {
		limits, err := n.readLimits(ctx)
		if limits != nil || err != nil {
			return limits, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.limits, nil
}

// readLimits reads the cgroup on this machine or, where it can't be seen, from within the
// container, if its image has a cat.
func (n *containerNode) readLimits(ctx context.Context) (*spec.Limits, error) {
	hostCPUs := n.runtime.daemon.host.CPUs
	if n.group != nil {
		return n.group.limits(n.program.Limits, hostCPUs), nil
	}
	n.mu.Lock()
	known := n.limits
	n.mu.Unlock()
	if known != nil {
		return known, nil
	}
	inside := &cgroup{version: n.runtime.daemon.host.CgroupVersion, dirs: map[string]string{}}
	for _, name := range []string{cpuController, cpusetController, memoryController} {
		inside.dirs[name] = "/sys/fs/cgroup"
		if inside.version == 1 {
			inside.dirs[name] = path.Join("/sys/fs/cgroup", name)
		}
	}
	inside.read = func(file string) ([]byte, error) { return n.cat(ctx, file) }
	return inside.limits(n.program.Limits, hostCPUs), nil
}

// cat reads a file in the container.
func (n *containerNode) cat(ctx context.Context, file string) ([]byte, error) {
	bounded, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	api := n.runtime.client
	created, err := api.ExecCreate(bounded, n.id, client.ExecCreateOptions{
		Cmd: []string{"cat", file}, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, err
	}
	attached, err := api.ExecAttach(bounded, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	defer attached.Close()
	_ = attached.Conn.SetReadDeadline(time.Now().Add(answerBound))
	var out, errOut bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &errOut, attached.Reader); err != nil {
		return nil, err
	}
	inspected, err := api.ExecInspect(bounded, created.ID, client.ExecInspectOptions{})
	if err != nil {
		return nil, err
	}
	if inspected.ExitCode != 0 {
		return nil, fmt.Errorf("cat %s in %s: exit status %d: %s",
			file, n.Name(), inspected.ExitCode, strings.TrimSpace(errOut.String()))
	}
	return out.Bytes(), nil
}
