package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"jaegerlab/lab/backend/seastar"
	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

const (
	scyllaShards  = 1
	scyllaMemory  = int64(700) << 20 // of a node of 1 GiB
	scyllaNetwork = 1000             // AIO slots a shard for the network; the default of 50,000 fits one node a host
	scyllaGrace   = 5 * time.Second  // its data is thrown away
	pageWithin    = 5 * time.Second
	pageBytes     = 8 << 20
)

// standInMetric is the line by which a stand-in tells that it is none of ScyllaDB's.
const standInMetric = "jaegerlab_stand_in 1"

// scylla is ScyllaDB in containers. proc is where the kernel's settings are read; "" = /proc.
type scylla struct{ proc string }

func (scylla) engine() spec.Engine { return spec.Scylla }

func (scylla) program() string { return "scylla" }

// preflight computes ScyllaDB's own rules for memory and AIO slots before any container starts.
func (k scylla) preflight(env Env, arm spec.Arm) error {
	if env.Runtime.Name() != spec.Docker {
		return errors.New("ScyllaDB runs in containers only, and this run starts plain processes; " +
			"start a Docker daemon (LAB_RUNTIME=docker), or leave scylla out of LAB_BACKENDS")
	}
	host := env.Runtime.Host()
	reserve := int64(0)
	memory := seastar.Memory{
		Host: host.MemoryBytes, Shards: scyllaShards, Asked: scyllaMemory, Reserve: &reserve,
		Limit: spec.LimitsFor(arm.Profile, spec.DatabaseHost, spec.Scylla, host.CPUs).MemoryBytes,
	}
	if host.MemoryBytes > 0 {
		if _, err := memory.Heap(); err != nil {
			return fmt.Errorf("ScyllaDB would not start: %w", err)
		}
	}
	aio, known := k.slots()
	if !known { // the daemon is on another kernel: its containers will say it
		return nil
	}
	if err := aio.Fit(arm.Backend.Nodes); err != nil {
		return fmt.Errorf("ScyllaDB would not start: %w", err)
	}
	return nil
}

// slots reads the kernel's stock of AIO slots, where this machine's kernel is the containers'.
func (k scylla) slots() (seastar.AIO, bool) {
	most, err := readNumber(filepath.Join(k.root(), "sys/fs/aio-max-nr"))
	if err != nil {
		return seastar.AIO{}, false
	}
	used, err := readNumber(filepath.Join(k.root(), "sys/fs/aio-nr"))
	if err != nil {
		return seastar.AIO{}, false
	}
	return seastar.AIO{Max: most, Used: used, Shards: scyllaShards, Network: scyllaNetwork}, true
}

func (k scylla) root() string {
	if k.proc != "" {
		return k.proc
	}
	return "/proc"
}

func readNumber(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// node implements kind. A configuration file is not needed: the image takes every option of
// ScyllaDB on its command line.
func (scylla) node(l layout, index int) (node.Program, error) {
	seed := "scylla-1"
	if index == 0 {
		seed = "${host}"
	}
	args := []string{
		"--seeds", seed,
		"--cluster-name", clusterName,
		"--smp", strconv.Itoa(scyllaShards),
		"--memory", seastar.Size(scyllaMemory),
		"--reserve-memory", "0M",
		"--overprovisioned", "1",
		"--developer-mode", "1",
		"--disable-version-check",
		"--max-networking-io-control-blocks", strconv.Itoa(scyllaNetwork),
		"--ring-delay-ms", strconv.Itoa(ringDelayMS),
		"--skip-wait-for-gossip-to-settle", "0",
		"--auto-snapshot", "0",
	}
	return node.Program{
		Name: fmt.Sprintf("scylla-%d", index+1), Host: spec.DatabaseHost, Binary: l.binary, Limits: l.limits,
		Args: append(args, tabletsOff(l.binary.Image)...), Grace: scyllaGrace,
		Ports: []node.Port{{Name: "cql", Number: 9042}, {Name: "metrics", Number: 9180}},
	}, nil
}

// tabletsOff spreads rows by vnodes, as Cassandra does, in the words of the image's version:
// versions before 6.0 have no tablets, 2025.2 renamed the option.
func tabletsOff(image string) []string {
	major, minor, known := scyllaVersion(image)
	switch {
	case known && major < 6:
		return nil
	case known && (major < 2025 || major == 2025 && minor < 2):
		return []string{"--enable-tablets=false"}
	}
	return []string{"--tablets-mode-for-new-keyspaces=disabled", "--blocked-reactor-notify-ms", "999999999"}
}

// scyllaVersion reads the version from an image's tag. An image of the lab's own is a stand-in
// for 6.2.3.
func scyllaVersion(image string) (major, minor int, known bool) {
	if strings.Contains(image, "stand-in") {
		return 6, 2, true
	}
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, _ := strings.Cut(name, ":")
	tag, _, _ = strings.Cut(tag, "@")
	parts := strings.SplitN(strings.TrimPrefix(tag, "scylla-"), ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(strings.TrimRight(parts[1], "-abcdefghijklmnopqrstuvwxyz"))
	return major, minor, err == nil
}

// confirm implements kind: anything but ScyllaDB must say that it is a stand-in.
func (scylla) confirm(ctx context.Context, c *cqlCluster, found *record.Engine) error {
	standIns := 0
	for _, n := range c.nodes {
		yes, err := isStandIn(ctx, n.Addr("metrics"))
		if err != nil {
			return fmt.Errorf("%s: read its metrics: %w", n.Name(), err)
		}
		if yes {
			standIns++
		}
	}
	switch {
	case found.Name == scyllaName && standIns == 0:
		return nil
	case found.Name != scyllaName && standIns == len(c.nodes):
		found.StandIn = true
		found.Evidence = append(found.Evidence, "metrics page: "+standInMetric+" (stand-in: this is not ScyllaDB)")
		return nil
	}
	return fmt.Errorf("asked for %s, but the server is %s %s, and %d of %d nodes say that they are stand-ins",
		scyllaName, found.Name, found.Version, standIns, len(c.nodes))
}

// isStandIn looks for the stand-in's line on a metrics page.
func isStandIn(ctx context.Context, addr string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, pageWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("get http://%s/metrics: status %s", addr, response.Status)
	}
	page, err := io.ReadAll(io.LimitReader(response.Body, pageBytes))
	if err != nil {
		return false, fmt.Errorf("get http://%s/metrics: %w", addr, err)
	}
	for line := range strings.Lines(string(page)) {
		if strings.TrimSpace(line) == standInMetric {
			return true, nil
		}
	}
	return false, nil
}

// differences implements kind.
func (scylla) differences(spec.Runtime) []string {
	return []string{
		fmt.Sprintf("one shard, %s of memory, nothing reserved: fits a container of 1 GiB", seastar.Size(scyllaMemory)),
		fmt.Sprintf("%d AIO slots a shard for the network (default 50,000): several nodes fit one host", scyllaNetwork),
		"overprovisioned and in developer mode, as the image is by default",
		"tablets off: rows are spread by vnodes, as in Cassandra",
		fmt.Sprintf("ring delay %d ms, no wait for gossip to settle: joining only", ringDelayMS),
		"auto_snapshot off (on by default): a dropped keyspace gives its disk space back",
		"no version check over the network",
	}
}
