package compose

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"jaegerlab/grafana"
	"jaegerlab/lab/load"
	"jaegerlab/lab/node"
	"jaegerlab/lab/setup"
)

const (
	composeVersion = "v2.40.3" // as tools/compose/go.mod pins it
	buildWithin    = 20 * time.Minute
	upWithin       = 6 * time.Minute
	downWithin     = 2 * time.Minute
	settleWithin   = 90 * time.Second
	loadSeconds    = "5"
)

// without Grafana: its image comes from no package registry.
var services = []string{"schema", "schema-ready", "collector", "prometheus", "node-exporter", "resources"}

// TestIntegrationCassandraStack brings the Cassandra stack up with the real Docker Compose, sends to
// both collectors, asks Prometheus for every panel of every dashboard, measures the stack as a target,
// and takes it down.
func TestIntegrationCassandraStack(t *testing.T) {
	needDocker(t)
	c := newComposed(t, "cassandra.yaml")
	t.Cleanup(c.down)
	c.must(upWithin, "up", append([]string{"-d"}, services...)...)

	c.load("collector:4317", "otlp-grpc")
	c.panels("collector:8888")
	c.figures()

	c.must(upWithin, "up", "-d", "collector-v1")
	c.load("collector-v1:14268", "thrift-http")
	c.panels("collector-v1:14269")
	c.target()
}

// lacking skips with the reason that is counted, or fails where CI requires Docker.
func lacking(t *testing.T, what string, why any) {
	t.Helper()
	if os.Getenv("LAB_REQUIRE_DOCKER") == "1" {
		t.Fatalf("LAB_REQUIRE_DOCKER=1, but %s: %v", what, why)
	}
	t.Skipf("SKIPPED, needs %s: %v", what, why)
}

func needDocker(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, needs time: not with -short")
	}
	if err := node.DockerAnswers(t.Context()); err != nil {
		lacking(t, "Docker", err)
	}
}

func needImage(t *testing.T, image string) {
	t.Helper()
	if _, present, err := node.ImagePresent(t.Context(), image); err != nil || !present {
		lacking(t, "image "+image, err)
	}
}

// composed is one stack under test.
type composed struct {
	t       *testing.T
	command []string
	file    string
	project string
	env     string // path of the env file
}

func newComposed(t *testing.T, file string) *composed {
	t.Helper()
	c := &composed{t: t, command: composeCommand(t), file: file, project: fmt.Sprintf("jaegerlab-test-%d", os.Getpid())}
	text, err := Env(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, image, _ := strings.Cut(strings.TrimSpace(line), "="); strings.Contains(name, "_IMAGE_") {
			needImage(t, image)
		}
	}
	for _, program := range []string{setup.Cassandra, setup.Jaeger, setup.JaegerV1Collector, setup.Prometheus, setup.NodeExporter} {
		if !bytes.Contains(text, []byte(imageVariable(program)+"=")) {
			needImage(t, "jaegerlab/"+program) // absent under any name: skips, or fails where Docker is required
		}
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`STACK_PORT_[A-Z0-9_]+`).FindAllString(string(source), -1) {
		text = append(text, name+"=0\n"...) // a free port: another stack may be up
	}
	c.env = filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(c.env, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return c
}

// composeCommand is the docker command's own plugin of version 2, or the one built from the pinned module.
func composeCommand(t *testing.T) []string {
	t.Helper()
	if version, err := exec.CommandContext(t.Context(), "docker", "compose", "version", "--short").Output(); err == nil &&
		strings.HasPrefix(strings.TrimPrefix(string(version), "v"), "2.") {
		return []string{"docker", "compose"}
	}
	cache, err := setup.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cache, "bin", "docker-compose-"+composeVersion)
	if _, err := os.Stat(path); err == nil {
		return []string{path}
	}
	t.Logf("building Docker Compose %s, about two minutes on two cores", composeVersion)
	ctx, cancel := context.WithTimeout(t.Context(), buildWithin)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join("..", "tools", "compose"), "-trimpath",
		"-ldflags", "-s -w -X github.com/docker/compose/v2/internal.Version="+composeVersion,
		"-o", path, "github.com/docker/compose/v2/cmd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build Docker Compose: %v\n%s", err, output)
	}
	return []string{path}
}

// run runs one command of Compose on the stack, with every profile.
func (c *composed) run(ctx context.Context, within time.Duration, verb string, args ...string) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	line := append(append([]string{}, c.command[1:]...), "--ansi", "never", "--progress", "plain", "-f", c.file,
		"--env-file", c.env, "-p", c.project, "--profile", "*", verb)
	command := exec.CommandContext(bounded, c.command[0], append(line, args...)...)
	command.WaitDelay = 5 * time.Second
	output, err := command.CombinedOutput()
	return string(output), err
}

func (c *composed) must(within time.Duration, verb string, args ...string) string {
	c.t.Helper()
	output, err := c.run(c.t.Context(), within, verb, args...)
	if err != nil {
		logs, _ := c.run(c.t.Context(), time.Minute, "logs", "--tail", "20")
		c.t.Fatalf("compose %s %v: %v\n%s\n%s", verb, args, err, output, logs)
	}
	return output
}

// down takes the stack down and proves that nothing of it is left.
func (c *composed) down() {
	ctx := context.Background() // the test's own is over
	if output, err := c.run(ctx, downWithin, "down", "-v", "--timeout", "5"); err != nil {
		c.t.Errorf("compose down: %v\n%s", err, output)
	}
	for _, list := range [][]string{{"ps", "-aq"}, {"network", "ls", "-q"}, {"volume", "ls", "-q"}} {
		args := append(list, "--filter", "label=com.docker.compose.project="+c.project)
		output, err := exec.CommandContext(ctx, "docker", args...).Output()
		if err != nil || len(bytes.TrimSpace(output)) > 0 {
			c.t.Errorf("docker %v after down: %q, %v", args, output, err)
		}
	}
}

// addr is where a service's port is published.
func (c *composed) addr(service string, port int) string {
	c.t.Helper()
	addr := strings.TrimSpace(c.must(time.Minute, "port", service, strconv.Itoa(port)))
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		c.t.Fatalf("%s port %d is published at %q, not on loopback", service, port, addr)
	}
	return addr
}

// load sends for a few seconds and waits for the end.
func (c *composed) load(target, client string) {
	c.t.Helper()
	c.t.Setenv("STACK_TARGET", target)
	c.t.Setenv("STACK_CLIENT", client)
	c.t.Setenv("DURATION_S", loadSeconds)
	c.must(upWithin, "up", "-d", "--force-recreate", "--no-deps", "load")
	remote := load.Remote{Addr: c.addr("load", 8080)}
	var last load.Progress
	c.eventually("the load to end", func(ctx context.Context) (err error) {
		if last, err = remote.Progress(ctx); err == nil && last.State != load.Done {
			err = fmt.Errorf("it is in state %s", last.State)
		}
		return err
	})
	if last.Acked == 0 || !last.Complete {
		c.t.Fatalf("load to %s by %s: %+v", target, client, last)
	}
}

func (c *composed) eventually(what string, try func(context.Context) error) {
	c.t.Helper()
	if err := node.Wait(c.t.Context(), what, settleWithin, nil, try); err != nil {
		logs, _ := c.run(c.t.Context(), time.Minute, "logs", "--tail", "15", "load", "resources", "collector", "prometheus")
		c.t.Fatalf("%v\n%s", err, logs)
	}
}

// panels asks for every panel; those by collector must have data of this one. ScyllaDB's own have
// none here, but their queries must be understood.
func (c *composed) panels(collector string) {
	c.t.Helper()
	addr := c.addr("prometheus", 9090)
	asked := 0
	for _, d := range grafana.Dashboards() {
		for _, p := range d.Panels {
			asked++
			c.eventually(fmt.Sprintf("data of %s in %q of %q", collector, p.Title, d.Title), func(ctx context.Context) error {
				return c.hasData(ctx, addr, collector, p)
			})
		}
	}
	c.t.Logf("%d panels have data of %s", asked, collector)
}

func (c *composed) hasData(ctx context.Context, addr, collector string, p grafana.Panel) error {
	var seen []string
	for _, q := range p.Queries {
		samples, err := grafana.Ask(ctx, addr, q.At("2m"))
		if err != nil {
			return err
		}
		for _, s := range samples {
			seen = append(seen, fmt.Sprint(s.Labels, " ", s.Value))
			byCollector := strings.Contains(q.Expr, `job="collector"`) && strings.Contains(q.Legend, "{{instance}}")
			if !math.IsNaN(s.Value) && (!byCollector || s.Labels["instance"] == collector) {
				return nil
			}
		}
	}
	if strings.HasPrefix(p.Title, "ScyllaDB: ") {
		return nil
	}
	return fmt.Errorf("none of its %d queries has any; seen: %v", len(p.Queries), seen)
}

// figures compares the overview's figures with what the load node itself says: acked at once, saved
// when the queue is written out.
func (c *composed) figures() {
	c.t.Helper()
	addr := c.addr("prometheus", 9090)
	progress, err := load.Remote{Addr: c.addr("load", 8080)}.Progress(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	want := map[string]int64{"Generated": progress.Generated, "Acked": progress.Acked, "Refused": progress.Refused,
		"Unanswered": progress.Unanswered, "Saved": progress.Acked, "In the queue": 0}
	for _, p := range grafana.Dashboards()[0].Panels {
		value, known := want[p.Title]
		if !known {
			continue
		}
		delete(want, p.Title)
		c.eventually(fmt.Sprintf("%s to be %d", p.Title, value), func(ctx context.Context) error {
			samples, err := grafana.Ask(ctx, addr, p.Queries[0].Expr)
			if err == nil && (len(samples) != 1 || samples[0].Value != float64(value)) {
				err = fmt.Errorf("the panel shows %v", samples)
			}
			return err
		})
	}
	if len(want) > 0 {
		c.t.Errorf("no panel shows %v", want)
	}
}
