package stack

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// Collector is a running, healthy Jaeger.
type Collector struct {
	Node        node.Node
	Flavour     Flavour
	Record      record.Collector
	MetricsAddr string // host:port of /metrics, as the lab's own process reaches it
	QueryAddr   string // host:port of the query API (gRPC); "" where it has none: v1 on a CQL store, v2 there
	client      string // name of the client's port
	legacy      bool   // the client sends to v1's own queue
	queueAsked  bool   // the lab's queue is configured
}

// IngestAddr is host:port of the client's port: as other nodes reach it (peer), or as the lab's
// own process does.
func (c *Collector) IngestAddr(peer bool) string {
	if peer {
		return c.Node.PeerAddr(c.client)
	}
	return c.Node.Addr(c.client)
}

// Bounds of a start. A collector that finds no database or no keyspace ends at once; it is
// started again for a while, since a schema may just be on its way, and fails well before 30 s.
const (
	healthyWithin = 60 * time.Second
	restartFor    = 24 * time.Second
	restartPause  = 4 * time.Second
	stopWithin    = 30 * time.Second
	tailLines     = 12 // of a log that are searched for why it ended
)

// StartCollector starts the collector of an arm on a store whose schema exists, and returns when
// it is healthy. A missing keyspace fails in under 30 s with the keyspace's name and the last
// lines of the log. On an error nothing of it runs any more.
func StartCollector(ctx context.Context, env Env, ask Ask) (*Collector, error) {
	if ask.Arm.Backend.Engine == spec.Null {
		return startHole(ctx, env, ask)
	}
	f, err := ParseFlavour(ask.Arm.Collector)
	if err != nil {
		return nil, fmt.Errorf("start collector: %w", err)
	}
	program, config, err := collectorProgram(env, f, ask)
	if err != nil {
		return nil, fmt.Errorf("start collector %s: %w", f.Name, err)
	}
	health := healthPath(f, program)
	n, err := startAgain(ctx, env, program, restartFor, func(ctx context.Context, n node.Node) error {
		return awaitHealthy(ctx, n, f, health, ask.Protocol.Port)
	})
	if err != nil {
		return nil, fmt.Errorf("start collector %s: %w", f.Name, explainKeyspace(err, ask, f))
	}
	c := &Collector{
		Node: n, Flavour: f, MetricsAddr: n.Addr("metrics"), client: ask.Protocol.Port,
		legacy:     ask.Protocol.Port == "thrift-http",
		queueAsked: f.Generation == V2 && !f.Stock && f.Config == "",
	}
	if hasPort(program, "query-grpc") {
		c.QueryAddr = n.Addr("query-grpc")
	}
	c.Record = record.Collector{
		Name:     f.Name,
		Program:  programRecord(f.Program(ask.Arm.Backend.Engine), program.Binary),
		Settings: settings(config, program.Env, program.Args),
	}
	if version := reportedVersion(ctx, c.MetricsAddr); version != "" {
		c.Record.Program.Version = version
	}
	return c, nil
}

// Program names the pinned program of a flavour, as package setup knows it.
func (f Flavour) Program(e spec.Engine) string {
	switch {
	case f.Generation == V2:
		return programV2
	case e.Embedded():
		return programV1AllInOne
	default:
		return programV1
	}
}

// collectorProgram says what to start, and returns the configuration tree (nil for v1).
func collectorProgram(env Env, f Flavour, ask Ask) (node.Program, map[string]any, error) {
	embedded := ask.Arm.Backend.Engine.Embedded()
	binary, err := collectorBinary(env, f, f.Program(ask.Arm.Backend.Engine))
	if err != nil {
		return node.Program{}, nil, err
	}
	program := node.Program{
		Name: ask.Name, Host: spec.CollectorHost, Binary: binary, Limits: ask.Limits,
		// What is still queued at a polite stop is written out first; the run waits for the drain
		// before it stops anything, so a longer grace would only help an aborted run.
		Grace: 10 * time.Second,
	}
	soft := softLimit(f, ask)
	if f.Generation == V1 {
		program.Env = slices.Concat(envV1(embedded), soft, ask.Store.EnvV1(), f.Env)
		program.Args = f.Args
		program.Ports = portsV1(embedded)
		return program, nil, nil
	}
	config, err := configV2(f, ask)
	if err != nil {
		return node.Program{}, nil, err
	}
	if err := addConfig(&program, config); err != nil {
		return node.Program{}, nil, err
	}
	program.Env = slices.Concat(soft, f.Env)
	program.Args = append(program.Args, f.Args...)
	return program, config, nil
}

// softLimit makes a collector that keeps every span in its memory collect garbage before it meets
// its hard limit: Go alone would let the heap double first, and the read-back's garbage would kill
// a store that fits. Stock settings stay as they are.
func softLimit(f Flavour, ask Ask) []string {
	if f.Stock || ask.Arm.Backend.Engine != spec.Memory || ask.Limits.MemoryBytes == 0 {
		return nil
	}
	return []string{fmt.Sprintf("GOMEMLIMIT=%d", ask.Limits.MemoryBytes/10*9)}
}

// addConfig gives a v2 program its configuration file and the ports it names.
func addConfig(program *node.Program, config map[string]any) error {
	text, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("render configuration: %w", err)
	}
	program.Files = append(program.Files, node.File{Name: "jaeger.yaml", Data: text})
	program.Args = append(program.Args, "--config=${dir}/jaeger.yaml")
	program.Ports = portsV2(config)
	return nil
}

func collectorBinary(env Env, f Flavour, program string) (node.Binary, error) {
	if !f.Own() {
		return env.Binary(program)
	}
	if err := f.RunsIn(env.Runtime.Name()); err != nil {
		return node.Binary{}, err
	}
	if env.Runtime.Name() == spec.Docker {
		return node.Binary{Image: f.Image, Version: "not reported", Source: f.Image}, nil
	}
	return node.Binary{Command: []string{f.Binary}, Version: "not reported", Source: f.Binary}, nil
}

// RunsIn says why a runtime can't run the own program of a collector file; nil = it can.
func (f Flavour) RunsIn(runtime spec.Runtime) error {
	switch {
	case runtime == spec.Docker && f.Image == "" && f.Binary != "":
		return fmt.Errorf("collector file %s: image: missing: it names a binary only, which the docker "+
			"runtime can't run; add an image, or take LAB_RUNTIME=process", f.File)
	case runtime == spec.Process && f.Binary == "" && f.Image != "":
		return fmt.Errorf("collector file %s: binary: missing: it names an image only, which the process "+
			"runtime can't run; add a binary, or take LAB_RUNTIME=docker", f.File)
	}
	return nil
}

// healthPath is the port and path whose 200 says that the collector takes spans.
func healthPath(f Flavour, program node.Program) [2]string {
	switch {
	case f.Generation == V1:
		return [2]string{"metrics", "/"} // the admin server's health check
	case hasPort(program, "health"):
		return [2]string{"health", "/status"}
	default:
		return [2]string{"metrics", "/metrics"}
	}
}

func hasPort(program node.Program, name string) bool {
	for _, port := range program.Ports {
		if port.Name == name {
			return true
		}
	}
	return false
}

func isUDP(program node.Program, name string) bool {
	return slices.ContainsFunc(program.Ports, func(p node.Port) bool { return p.Name == name && p.UDP })
}

// awaitHealthy waits for the health check, then for the metrics page and the client's port.
func awaitHealthy(ctx context.Context, n node.Node, f Flavour, health [2]string, client string) error {
	what := fmt.Sprintf("collector %s to be healthy", f.Name)
	return node.Wait(ctx, what, healthyWithin, n, func(ctx context.Context) error {
		for _, page := range [][2]string{health, {"metrics", "/metrics"}} {
			url := "http://" + n.Addr(page[0]) + page[1]
			status, body, err := get(ctx, url)
			if err != nil {
				return err
			}
			if status != http.StatusOK {
				return fmt.Errorf("%s answered %d: %s", url, status, bytes.TrimSpace(body[:min(len(body), 200)]))
			}
		}
		if isUDP(n.Program(), client) {
			return nil // nobody answers there
		}
		return reachable(ctx, n.Addr(client))
	})
}

// startAgain starts a program and waits until it is ready. A program that ends meanwhile is
// started again until patience has passed since the first start. On an error nothing runs.
func startAgain(ctx context.Context, env Env, program node.Program, patience time.Duration,
	ready func(context.Context, node.Node) error) (node.Node, error) {
	name, started := program.Name, time.Now()
	for attempt := 1; ; attempt++ {
		if attempt > 1 {
			program.Name = fmt.Sprintf("%s-%d", name, attempt)
		}
		n, err := env.Runtime.Start(ctx, program)
		if err != nil {
			return nil, err // the runtime left nothing behind, and another try would end the same
		}
		if err = ready(ctx, n); err == nil {
			return n, nil
		}
		again := ended(n) && transient.MatchString(n.Tail(tailLines)) && time.Since(started)+restartPause < patience
		exit := n.Exit()
		stop(n)
		if !again {
			return nil, fmt.Errorf("%w\n(started %d times in %s)", err, attempt, time.Since(started).Round(time.Second))
		}
		env.say("%s ended (%s), starting it again", program.Name, exit)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(restartPause):
		}
	}
}

// transient are the ends that another start may mend: no connection, or no keyspace yet.
var transient = regexp.MustCompile(`(?i)no hosts|no connections|unable to (connect|create session)|` +
	`connection refused|i/o timeout|timed? ?out|no response|gocql|keyspace`)

func ended(n node.Node) bool {
	select {
	case <-n.Done():
		return true
	default:
		return false
	}
}

// stop ends a node although ctx may be over.
func stop(n node.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	_ = n.Stop(ctx) // the runtime's Close ends what could not be stopped
}

var missingKeyspace = regexp.MustCompile(`(?i)keyspace '?"?[A-Za-z0-9_]*'?"? ?(does not exist|not found)|` +
	`unconfigured (table|keyspace)`)

// explainKeyspace names the keyspace when a collector ended because it is not there.
func explainKeyspace(err error, ask Ask, f Flavour) error {
	keyspace := keyspaceOf(ask, f)
	if keyspace == "" || !missingKeyspace.MatchString(err.Error()) {
		return err
	}
	return fmt.Errorf("keyspace %s does not exist on %s: the schema has to be created first "+
		"(measured collectors create none): %w", keyspace, ask.Arm.Backend, err)
}

func keyspaceOf(ask Ask, f Flavour) string {
	if f.Generation == V1 {
		for _, variable := range ask.Store.EnvV1() {
			if name, value, _ := strings.Cut(variable, "="); name == "CASSANDRA_KEYSPACE" {
				return value
			}
		}
		return ""
	}
	cassandra, _ := ask.Store.StorageV2(false)["cassandra"].(map[string]any)
	schema, _ := cassandra["schema"].(map[string]any)
	keyspace, _ := schema["keyspace"].(string)
	return keyspace
}
