package node

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"jaegerlab/lab/spec"
)

// cgroup is one control group as a set of folders: by controller in version 1, the same folder
// for every controller in version 2. It reads what is in force and what was used; a file that
// isn't there gives nil, never zero. The nil cgroup stands for "none": it reads nothing.
type cgroup struct {
	version int
	dirs    map[string]string                 // controller -> folder
	roots   map[string]string                 // controller -> mount point, where looking at ancestors ends
	read    func(path string) ([]byte, error) // nil = os.ReadFile
}

// The controllers that limits and usage need.
const (
	cpuController     = "cpu"
	cpuacctController = "cpuacct" // version 1 only
	cpusetController  = "cpuset"
	memoryController  = "memory"
)

func (g *cgroup) text(controller, file string) (string, bool) {
	if g == nil || g.dirs[controller] == "" {
		return "", false
	}
	read := g.read
	if read == nil {
		read = os.ReadFile
	}
	data, err := read(filepath.Join(g.dirs[controller], file))
	return strings.TrimSpace(string(data)), err == nil
}

func (g *cgroup) number(controller, file string) *int64 {
	text, ok := g.text(controller, file)
	if !ok {
		return nil
	}
	return parseNumber(text)
}

// field reads one "key value" line of a flat file such as cpu.stat.
func (g *cgroup) field(controller, file, key string) *int64 {
	text, ok := g.text(controller, file)
	if !ok {
		return nil
	}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == key {
			return parseNumber(words[1])
		}
	}
	return nil
}

// parseNumber gives nil for "max" and for anything that is no number.
func parseNumber(text string) *int64 {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &number
}

// usage reads the counters since the group was made.
func (g *cgroup) usage() Usage {
	u := Usage{At: time.Now()}
	switch {
	case g == nil:
	case g.version == 1:
		u.CPUSeconds = scaled(g.number(cpuacctController, "cpuacct.usage"), 1e-9)
		u.ThrottledS = scaled(g.field(cpuController, "cpu.stat", "throttled_time"), 1e-9)
		u.MemoryBytes = less(g.number(memoryController, "memory.usage_in_bytes"),
			g.field(memoryController, "memory.stat", "total_inactive_file"))
		u.MemoryPeakBytes = g.number(memoryController, "memory.max_usage_in_bytes")
		u.OOMKills = g.field(memoryController, "memory.oom_control", "oom_kill")
	default:
		u.CPUSeconds = scaled(g.field(cpuController, "cpu.stat", "usage_usec"), 1e-6)
		u.ThrottledS = scaled(g.field(cpuController, "cpu.stat", "throttled_usec"), 1e-6)
		u.MemoryBytes = less(g.number(memoryController, "memory.current"),
			g.field(memoryController, "memory.stat", "inactive_file"))
		u.MemoryPeakBytes = g.number(memoryController, "memory.peak") // since Linux 5.19
		u.OOMKills = g.field(memoryController, "memory.events", "oom_kill")
	}
	return u
}

// less is a - b, or a where b is unknown: page cache that the kernel can drop is not in use.
func less(a, b *int64) *int64 {
	if a == nil || b == nil {
		return a
	}
	difference := max(*a-*b, 0)
	return &difference
}

func scaled(number *int64, unit float64) *float64 {
	if number == nil {
		return nil
	}
	value := float64(*number) * unit
	return &value
}

// limits reads back what is in force: the tightest of the group and its ancestors. A field is
// zero where nothing limits it; a CPU set of all CPUs and the default weight are only told when
// they were asked for. nil: nothing could be read.
func (g *cgroup) limits(asked spec.Limits, hostCPUs int) *spec.Limits {
	if g == nil {
		return nil
	}
	set, haveSet := g.cpuset()
	shares := g.shares(asked.CPUShares)
	quota, haveQuota := g.tightest(cpuController, (*cgroup).quota)
	memory, haveMemory := g.tightest(memoryController, (*cgroup).memoryLimit)
	if !haveSet && shares == 0 && !haveQuota && !haveMemory {
		return nil
	}
	if len(asked.CPUSet) == 0 && len(set) >= hostCPUs {
		set = nil
	}
	if asked.CPUShares == 0 && shares == defaultShares {
		shares = 0
	}
	return &spec.Limits{CPUSet: set, CPUShares: shares, CPUs: quota, MemoryBytes: int64(memory)}
}

const defaultShares = 1024

// tightest asks the group and every ancestor up to the mount point and returns the least value
// above zero; zero means not limited. Known is false when the group itself can't tell.
func (g *cgroup) tightest(controller string, ask func(*cgroup) (float64, bool)) (least float64, known bool) {
	least, known = ask(g)
	root := g.roots[controller]
	dir := g.dirs[controller]
	for known && root != "" && dir != root && strings.HasPrefix(dir, root) {
		dir = filepath.Dir(dir)
		value, ok := ask(&cgroup{version: g.version, dirs: map[string]string{controller: dir}})
		if ok && value > 0 && (least == 0 || value < least) {
			least = value
		}
	}
	return least, known
}

// memoryLimit is the hard limit in bytes; 0 = none.
func (g *cgroup) memoryLimit() (float64, bool) {
	file := "memory.max"
	if g.version == 1 {
		file = "memory.limit_in_bytes"
	}
	text, ok := g.text(memoryController, file)
	if !ok {
		return 0, false
	}
	limit := parseNumber(text)
	if limit == nil || *limit > math.MaxInt64/2 { // "max", or version 1's largest page count
		return 0, true
	}
	return float64(*limit), true
}

// quota is the CFS quota in CPUs; 0 = none.
func (g *cgroup) quota() (float64, bool) {
	if g.version == 1 {
		quota, period := g.number(cpuController, "cpu.cfs_quota_us"), g.number(cpuController, "cpu.cfs_period_us")
		if quota == nil || period == nil || *period <= 0 {
			return 0, false
		}
		return float64(max(*quota, 0)) / float64(*period), true
	}
	text, ok := g.text(cpuController, "cpu.max")
	words := strings.Fields(text)
	if !ok || len(words) != 2 {
		return 0, false
	}
	quota, period := parseNumber(words[0]), parseNumber(words[1])
	if quota == nil || period == nil || *period <= 0 {
		return 0, words[0] == "max"
	}
	return float64(*quota) / float64(*period), true
}

// shares is the CPU weight in version 1's scale; 0 = can't be read. Version 2 has another scale,
// and programs convert in two ways: a weight that is either conversion of what was asked is what
// was asked.
func (g *cgroup) shares(asked int) int {
	if g.version == 1 {
		if shares := g.number(cpuController, "cpu.shares"); shares != nil {
			return int(*shares)
		}
		return 0
	}
	weight := g.number(cpuController, "cpu.weight")
	if weight == nil {
		return 0
	}
	if asked > 0 && (*weight == linearWeight(asked) || *weight == quadraticWeight(asked)) {
		return asked
	}
	if *weight == 100 {
		return defaultShares
	}
	return int(2 + (*weight-1)*262142/9999)
}

// linearWeight maps shares 2...262144 to weights 1...10000 in a straight line, as systemd and
// older container runtimes do.
func linearWeight(shares int) int64 { return 1 + (int64(shares)-2)*9999/262142 }

// quadraticWeight maps shares so that 1024 becomes 100, as container runtimes do since 2025.
func quadraticWeight(shares int) int64 {
	l := math.Log2(float64(shares))
	exponent := (l*l+125*l)/612.0 - 7.0/34.0
	return int64(math.Ceil(math.Pow(10, exponent)))
}

func (g *cgroup) cpuset() ([]int, bool) {
	for _, file := range []string{"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"} {
		if text, ok := g.text(cpusetController, file); ok && text != "" {
			set, err := parseCPUSet(text)
			return set, err == nil
		}
	}
	return nil, false
}

// processes lists the ids of every process in the group.
func (g *cgroup) processes() []int {
	var pids []int
	for _, controller := range []string{memoryController, cpuController, cpusetController} {
		text, _ := g.text(controller, "cgroup.procs")
		for line := range strings.Lines(text) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 1 && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// folders lists the group's folders, each once.
func (g *cgroup) folders() []string {
	if g == nil {
		return nil
	}
	var folders []string
	for _, dir := range g.dirs {
		if !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	slices.Sort(folders)
	return folders
}

// remove deletes the group's folders; the kernel says "busy" until the last process is reaped.
func (g *cgroup) remove() error {
	var errs []error
	for _, dir := range g.folders() {
		errs = append(errs, removeBusy(dir))
	}
	return errors.Join(errs...)
}

func removeBusy(dir string) error {
	pause := time.Millisecond
	for deadline := time.Now().Add(2 * time.Second); ; pause = min(2*pause, 100*time.Millisecond) {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
		time.Sleep(pause)
	}
}
