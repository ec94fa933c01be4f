package spec

// Host names one of the original experiment's machines; its CPU set and memory are what the
// profiles hand out.
type Host string

// The original hosts: the database on a t2.medium (2 CPUs, 4 GiB), each other on a t2.micro
// (1 CPU, 1 GiB).
const (
	DatabaseHost  Host = "database"
	CollectorHost Host = "collector"
	LoadHost      Host = "load"
	MonitorHost   Host = "monitor"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30

	databaseHostMemory = 4 * gib
	microMemory        = gib
	nodeShares         = 512 // the original's ECS units of every container, as CPU shares
	originalCPUs       = 5   // 2 + 1 + 1 + 1
)

// Limits are the rules one node runs under. A zero field means: not limited.
type Limits struct {
	CPUSet      []int   `json:"cpu_set"`      // host CPUs it may use
	CPUShares   int     `json:"cpu_shares"`   // weight among nodes on one CPU set (1024 = Docker's default)
	CPUs        float64 `json:"cpus"`         // CFS quota, in CPUs
	MemoryBytes int64   `json:"memory_bytes"` // hard limit; swap is off where memory is limited
}

// NodeMemoryBytes is the fixed size of a database node: ScyllaDB 1 GiB, Cassandra 1.5 GiB, as in
// the original; it sizes heaps under every profile, also where no limit enforces it.
func NodeMemoryBytes(e Engine) int64 {
	if e == Scylla {
		return gib
	}
	return 3 * gib / 2
}

// MaxNodes is how many database nodes of an engine the original database host holds.
func MaxNodes(e Engine) int { return int(databaseHostMemory / NodeMemoryBytes(e)) }

// LimitsFor returns the limits of a node of this engine ("" for anything but a database) on this
// host, when the machine has hostCPUs CPUs. Embedded engines run in the collector and get the
// collector host's and the database host's limits together.
func LimitsFor(p Profile, h Host, e Engine, hostCPUs int) Limits {
	if p == None {
		return Limits{}
	}
	limits := Limits{MemoryBytes: microMemory}
	cpus, quota := hostCPUSet(h), 1.0
	switch {
	case h == DatabaseHost:
		limits.MemoryBytes, quota = NodeMemoryBytes(e), 0.5
	case h == CollectorHost && e.Embedded():
		limits.MemoryBytes = microMemory + databaseHostMemory
		cpus, quota = append(hostCPUSet(DatabaseHost), cpus...), 2.0 // 1 + two database nodes of 0.5
	}
	if p == Hard {
		limits.CPUs = quota
		return limits
	}
	limits.CPUSet, limits.CPUShares = fold(cpus, hostCPUs), nodeShares
	return limits
}

// Overcommitted reports whether a machine has fewer CPUs than the profile's hosts together.
func Overcommitted(p Profile, hostCPUs int) bool { return p != None && hostCPUs < originalCPUs }

func hostCPUSet(h Host) []int {
	switch h {
	case DatabaseHost:
		return []int{0, 1}
	case CollectorHost:
		return []int{2}
	case LoadHost:
		return []int{3}
	default:
		return []int{4}
	}
}

// fold maps CPU i of the original hosts onto CPU i mod hostCPUs, without repeats.
func fold(cpus []int, hostCPUs int) []int {
	var folded []int
	seen := map[int]bool{}
	for _, cpu := range cpus {
		cpu %= max(hostCPUs, 1)
		if !seen[cpu] {
			seen[cpu] = true
			folded = append(folded, cpu)
		}
	}
	return folded
}
