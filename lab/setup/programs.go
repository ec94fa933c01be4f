package setup

import (
	"fmt"
	"slices"
)

// program is one row of the table of programs: what it is built from and under which names it is
// found. Versions are pinned twice on purpose, here and in the tool's go.mod; a test compares them.
type program struct {
	name    string
	version string // what the program calls itself; checkout programs have none: their content decides
	folder  string // below the checkout: folder of the go.mod it is built in; "" = not built by Go
	pkg     string // import path of its main package
	module  string // module and version that the go.mod pins; "" for the checkout's own programs
	tags    string
	ldflags string
	first   string // how long a first build takes, for the progress line
	command []string

	public string // image that the project itself publishes, with its tag
	local  string // image that BuildImages makes, without the tag
	recipe string // name of the recipe in compose/images
}

// CassandraVersion is the release whose jars are pinned in cassandra-jars.sum.
const CassandraVersion = "5.0.6"

const (
	jaegerModule = "github.com/jaegertracing/jaeger"
	jaegerPin    = "v1.76.0"
	jaegerV2     = "2.13.0"
	jaegerV1     = "1.76.0"

	prometheusModule = "github.com/prometheus/prometheus"
	prometheusPin    = "v0.316.0"
	prometheusV      = "3.16.0"

	nodeExporterModule = "github.com/prometheus/node_exporter"
	nodeExporterV      = "1.12.1"

	scyllaV  = "6.2.3"
	standInV = "1"
)

// programs is the table, in the order that finds a broken machine soonest: quick builds first.
var programs = []program{
	{name: Load, folder: ".", pkg: "./cmd/jaegerlab", first: "a minute", recipe: "load", local: "jaegerlab/load",
		command: []string{"load"}},
	{name: NodeExporter, version: nodeExporterV, folder: "tools/node-exporter", pkg: nodeExporterModule,
		module: nodeExporterModule + " v" + nodeExporterV, first: "a minute",
		ldflags: versionFlags("github.com/prometheus/common/version", "Version="+nodeExporterV),
		public:  "prom/node-exporter:v" + nodeExporterV, local: "jaegerlab/node-exporter", recipe: NodeExporter},
	{name: Prometheus, version: prometheusV, folder: "tools/prometheus", pkg: prometheusModule + "/cmd/prometheus",
		module: prometheusModule + " " + prometheusPin, tags: "remove_all_sd,enable_static_sd", first: "2 to 4 minutes",
		ldflags: versionFlags("github.com/prometheus/common/version", "Version="+prometheusV),
		public:  "prom/prometheus:v" + prometheusV, local: "jaegerlab/prometheus", recipe: Prometheus},
	jaegerProgram(Jaeger, "jaeger", jaegerV2, "jaegertracing/jaeger:"+jaegerV2, "jaegerlab/jaeger"),
	jaegerProgram(JaegerV1Collector, "collector", jaegerV1,
		"jaegertracing/jaeger-collector:"+jaegerV1, "jaegerlab/jaeger-collector"),
	jaegerProgram(JaegerV1AllInOne, "all-in-one", jaegerV1,
		"jaegertracing/all-in-one:"+jaegerV1, "jaegerlab/all-in-one"),
	{name: Cassandra, version: CassandraVersion, public: "cassandra:5.0", local: "jaegerlab/cassandra", recipe: Cassandra},
	{name: Scylla, version: scyllaV, public: "scylladb/scylla:" + scyllaV},
	{name: ScyllaStandIn, version: standInV, folder: ".", pkg: "./cmd/scylla-stand-in", first: "a minute",
		local: "jaegerlab/scylla-stand-in", recipe: ScyllaStandIn},
}

// jaegerProgram is one command of the Jaeger module. The version flags are what its own release
// build sets; without them it reports no version.
func jaegerProgram(name, command, version, public, local string) program {
	return program{
		name: name, version: version, folder: "tools/jaeger", pkg: jaegerModule + "/cmd/" + command,
		module: jaegerModule + " " + jaegerPin, first: "5 to 8 minutes for the first program of Jaeger",
		ldflags: versionFlags(jaegerModule+"/internal/version", "latestVersion=v"+version),
		public:  public, local: local, recipe: name,
	}
}

func versionFlags(pkg string, values ...string) string {
	flags := ""
	for _, value := range values {
		flags += " -X " + pkg + "." + value
	}
	return flags[1:]
}

// fromCheckout reports whether the program is built from the lab's own sources, each time.
func (p program) fromCheckout() bool { return p.folder == "." }

// goBuilt reports whether the Go toolchain makes the program.
func (p program) goBuilt() bool { return p.folder != "" }

// localRef is the image that BuildImages makes of it.
func (p program) localRef() string { return p.local + ":" + p.version }

func find(name string) (program, error) {
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	if i < 0 {
		return program{}, fmt.Errorf("find program %q: there is no such program; known are %v", name, programNames())
	}
	return programs[i], nil
}

func programNames() []string {
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
	}
	return names
}
