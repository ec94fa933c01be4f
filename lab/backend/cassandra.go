package backend

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

const (
	cassandraName  = "Apache Cassandra"
	cassandraHeap  = 640 // MiB, in a node of 1.5 GiB
	cassandraYoung = 160 // MiB; only collectors other than G1 use it
	cassandraMain  = "org.apache.cassandra.service.CassandraDaemon"
	ringDelayMS    = 2000
	cassandraGrace = 5 * time.Second // its data is thrown away
)

//go:embed conf
var conf embed.FS

// cassandra is Apache Cassandra 5.0: the official image, or its jars on Java 17.
type cassandra struct{}

func (cassandra) engine() spec.Engine { return spec.Cassandra }

func (cassandra) program() string { return "cassandra" }

func (cassandra) preflight(Env, spec.Arm) error {
	if limit := spec.NodeMemoryBytes(spec.Cassandra) / 2; cassandraHeap<<20 > limit {
		return fmt.Errorf("the heap of %d MiB is more than half of a node's memory", cassandraHeap)
	}
	return nil
}

// node implements kind.
func (k cassandra) node(l layout, index int) (node.Program, error) {
	p := node.Program{
		Name: fmt.Sprintf("cassandra-%d", index+1), Host: spec.DatabaseHost,
		Binary: l.binary, Limits: l.limits, Grace: cassandraGrace,
	}
	if l.binary.Image != "" {
		p.Ports = []node.Port{{Name: "cql", Number: 9042}}
		p.Env = cassandraEnv(index)
		return p, nil
	}
	if len(l.binary.Command) < 3 {
		return node.Program{}, fmt.Errorf("describe %s: its command is %q; it must be java, -cp and a class path",
			p.Name, l.binary.Command)
	}
	p.Loopback = loopback(index)
	p.Ports = []node.Port{
		{Name: "cql", Number: 9042, Local: l.ports.cql},
		{Name: "storage", Number: 7000, Local: l.ports.storage},
		{Name: "jmx", Number: 7199, Local: l.ports.jmx[index]},
	}
	p.Env = []string{"MALLOC_ARENA_MAX=4"} // as the distribution's start script sets
	var err error
	if p.Files, err = cassandraFiles(l.ports.storage); err != nil {
		return node.Program{}, fmt.Errorf("describe %s: %w", p.Name, err)
	}
	if p.Args, err = cassandraArgs(l.binary.Command[1:]); err != nil {
		return node.Program{}, fmt.Errorf("describe %s: %w", p.Name, err)
	}
	p.Binary.Command = l.binary.Command[:1]
	return p, nil
}

// joinOptions shorten what a node waits for before it joins; they change nothing once it has.
func joinOptions() []string {
	return []string{
		fmt.Sprintf("-Dcassandra.ring_delay_ms=%d", ringDelayMS),
		"-Dcassandra.skip_wait_for_gossip_to_settle=0",
	}
}

// cassandraEnv configures the official image, and the lab's own, which takes the same variables.
// Only node 1 is a seed: a seed joins without streaming, and two seeds could form two clusters.
func cassandraEnv(index int) []string {
	seed := "cassandra-1"
	if index == 0 {
		seed = "${host}"
	}
	extra := append(joinOptions(),
		"-Dcassandra.config.allow_system_properties=true", "-Dcassandra.settings.auto_snapshot=false")
	return []string{
		"CASSANDRA_CLUSTER_NAME=" + clusterName,
		"CASSANDRA_SEEDS=" + seed,
		"CASSANDRA_ENDPOINT_SNITCH=SimpleSnitch",
		fmt.Sprintf("MAX_HEAP_SIZE=%dM", cassandraHeap),
		fmt.Sprintf("HEAP_NEWSIZE=%dM", cassandraYoung),
		"JVM_EXTRA_OPTS=" + strings.Join(extra, " "),
	}
}

// cassandraFiles renders the configuration of a node that runs as a process.
func cassandraFiles(storagePort int) ([]node.File, error) {
	yaml, err := template.ParseFS(conf, "conf/cassandra.yaml")
	if err != nil {
		return nil, fmt.Errorf("read cassandra.yaml: %w", err)
	}
	var text bytes.Buffer
	values := struct{ Cluster, Seed string }{clusterName, fmt.Sprintf("%s:%d", loopback(0), storagePort)}
	if err := yaml.Execute(&text, values); err != nil {
		return nil, fmt.Errorf("render cassandra.yaml: %w", err)
	}
	logback, err := conf.ReadFile("conf/logback.xml")
	if err != nil {
		return nil, fmt.Errorf("read logback.xml: %w", err)
	}
	return []node.File{
		{Name: "conf/cassandra.yaml", Data: text.Bytes()},
		{Name: "conf/logback.xml", Data: logback},
	}, nil
}

// cassandraArgs are the JVM's: the distribution's options, a heap that is always set, and paths.
// classPath is "-cp" with its value, as package setup gives it.
func cassandraArgs(classPath []string) ([]string, error) {
	args, err := jvmOptions()
	if err != nil {
		return nil, err
	}
	args = append(args,
		fmt.Sprintf("-Xms%dM", cassandraHeap), fmt.Sprintf("-Xmx%dM", cassandraHeap),
		"-Dcassandra.config=file://${dir}/conf/cassandra.yaml",
		"-Dlogback.configurationFile=${dir}/conf/logback.xml",
		"-Dcassandra.storagedir=${dir}", "-Dcassandra.logdir=${dir}",
		"-Dcassandra.jmx.local.port=${port.jmx}",
		"-Dcassandra-foreground=yes", // without it, it closes its output
		"-Djava.io.tmpdir=${dir}/tmp",
	)
	args = append(args, joinOptions()...)
	if agent := memoryMeter(classPath); agent != "" {
		args = append(args, "-javaagent:"+agent)
	}
	return append(append(args, classPath...), cassandraMain), nil
}

func jvmOptions() ([]string, error) {
	text, err := conf.ReadFile("conf/jvm.options")
	if err != nil {
		return nil, fmt.Errorf("read jvm.options: %w", err)
	}
	var options []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			options = append(options, line)
		}
	}
	return options, nil
}

// memoryMeter finds jamm among the jars: the distribution runs it as an agent, with which
// Cassandra measures its memtables instead of guessing. "" when it is not there.
func memoryMeter(classPath []string) string {
	for _, path := range classPath {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "jamm-*.jar"))
		if err == nil && len(found) == 1 && filepath.Base(path) == "*" {
			return found[0]
		}
	}
	return ""
}

// confirm implements kind.
func (cassandra) confirm(_ context.Context, _ *cqlCluster, found *record.Engine) error {
	if found.Name != cassandraName {
		return fmt.Errorf("asked for %s, but the server is %s %s", cassandraName, found.Name, found.Version)
	}
	return nil
}

// differences implements kind.
func (cassandra) differences(runtime spec.Runtime) []string {
	shared := []string{
		fmt.Sprintf("ring delay %d ms (30,000 ms is the default), no wait for gossip to settle: joining only", ringDelayMS),
		fmt.Sprintf("heap fixed at %d MiB (the default follows the host's memory)", cassandraHeap),
		"auto_snapshot off (shipped on): a dropped keyspace gives its disk space back",
	}
	if runtime == spec.Docker {
		return shared
	}
	return append(shared,
		"runs from the release's Maven jars, not from the image",
		"one folder for data and commit log; all nodes share one disk and one kernel",
		"no jemalloc, no GC log file, no heap dump on an out-of-memory error, which ends the JVM at once",
		"each node has a loopback address of its own, and free ports instead of 9042, 7000 and 7199",
	)
}
