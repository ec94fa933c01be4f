package compose

import (
	"bytes"
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/node"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
)

// stackFile is a compose file, as far as the lab needs it.
type stackFile struct {
	Name     string             `yaml:"name"`
	Services map[string]service `yaml:"services"`
	Configs  map[string]config  `yaml:"configs"`
}

type config struct {
	Content string `yaml:"content"`
}

type service struct {
	Image       string                `yaml:"image"`
	Build       *build                `yaml:"build,omitempty"`
	Profiles    []string              `yaml:"profiles,omitempty"`
	Hostname    string                `yaml:"hostname"`
	Entrypoint  []string              `yaml:"entrypoint,omitempty"`
	Command     []string              `yaml:"command,omitempty"`
	Environment []string              `yaml:"environment,omitempty"`
	Configs     []mount               `yaml:"configs,omitempty"`
	Volumes     []string              `yaml:"volumes,omitempty"`
	Ports       []string              `yaml:"ports,omitempty"`
	DependsOn   map[string]dependency `yaml:"depends_on,omitempty"`
	Health      *health               `yaml:"healthcheck,omitempty"`
	Restart     string                `yaml:"restart,omitempty"`
	Grace       string                `yaml:"stop_grace_period,omitempty"`
	CPUSet      string                `yaml:"cpuset"`
	CPUShares   int                   `yaml:"cpu_shares"`
	Memory      string                `yaml:"mem_limit"`
	NoSwap      string                `yaml:"memswap_limit"` // equal to mem_limit: no swap
	Labels      map[string]string     `yaml:"labels"`
}

type build struct {
	Context string `yaml:"context"`
	Inline  string `yaml:"dockerfile_inline"`
}

type mount struct {
	Source string `yaml:"source"`
	Target string `yaml:"target"`
	Mode   string `yaml:"mode"`
}

type dependency struct {
	Condition string `yaml:"condition"`
}

type health struct {
	Test     []string `yaml:"test,flow"`
	Interval string   `yaml:"interval"`
	Timeout  string   `yaml:"timeout"`
	Start    string   `yaml:"start_period"`
	Retries  int      `yaml:"retries"`
}

// Conditions of depends_on.
const (
	started   = "service_started"
	healthy   = "service_healthy"
	completed = "service_completed_successfully"
)

// HostLabel says on which of the original hosts a container stands. The resources service finds
// the stack's containers by it.
const HostLabel = "jaegerlab.host"

// Render gives the compose file of a backend.
func Render(name string, b spec.Backend) ([]byte, error) {
	p, err := plan(b)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	f := stackFile{Name: "jaegerlab-" + strings.TrimSuffix(name, ".yaml"), Services: map[string]service{}, Configs: map[string]config{}}
	if err := f.fill(p); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, header, name, b.Nodes, b.Engine, name)
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(f); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return text.Bytes(), nil
}

const header = `# %s: Jaeger on %d nodes of %s, with Prometheus, node-exporter, Grafana and, as profile load, the
# load node: the lab's stack by hand. README.md in this folder says how to use it.
#
#     docker compose -f compose/%s up
#
# Rendered by go test ./compose -update from the spec of the tests; change it there. Values in ${...}
# can be set in the environment or in compose/.env, which "make compose" writes for this machine.

`

// fill adds every service.
func (f *stackFile) fill(p parts) error {
	for i, one := range p.database {
		s, err := f.service(one, imageOf(databaseImage(p)))
		if err != nil {
			return err
		}
		if i > 0 { // nodes join one after another
			s.DependsOn = map[string]dependency{p.database[i-1].Name: {healthy}}
		}
		// The port opens when the node has joined. bash is in every image of both engines.
		s.Health = &health{Test: []string{"CMD", "bash", "-c", ": > /dev/tcp/" + one.Name + "/9042"},
			Interval: "5s", Timeout: "3s", Start: "5m", Retries: 6}
		f.Services[one.Name] = s
	}
	last := p.database[len(p.database)-1].Name
	if err := f.addJaeger(p, last); err != nil {
		return err
	}
	for _, one := range []struct {
		program node.Program
		name    string
	}{{p.exporter, setup.NodeExporter}, {p.prom, setup.Prometheus}} {
		s, err := f.service(one.program, imageOf(one.name))
		if err != nil {
			return err
		}
		f.Services[one.program.Name] = s
	}
	f.Services[serviceGrafana] = grafanaService(p.monitor)
	f.Services[serviceResources] = resources(p)
	return f.addLoad(p)
}

func databaseImage(p parts) string { return string(engineOf(p)) }

func engineOf(p parts) spec.Engine {
	name, _, _ := strings.Cut(p.database[0].Name, "-")
	return spec.Engine(name)
}

// addJaeger adds the owner of the schema, which stays up idle, what waits for it, and the
// collectors, which start when the schema is there and create nothing.
func (f *stackFile) addJaeger(p parts, after string) error {
	schema, err := f.service(p.schema, imageOf(setup.Jaeger))
	if err != nil {
		return err
	}
	schema.Ports, schema.Restart = nil, "on-failure"
	schema.DependsOn = map[string]dependency{after: {healthy}}
	f.Services[p.schema.Name] = schema

	f.Services[serviceAwait] = own(serviceAwait, p.monitor, spec.MonitorHost,
		"await", "--timeout", "5m", "http://"+addr(p.schema, "health")+"/status")
	wait := f.Services[serviceAwait]
	wait.DependsOn = map[string]dependency{p.schema.Name: {started}}
	f.Services[serviceAwait] = wait

	for _, one := range []struct {
		program       node.Program
		name, profile string
	}{{p.collector, setup.Jaeger, ""}, {p.collectorV1, setup.JaegerV1Collector, "v1"}} {
		s, err := f.service(one.program, imageOf(one.name))
		if err != nil {
			return err
		}
		s.DependsOn = map[string]dependency{serviceAwait: {completed}}
		if one.profile != "" {
			s.Profiles = []string{one.profile}
		}
		f.Services[one.program.Name] = s
	}
	return nil
}

// addLoad adds the load node, which starts a job on its own.
func (f *stackFile) addLoad(p parts) error {
	s, err := f.service(p.loadNode, stackImage)
	if err != nil {
		return err
	}
	mine := own(serviceLoad, p.loading, spec.LoadHost, append(append([]string{"load"}, s.Command...),
		"--target", "${STACK_TARGET:-"+addr(p.collector, "otlp-grpc")+"}", "--client", "${STACK_CLIENT:-otlp-grpc}")...)
	mine.Ports, mine.Profiles = s.Ports, []string{"load"}
	mine.DependsOn = map[string]dependency{p.collector.Name: {started}, p.prom.Name: {started}}
	for _, name := range []string{"CONCURRENCY", "SPANS_COUNT", "TAGS_COUNT", "DURATION_S"} {
		mine.Environment = append(mine.Environment, name+"=${"+name+":-}") // empty counts as unset
	}
	f.Services[serviceLoad] = mine
	return nil
}

// service turns a program into a service.
func (f *stackFile) service(p node.Program, image string) (service, error) {
	expanded, err := node.InContainer(p)
	if err != nil {
		return service{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	s := limited(service{
		Image: image, Hostname: p.Name, Command: escapeAll(expanded.Args),
		Environment: append([]string{"LC_ALL=C"}, escapeAll(expanded.Env)...),
		Labels:      map[string]string{HostLabel: string(p.Host)},
	}, p.Limits, p.Host)
	for _, file := range expanded.Files {
		name := p.Name + "-" + strings.NewReplacer("/", "-", ".", "-").Replace(file.Name)
		f.Configs[name] = config{Content: escape(string(file.Data))}
		s.Configs = append(s.Configs, mount{Source: name, Target: node.ContainerFile(file), Mode: "0444"})
	}
	for _, port := range p.Ports {
		if published(port.Name) {
			s.Ports = append(s.Ports, publish(p.Name, port))
		}
	}
	if p.Grace > 0 {
		s.Grace = p.Grace.String()
	}
	return s, nil
}

// own is a service of the lab's own program, which is built from the checkout unless its image is there.
func own(name string, limits spec.Limits, host spec.Host, command ...string) service {
	return limited(service{
		Image: stackImage, Hostname: name, Entrypoint: []string{"/jaegerlab"}, Command: command,
		Build:  &build{Context: "..", Inline: ownDockerfile},
		Labels: map[string]string{HostLabel: string(host)},
	}, limits, host)
}

const (
	stackImage    = "${STACK_IMAGE_LOAD:-jaegerlab/load:compose}"
	ownDockerfile = `FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /jaegerlab ./cmd/jaegerlab
FROM scratch
COPY --from=build /jaegerlab /jaegerlab
ENTRYPOINT ["/jaegerlab", "load"]
`
)

func resources(p parts) service {
	command := []string{"resources", "--listen", fmt.Sprintf("0.0.0.0:%d", portResources), "--project", "${COMPOSE_PROJECT_NAME}",
		"--label", HostLabel}
	if engineOf(p) == spec.Cassandra {
		command = append(command, "--keyspace", Keyspace)
		for _, one := range p.database {
			command = append(command, "--cassandra", addr(one, "cql"))
		}
	}
	s := own(serviceResources, p.monitor, spec.MonitorHost, command...)
	s.Volumes = []string{"${STACK_DOCKER_SOCKET:-/var/run/docker.sock}:/var/run/docker.sock:ro"}
	return s
}

func grafanaService(limits spec.Limits) service {
	return limited(service{
		Image: "${STACK_IMAGE_GRAFANA:-" + GrafanaImage + "}", Hostname: serviceGrafana,
		Environment: []string{
			"GF_AUTH_ANONYMOUS_ENABLED=true", "GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer", "GF_AUTH_DISABLE_LOGIN_FORM=true",
			"GF_ANALYTICS_REPORTING_ENABLED=false", "GF_ANALYTICS_CHECK_FOR_UPDATES=false",
			"GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES=false",
			"GF_PLUGINS_PREINSTALL_DISABLED=true", // needs the network, and nothing here needs them
			"GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH=/var/lib/grafana/dashboards/jaegerlab-overview.json",
			"GF_DASHBOARDS_MIN_REFRESH_INTERVAL=1s",
		},
		Volumes: []string{"../grafana/provisioning:/etc/grafana/provisioning:ro", "../grafana/dashboards:/var/lib/grafana/dashboards:ro"},
		Ports:   []string{publish(serviceGrafana, node.Port{Name: "http", Number: 3000})},
		Labels:  map[string]string{HostLabel: string(spec.MonitorHost)},
	}, limits, spec.MonitorHost)
}

func limited(s service, l spec.Limits, host spec.Host) service {
	s.CPUSet = "${STACK_CPUS_" + strings.ToUpper(string(host)) + ":-" + cpuList(l.CPUSet) + "}"
	s.CPUShares = l.CPUShares
	s.Memory = fmt.Sprintf("%dm", l.MemoryBytes>>20)
	s.NoSwap = s.Memory
	return s
}

func cpuList(set []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(set), " ", ","), "[]")
}

// imageOf is a program's public image, unless the variable that the lab knows for it is set.
func imageOf(program string) string {
	image, err := setup.PublicImage(program)
	if err != nil {
		image = program // the plan failed before: every program of a stack has one
	}
	return "${" + imageVariable(program) + ":-" + image + "}"
}

func imageVariable(program string) string {
	switch program {
	case setup.JaegerV1Collector:
		return "LAB_IMAGE_JAEGER_V1"
	default:
		return "LAB_IMAGE_" + variable(program)
	}
}

func variable(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// published are the ports that people, and the lab as a client of this stack, use.
func published(port string) bool {
	switch port {
	case "cql", "otlp-grpc", "otlp-http", "thrift-http", "metrics", "http", "control":
		return true
	}
	return false
}

// publish puts a port on loopback under its own number, or one free of the others of a stack.
func publish(service string, port node.Port) string {
	host := port.Number
	switch {
	case strings.HasSuffix(service, "-v1"):
		host += 10000
	case strings.HasSuffix(service, "-2"):
		host += 10000
	case strings.HasSuffix(service, "-3"):
		host += 20000
	}
	return fmt.Sprintf("127.0.0.1:${STACK_PORT_%s_%s:-%d}:%d", variable(service), variable(port.Name), host, port.Number)
}

// escape keeps Compose from reading variables in text that is not its own.
func escape(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func escapeAll(texts []string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, escape(text))
	}
	return all
}
