package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// State is a check's result.
type State string

// The states.
const (
	OK   State = "ok"
	Warn State = "warn"    // the lab runs, but with less: the text says with what
	Lack State = "missing" // nothing runs without it
)

// Check is one line of the doctor: what this machine has, what the lab needs, what helps.
type Check struct {
	Name   string
	State  State
	Have   string
	Need   string
	Remedy string // "" where nothing has to be done
}

// Sizes that the doctor compares with, from measured runs of the default arms.
const (
	needMemory      = int64(7) << 30 // two Cassandra nodes, collector, load and monitor hosts at their limits
	needCacheBytes  = int64(2) << 30 // programs, jars, and the work folder of the Debian base
	needResultBytes = int64(1) << 30
	needCPUs        = 5 // the original hosts together
	scyllaNodes     = 3
)

// probe is what the doctor asks of the machine; tests give another one.
type probe struct {
	lookup
	readFile func(string) ([]byte, error)
	docker   func(context.Context) (Daemon, error)
	images   func(context.Context) (*Catalog, error)
	built    func(program) (why string, err error)
	jars     func() bool
	free     func(path string) (int64, error) // bytes free on the disk of a folder
	writable func(path string) bool
	listen   func(address string) error // takes a free port on an address and gives it back
	cpus     int
	cache    string
	results  string
}

// Doctor looks at this machine and starts nothing. Checks come in a fixed order.
func Doctor(ctx context.Context) []Check {
	cache, err := CacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	results := os.Getenv("LAB_RESULTS")
	b, err := newBuilder(func(string, ...any) {})
	if results == "" && err == nil {
		results = filepath.Join(b.root, "results")
	}
	return probe{
		lookup: thisMachine(), readFile: os.ReadFile, docker: AskDocker, images: presentImages,
		built: func(p program) (string, error) {
			_, why, builtErr := b.built(p, thisPlatform())
			return why, errors.Join(err, builtErr)
		},
		jars: func() bool { return jarsPresent(cache) }, free: diskFree, writable: writable, listen: listen,
		cpus: runtime.NumCPU(), cache: cache, results: results,
	}.checks(ctx)
}

func (p probe) checks(ctx context.Context) []Check {
	daemon, dockerErr := p.docker(ctx)
	checks := []Check{p.checkDocker(daemon, dockerErr), p.checkGo(), p.checkJava(ctx), p.checkMaven()}
	cpus, memory := p.cpus, int64(0)
	if dockerErr == nil {
		cpus, memory = daemon.CPUs, daemon.MemoryBytes
	} else if total, err := meminfo(p.readFile, "MemTotal"); err == nil {
		memory = total
	}
	checks = append(checks, checkCPUs(cpus), checkMemory(memory),
		p.checkDisk("disk (cache)", p.cache, needCacheBytes, "LAB_CACHE names another folder"),
		p.checkDisk("disk (results)", p.results, needResultBytes, "LAB_RESULTS names another folder"),
		p.checkAIO(daemon, dockerErr), p.checkLoopback(), p.checkCgroups(), p.checkPrograms())
	if dockerErr == nil {
		checks = append(checks, p.checkImages(ctx)...)
	}
	return checks
}

func (p probe) checkDocker(daemon Daemon, err error) Check {
	check := Check{Name: "docker", Need: "a daemon that answers; without one the lab runs plain processes, without scylla"}
	if err != nil {
		check.State, check.Have = Warn, firstLine(err)
		check.Remedy = dockerRemedy(err)
		return check
	}
	version := "cgroup version unknown"
	if daemon.CgroupVersion > 0 {
		version = fmt.Sprintf("cgroup v%d", daemon.CgroupVersion)
	}
	check.State = OK
	check.Have = fmt.Sprintf("Docker %s on %s (%s), %s", daemon.Version, daemon.OS, daemon.Arch, version)
	return check
}

func (p probe) checkGo() Check {
	check := Check{Name: "go", State: OK, Need: "Go 1.26 or newer, which builds the programs"}
	path, err := p.lookPath("go")
	if err != nil {
		check.State, check.Have, check.Remedy = Lack, "no go command in PATH", "install Go: https://go.dev/dl"
		return check
	}
	check.Have = path + " (this program: " + runtime.Version() + ")"
	return check
}

func (p probe) checkJava(ctx context.Context) Check {
	check := Check{Name: "java", State: OK, Need: "Java 17 (11 works) for cassandra as processes"}
	java, err := p.java(ctx)
	if err != nil {
		check.State, check.Have, check.Remedy = Warn, err.Error(), "install a Java 17 runtime, or set JAVA_HOME to one"
		return check
	}
	check.Have = fmt.Sprintf("Java %s (%s)", java.Version, java.Path)
	return check
}

func (p probe) checkMaven() Check {
	check := Check{Name: "maven", State: OK, Need: "mvn, which fetches Cassandra's jars once"}
	path, err := p.lookPath("mvn")
	switch {
	case err == nil:
		check.Have = path
	case p.jars():
		check.Have = "no mvn in PATH, but the jars are already there"
	default:
		check.State, check.Have, check.Remedy = Warn, "no mvn in PATH", "install Maven 3.8 or newer"
	}
	return check
}

func checkCPUs(cpus int) Check {
	check := Check{Name: "cpus", State: OK, Have: strconv.Itoa(cpus),
		Need: fmt.Sprintf("%d, as the original hosts have together", needCPUs)}
	if cpus < needCPUs {
		check.State = Warn
		check.Remedy = "nothing: runs are marked overcommitted; compare only runs of one machine"
	}
	return check
}

func checkMemory(memory int64) Check {
	check := Check{Name: "memory", State: OK, Have: gib(memory), Need: gib(needMemory) + " for the default arms"}
	switch {
	case memory == 0:
		check.State, check.Have = Warn, "not readable on this system"
	case memory < needMemory:
		check.State = Warn
		check.Remedy = "take fewer nodes (LAB_BACKENDS=cassandra:1 or badger), or give Docker's virtual machine more memory"
	}
	return check
}

func (p probe) checkDisk(name, folder string, need int64, remedy string) Check {
	check := Check{Name: name, State: OK, Need: gib(need) + " free"}
	free, err := p.free(folder)
	switch {
	case err != nil:
		check.State, check.Have, check.Remedy = Warn, err.Error(), remedy
	default:
		check.Have = gib(free) + " free at " + folder
		if free < need {
			check.State, check.Remedy = Warn, "free some space, or "+remedy
		}
	}
	return check
}

// AIONeed is how many of the kernel's slots for asynchronous I/O a number of ScyllaDB nodes take
// with --smp 1 and the lab's --max-networking-io-control-blocks 1000: 1024 for storage, 2 for
// preemption, 1000 for the network each. ScyllaDB's own default is 51026 a node.
func AIONeed(nodes int) int64 { return int64(nodes) * (1024 + 2 + 1000) }

// checkAIO compares with fs.aio-max-nr, which is one number for the whole host.
func (p probe) checkAIO(daemon Daemon, dockerErr error) Check {
	need := AIONeed(scyllaNodes)
	check := Check{Name: "fs.aio-max-nr", State: OK, Need: fmt.Sprintf("%d free for %d ScyllaDB nodes", need, scyllaNodes)}
	most, err := p.number("/proc/sys/fs/aio-max-nr")
	if err != nil || daemon.OS == "Docker Desktop" {
		check.State, check.Have = Warn, "not readable here: Docker runs in a virtual machine"
		if dockerErr != nil {
			check.Have = "not readable on this system, and no Docker to run ScyllaDB in"
		}
		check.Remedy = "nothing, unless ScyllaDB says that its asynchronous I/O can't be set up"
		return check
	}
	used, err := p.number("/proc/sys/fs/aio-nr")
	if err != nil {
		used = 0
	}
	check.Have = fmt.Sprintf("%d, %d in use", most, used)
	if most-used < need {
		check.State = Warn
		check.Remedy = "sudo sysctl -w fs.aio-max-nr=1048576; or fewer nodes, or --reactor-backend=epoll"
	}
	return check
}

func (p probe) number(path string) (int64, error) {
	data, err := p.readFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
}

// checkLoopback: ports are taken free ones, so that none is fixed; what a cluster of processes
// needs is more than one loopback address.
func (p probe) checkLoopback() Check {
	check := Check{Name: "ports", State: OK, Have: "free ports on 127.0.0.1, .2 and .3",
		Need: "no fixed port; one loopback address for each Cassandra node that runs as a process"}
	for i := 1; i <= 3; i++ {
		address := fmt.Sprintf("127.0.0.%d", i)
		if err := p.listen(address); err != nil {
			check.State, check.Have = Warn, fmt.Sprintf("%s: %v", address, err)
			check.Remedy = "take cassandra:1 as processes, or Docker"
			if i == 1 {
				check.State, check.Remedy = Lack, "make 127.0.0.1 usable"
			}
			return check
		}
	}
	return check
}

// checkCgroups looks where process limits would be set.
func (p probe) checkCgroups() Check {
	check := Check{Name: "cgroups", State: OK, Need: "writable cgroups, so that limits of plain processes are in force"}
	folders, version := []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"}, "v1"
	if _, err := p.readFile("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		folders, version = []string{"/sys/fs/cgroup"}, "v2"
	}
	for _, folder := range folders {
		if !p.writable(folder) {
			check.State, check.Have = Warn, fmt.Sprintf("cgroup %s, %s not writable", version, folder)
			check.Remedy = "run as root, or use Docker; otherwise runs are marked as not limited"
			return check
		}
	}
	check.Have = "cgroup " + version + ", writable"
	return check
}

func (p probe) checkPrograms() Check {
	check := Check{Name: "programs", State: OK, Need: "built programs and jars for the runtime process"}
	var absent, have []string
	for _, prog := range programs {
		if !prog.goBuilt() || prog.fromCheckout() {
			continue
		}
		if why, err := p.built(prog); err != nil || why != "" {
			absent = append(absent, prog.name)
		} else {
			have = append(have, prog.name)
		}
	}
	if !p.jars() {
		absent = append(absent, "Cassandra's jars")
	} else {
		have = append(have, "Cassandra's jars")
	}
	check.Have = "present: " + orNone(have)
	if len(absent) > 0 {
		check.State, check.Have, check.Remedy = Warn, check.Have+"; absent: "+orNone(absent), Hint
	}
	return check
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (p probe) checkImages(ctx context.Context) []Check {
	catalog, err := p.images(ctx)
	if err != nil {
		return []Check{{Name: "images", State: Warn, Have: err.Error(), Need: "images for the runtime docker"}}
	}
	var checks []Check
	for _, prog := range programs {
		if prog.fromCheckout() {
			continue
		}
		check := Check{Name: "image " + prog.name, State: OK, Need: strings.Join(prog.images(), " or ")}
		if absent := catalog.Missing(prog.name); len(absent) > 0 {
			check.State, check.Have, check.Remedy = Warn, "absent", Hint+", or "+absent[0].Remedy
		} else if binary, err := catalog.Binary(prog.name); err == nil {
			check.Have = binary.Image
		}
		checks = append(checks, check)
	}
	return checks
}

func presentImages(ctx context.Context) (*Catalog, error) {
	d, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	defer d.close()
	return findImages(ctx, d, nil)
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// diskFree asks the nearest folder above that exists: the cache may not be there yet.
func diskFree(folder string) (int64, error) {
	for {
		var stat syscall.Statfs_t
		err := syscall.Statfs(folder, &stat)
		if err == nil {
			return int64(stat.Bavail) * int64(stat.Bsize), nil
		}
		if !errors.Is(err, os.ErrNotExist) || folder == filepath.Dir(folder) {
			return 0, fmt.Errorf("ask for free space at %s: %w", folder, err)
		}
		folder = filepath.Dir(folder)
	}
}

func writable(path string) bool {
	const writeOK = 2 // W_OK of access(2)
	return syscall.Access(path, writeOK) == nil
}

func listen(address string) error {
	listener, err := net.Listen("tcp4", net.JoinHostPort(address, "0"))
	if err != nil {
		return err
	}
	return listener.Close()
}
