// Package seastar is the arithmetic by which ScyllaDB decides at its start whether a machine has
// enough memory and AIO slots for it (Seastar's calculate_memory and
// adjust_max_networking_aio_io_control_blocks, as of ScyllaDB 6.2.3). Package backend asks it
// before any container starts, the stand-in for ScyllaDB when it starts; it depends on nothing.
package seastar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	mib = int64(1) << 20

	wasmReserve   = 50 * mib    // per shard, kept for user-defined functions
	fallbackHeap  = 500_000_000 // what is taken when the reserve does not fit
	leastReserve  = 1536 * mib
	reserveShare  = 0.07
	storageSlots  = 1024 // AIO control blocks of a shard for files
	preemptSlots  = 2
	NetworkSlots  = 50_000 // of a shard, ScyllaDB's default
	leastNetworks = 1
)

// Memory is what one ScyllaDB process finds and is told. Sizes are in bytes.
type Memory struct {
	Host    int64  // RAM of the machine
	Limit   int64  // of the cgroup; 0 = none
	MinFree int64  // vm.min_free_kbytes
	Shards  int    // --smp
	Asked   int64  // --memory; 0 = not given
	Reserve *int64 // --reserve-memory; nil = not given
}

// Heap is the memory ScyllaDB gives itself, or the error with which it refuses to start.
func (m Memory) Heap() (int64, error) {
	host := m.Host
	if m.Limit > 0 {
		host = min(host, m.Limit)
	}
	extra := wasmReserve * int64(m.Shards)
	available := host - m.MinFree
	reserve := max(leastReserve, int64(reserveShare*float64(host)))
	if m.Reserve != nil {
		reserve = *m.Reserve
	}
	reserve += extra
	if available >= reserve+fallbackHeap {
		available -= reserve
	} else {
		available = fallbackHeap
	}
	if m.Asked == 0 {
		return available, nil
	}
	if need := m.Asked - extra; need > available {
		return 0, fmt.Errorf("insufficient physical memory: needed %s available %s (limit %s); take --memory %s or less, "+
			"set --reserve-memory 0M, or give the node more memory", Size(need), Size(available), Size(host),
			Size((available+extra)/mib*mib))
	}
	return m.Asked, nil
}

// AIO is the machine's stock of AIO slots, which all containers share, and what each node asks for.
type AIO struct {
	Max     int64 // fs.aio-max-nr
	Used    int64 // fs.aio-nr
	Shards  int   // of a node
	Network int64 // --max-networking-io-control-blocks of a shard; 0 = NetworkSlots
}

// Take returns how many slots the next node takes: all it asks for, or what is left when its
// files' share is; less is an error, as it is ScyllaDB's.
func (a AIO) Take() (int64, error) {
	network := a.Network
	if network == 0 {
		network = NetworkSlots
	}
	shards := int64(a.Shards)
	files := shards * (storageSlots + preemptSlots)
	want, least, free := files+shards*network, files+shards*leastNetworks, a.Max-a.Used
	switch {
	case free >= want:
		return want, nil
	case free >= least:
		return files + (free-files)/shards*shards, nil
	}
	return 0, fmt.Errorf("your system does not satisfy minimum AIO requirements: needed %d slots, %d at least, "+
		"available %d (fs.aio-max-nr %d, in use %d)", want, least, max(free, 0), a.Max, a.Used)
}

// Fit says whether a number of nodes started one after another all get their slots.
func (a AIO) Fit(nodes int) error {
	for i := range nodes {
		taken, err := a.Take()
		if err != nil {
			return fmt.Errorf("node %d of %d: %w; raise it with sysctl -w fs.aio-max-nr=1048576, use fewer shards (--smp), "+
				"fewer slots a shard (--max-networking-io-control-blocks), or --reactor-backend=epoll", i+1, nodes, err)
		}
		a.Used += taken
	}
	return nil
}

var units = map[byte]int64{
	'k': 1 << 10, 'K': 1 << 10, 'm': mib, 'M': mib, 'g': 1 << 30, 'G': 1 << 30, 't': 1 << 40, 'T': 1 << 40,
}

// ParseSize reads a size as ScyllaDB's options spell it: a number with k, M, G or T, alone or
// followed by i, iB or B.
func ParseSize(text string) (int64, error) {
	number := strings.TrimSuffix(strings.TrimSuffix(text, "B"), "i")
	unit := int64(1)
	if n := len(number); n > 0 && units[number[n-1]] != 0 {
		unit, number = units[number[n-1]], number[:n-1]
	} else if number != text && number+"B" != text {
		return 0, fmt.Errorf("read size %q: a unit must be k, M, G or T", text)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("read size %q: it must be a number with k, M, G or T", text)
	}
	return n * unit, nil
}

// Size gives a size for people.
func Size(bytes int64) string {
	if bytes%mib == 0 {
		return fmt.Sprintf("%dM", bytes/mib)
	}
	return fmt.Sprintf("%.1fM", float64(bytes)/float64(mib))
}
