package standin

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strconv"
	"strings"

	"jaegerlab/lab/backend/seastar"
)

// leastShard is what ScyllaDB wants of memory per shard outside developer mode.
const leastShard = int64(1) << 30

// Machine is what the kernel says, read as ScyllaDB reads it.
type Machine struct {
	CPUs    int
	Memory  int64 // bytes of RAM
	Limit   int64 // bytes the cgroup allows; 0 = no limit
	MinFree int64 // bytes
	AIOMax  int64
	AIOUsed int64
}

// ReadMachine reads the files below root, which is "/" but for tests.
func ReadMachine(root fs.FS) (Machine, error) {
	m := Machine{CPUs: runtime.NumCPU(), Limit: cgroupLimit(root)}
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return Machine{}, fmt.Errorf("read the machine's memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return Machine{}, fmt.Errorf("read the machine's memory: %w", err)
			}
			m.Memory = kib << 10
		}
	}
	if m.Memory == 0 {
		return Machine{}, errors.New("read the machine's memory: /proc/meminfo has no MemTotal")
	}
	var kib int64
	for _, setting := range []struct {
		file string
		into *int64
	}{{"sys/vm/min_free_kbytes", &kib}, {"sys/fs/aio-max-nr", &m.AIOMax}, {"sys/fs/aio-nr", &m.AIOUsed}} {
		if *setting.into, err = number64(root, path.Join("proc", setting.file)); err != nil {
			return Machine{}, fmt.Errorf("read /proc/%s: %w", setting.file, err)
		}
	}
	m.MinFree = kib << 10
	return m, nil
}

// cgroupLimit reads the memory limit of cgroup v2 or v1 as seen inside a container.
func cgroupLimit(root fs.FS) int64 {
	for _, file := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		limit, err := number64(root, file)
		if err == nil && limit < 1<<60 { // v1 spells "no limit" as a number close to 2^63
			return limit
		}
	}
	return 0
}

func number64(root fs.FS, file string) (int64, error) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// Grant is what ScyllaDB would take of a machine.
type Grant struct {
	Shards int
	Heap   int64 // bytes
	Slots  int64 // AIO control blocks
}

// Admit decides as ScyllaDB does whether it starts on this machine with these options.
func Admit(o Options, m Machine) (Grant, error) {
	shards := o.Shards
	if shards == 0 {
		shards = m.CPUs
	}
	if shards > m.CPUs {
		return Grant{}, fmt.Errorf("start: insufficient processing units: asked for %d shards (--smp), there are %d CPUs",
			shards, m.CPUs)
	}
	heap, err := seastar.Memory{Host: m.Memory, Limit: m.Limit, MinFree: m.MinFree, Shards: shards,
		Asked: o.Asked, Reserve: o.Keep}.Heap()
	if err != nil {
		return Grant{}, fmt.Errorf("start: %w", err)
	}
	if heap/int64(shards) < leastShard && !o.developer() {
		return Grant{}, fmt.Errorf("start: configuration (memory per shard too low): %s in %d shards; "+
			"developer mode (--developer-mode 1) allows less than %s a shard", seastar.Size(heap), shards,
			seastar.Size(leastShard))
	}
	slots, err := seastar.AIO{Max: m.AIOMax, Used: m.AIOUsed, Shards: shards, Network: o.Blocks}.Take()
	if err != nil {
		return Grant{}, fmt.Errorf("start: could not setup Async I/O: %w", err)
	}
	return Grant{Shards: shards, Heap: heap, Slots: slots}, nil
}

// developer mode is on in the image unless it is switched off.
func (o Options) developer() bool {
	return o.get("developer-mode", "1") != "0" && o.get("developer-mode", "1") != "false"
}
