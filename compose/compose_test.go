package compose

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/spec"
)

var update = flag.Bool("update", false, "write the compose files anew")

// TestFilesAreFresh: the stacks by hand are what the tests' spec gives.
func TestFilesAreFresh(t *testing.T) {
	for name, b := range Stacks {
		text, err := Render(name, b)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(name)
		if err != nil {
			t.Fatalf("%v; write it by: go test ./compose -update", err)
		}
		if diff := cmp.Diff(string(text), string(have)); diff != "" {
			t.Errorf("%s is stale (go test ./compose -update writes it):\n%s", name, diff)
		}
	}
}

func read(t *testing.T, name string) stackFile {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var f stackFile
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return f
}

// TestLimitsAndPorts: every service is limited as profile t2 says, and listens on loopback only.
func TestLimitsAndPorts(t *testing.T) {
	for name, b := range Stacks {
		f := read(t, name)
		for called, s := range f.Services {
			host := spec.Host(s.Labels[HostLabel])
			want := spec.LimitsFor(spec.T2, host, b.Engine, FoldedCPUs)
			if s.CPUShares != want.CPUShares || !strings.HasSuffix(s.CPUSet, ":-"+cpuList(want.CPUSet)+"}") ||
				s.Memory != s.NoSwap || s.Memory == "" {
				t.Errorf("%s, %s on host %q: cpuset %s, shares %d, memory %s, with swap %s; profile t2 says %+v",
					name, called, host, s.CPUSet, s.CPUShares, s.Memory, s.NoSwap, want)
			}
			for _, port := range s.Ports {
				if !strings.HasPrefix(port, "127.0.0.1:") {
					t.Errorf("%s, %s publishes %s beyond loopback", name, called, port)
				}
			}
			if !strings.HasPrefix(s.Image, "${") {
				t.Errorf("%s, %s: image %s can't be overridden", name, called, s.Image)
			}
			if s.Labels["jaegerlab"] != "" {
				t.Errorf("%s, %s carries the label by which jaegerlab clean ends containers", name, called)
			}
		}
	}
}

// TestNodesJoinOneByOne: each database node waits for the one before, the schema for the last, the
// collectors for the schema.
func TestNodesJoinOneByOne(t *testing.T) {
	f := read(t, "scylladb.yaml")
	for called, needs := range map[string]string{
		"scylla-2": "scylla-1", "scylla-3": "scylla-2", "schema": "scylla-3", "schema-ready": "schema",
		"collector": "schema-ready", "collector-v1": "schema-ready",
	} {
		if _, ok := f.Services[called].DependsOn[needs]; !ok {
			t.Errorf("%s does not wait for %s: %v", called, needs, f.Services[called].DependsOn)
		}
	}
}

// TestNoPortTwice: the stack's own services can't get in each other's way on the host.
func TestNoPortTwice(t *testing.T) {
	for name := range Stacks {
		taken := map[string]string{}
		for called, s := range read(t, name).Services {
			for _, port := range s.Ports {
				_, rest, _ := strings.Cut(port, ":-")
				number, _, _ := strings.Cut(rest, "}")
				if other := taken[number]; other != "" {
					t.Errorf("%s: %s and %s both publish %s", name, other, called, number)
				}
				taken[number] = called
			}
		}
	}
}

// TestTarget: the example of a target is the Cassandra stack, at the ports where it is by default.
func TestTarget(t *testing.T) {
	target, err := spec.ReadTarget("target.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if elsewhere := target.Elsewhere(); len(elsewhere) > 0 || target.CQL.Keyspace != Keyspace {
		t.Errorf("keyspace %s, endpoints elsewhere %v", target.CQL.Keyspace, elsewhere)
	}
	f := read(t, "cassandra.yaml")
	for _, addr := range append([]string{target.Prometheus, target.Collector.Metrics, target.Collector.Ingest["otlp-grpc"],
		target.Collector.Ingest["thrift-http"]}, target.CQL.Hosts...) {
		published := false
		for _, s := range f.Services {
			for _, port := range s.Ports {
				published = published || strings.Contains(port, ":-"+strings.TrimPrefix(addr, "127.0.0.1:")+"}")
			}
		}
		if !published {
			t.Errorf("no service is at %s", addr)
		}
	}
}
