package backend

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
)

// Cases 24, 27, 28: heap always set and at most half the memory; the module flags come with the
// launcher; own ports and addresses.
func TestCassandraAsProcess(t *testing.T) {
	lib := t.TempDir()
	if err := os.WriteFile(filepath.Join(lib, "jamm-0.4.0.jar"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	binary := node.Binary{Command: []string{"/opt/java/bin/java", "-cp", filepath.Join(lib, "*")}}
	l := layout{binary: binary, count: 2, ports: ports{cql: 30001, storage: 30002, jmx: []int{30003, 30004}}}
	first, err := cassandra{}.node(l, 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := cassandra{}.node(l, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(second.Binary.Command, []string{"/opt/java/bin/java"}) || second.Loopback != "127.0.0.2" {
		t.Errorf("command %q at %s", second.Binary.Command, second.Loopback)
	}
	args := strings.Join(second.Args, "\n") + "\n"
	for _, want := range []string{"-Xmx640M\n", "-Xms640M\n", "--add-opens=java.base/java.lang=ALL-UNNAMED\n",
		"--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED\n", "-XX:+ExitOnOutOfMemoryError\n",
		"-Dcassandra-foreground=yes\n",
		"-Dcassandra.ring_delay_ms=2000\n", "-javaagent:" + filepath.Join(lib, "jamm-0.4.0.jar") + "\n",
		"-cp\n" + filepath.Join(lib, "*") + "\norg.apache.cassandra.service.CassandraDaemon\n"} {
		if !strings.Contains(args, want) {
			t.Errorf("arguments lack %q: %s", want, args)
		}
	}
	if heap := int64(cassandraHeap) << 20; heap > spec.NodeMemoryBytes(spec.Cassandra)/2 {
		t.Errorf("the heap of %d bytes is more than half of a node's memory", heap)
	}
	if first.Ports[0].Local != second.Ports[0].Local || first.Ports[2].Local == second.Ports[2].Local {
		t.Errorf("ports %v and %v: CQL must be the same, JMX must differ", first.Ports, second.Ports)
	}
	var conf struct {
		Seeds []struct {
			Parameters []map[string]string `yaml:"parameters"`
		} `yaml:"seed_provider"`
		Policy  string   `yaml:"disk_failure_policy"`
		Cluster string   `yaml:"cluster_name"`
		Data    []string `yaml:"data_file_directories"`
	}
	if err := yaml.Unmarshal(second.Files[0].Data, &conf); err != nil {
		t.Fatal(err)
	}
	if seeds := conf.Seeds[0].Parameters[0]["seeds"]; seeds != "127.0.0.1:30002" {
		t.Errorf("seeds of node 2 are %q: only node 1 is one", seeds)
	}
	if conf.Policy != "stop" || conf.Cluster != clusterName || conf.Data[0] != "${dir}/data" {
		t.Errorf("configuration = %+v", conf)
	}
}

func TestCassandraInAContainer(t *testing.T) {
	l := layout{binary: node.Binary{Image: "cassandra:5.0"}, count: 2}
	second, err := cassandra{}.node(l, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CASSANDRA_SEEDS=cassandra-1", "MAX_HEAP_SIZE=640M", "HEAP_NEWSIZE=160M",
		"CASSANDRA_ENDPOINT_SNITCH=SimpleSnitch"} {
		if !slices.Contains(second.Env, want) {
			t.Errorf("environment %q lacks %s", second.Env, want)
		}
	}
	if len(second.Ports) != 1 || second.Args != nil || second.Files != nil {
		t.Errorf("program = %+v", second)
	}
}

func TestCassandraNeedsJavaAndAClassPath(t *testing.T) {
	l := layout{binary: node.Binary{Command: []string{"/bin/cassandra"}}, count: 1, ports: ports{jmx: []int{1}}}
	_, err := cassandra{}.node(l, 0)
	if err == nil || !strings.Contains(err.Error(), "class path") {
		t.Errorf("node() = %v", err)
	}
}

func TestScyllaFlagsFollowTheImage(t *testing.T) {
	for image, want := range map[string]string{
		"scylladb/scylla:6.2.3": "--enable-tablets=false", "docker.io/scylladb/scylla:2025.1.4": "--enable-tablets=false",
		"scylladb/scylla:5.4.9": "", "localhost:5000/scylla:2025.4.1": "--tablets-mode-for-new-keyspaces=disabled",
		"scylladb/scylla:latest":                 "--tablets-mode-for-new-keyspaces=disabled",
		"jaegerlab/scylla-stand-in:1":            "--enable-tablets=false",
		"scylladb/scylla:2026.1.0-rc2@sha256:00": "--tablets-mode-for-new-keyspaces=disabled",
	} {
		p, err := scylla{}.node(layout{binary: node.Binary{Image: image}, count: 3}, 2)
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Join(p.Args, " ")
		if want != "" && !strings.Contains(args, want) || want == "" && strings.Contains(args, "tablets") {
			t.Errorf("%s: arguments %s; want %q", image, args, want)
		}
		for _, always := range []string{"--seeds scylla-1", "--smp 1", "--memory 700M", "--reserve-memory 0M",
			"--overprovisioned 1", "--max-networking-io-control-blocks 1000", "--disable-version-check"} {
			if !strings.Contains(args, always) {
				t.Errorf("%s: arguments %s lack %s", image, args, always)
			}
		}
	}
}

func TestPortsAreFreeOnEveryAddress(t *testing.T) {
	if listener, err := net.Listen("tcp4", "127.0.0.2:0"); err != nil {
		_, err := pickPorts(2)
		if err == nil || !strings.Contains(err.Error(), "127.0.0.2") || !strings.Contains(err.Error(), "cassandra:1") {
			t.Errorf("pickPorts(2) = %v", err)
		}
		return
	} else {
		_ = listener.Close()
	}
	p, err := pickPorts(3)
	if err != nil {
		t.Fatal(err)
	}
	numbers := append([]int{p.cql, p.storage}, p.jmx...)
	slices.Sort(numbers)
	if len(slices.Compact(numbers)) != 5 {
		t.Errorf("ports %+v are not five", p)
	}
	for i := range 3 {
		listener, err := net.Listen("tcp4", net.JoinHostPort(loopback(i), strconv.Itoa(p.cql)))
		if err != nil {
			t.Errorf("port %d is taken on %s: %v", p.cql, loopback(i), err)
			continue
		}
		_ = listener.Close()
	}
}
