package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"jaegerlab/lab/internal/need"
	"jaegerlab/lab/internal/testrun"
	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
	"jaegerlab/report"
)

// Every kind of limit is planted on a real Jaeger and a real store, and the report must name it, and
// whose it is, with its figures. Planted quotas are far below what the machine has, so that a busy
// machine adds remarks to the limit at most. Nodes are squeezed under load only: a JVM on a tenth of a
// CPU takes minutes to start.
func TestIntegrationPlantedLimits(t *testing.T) {
	needs(t, plantedSpec(t, spec.Cassandra))
	need.Limits(t, testrun.Runtime(t, spec.Process))
	for _, test := range []struct {
		name     string
		engine   spec.Engine
		change   func(*spec.Spec)
		atLoad   func(context.Context, Stack) error
		want     report.LimitKind
		node     string
		evidence []string
	}{
		{"collector squeezed", spec.Memory, nil, squeezed(collectorOf, 0.1), report.LimitCollector, "",
			[]string{"of 0.1 CPUs", "throttled for", "memory runs inside it"}},
		{"load node squeezed, closed loop", spec.Null, nil, squeezed(loadOf, 0.05), report.LimitGenerator, "",
			[]string{"of 0.05 CPUs", "throttled for"}},
		{"load node squeezed, far too high a rate", spec.Null, func(s *spec.Spec) { s.Load.Rate = "900000" },
			squeezed(loadOf, 0.05), report.LimitGenerator, "", []string{"of the offered spans were begun", "throttled for"}},
		{"database node squeezed", spec.Cassandra, nil, squeezed(databaseOf, 0.1), report.LimitThrottling, "cassandra-1",
			[]string{"of 0.1 CPUs", "throttled for"}},
		{"database node frozen for half of the load", spec.Cassandra, nil, frozen(1500*time.Millisecond, 4*time.Second),
			report.LimitStalled, "cassandra-1", []string{"no CPU at all for"}},
		{"one write in flight", spec.Cassandra, func(s *spec.Spec) { s.Collectors = []string{"v2-stock"} }, nil,
			report.LimitWriters, "", []string{"of at most 1 writes in flight", "statements a span: at most"}},
		{"slow store", spec.Cassandra, nil, stuttering(90*time.Millisecond, 10*time.Millisecond),
			report.LimitLatency, "", []string{"of at most 50 writes in flight", "ms each"}},
		{"collector short of memory", spec.Memory, func(s *spec.Spec) { s.Profile = spec.Hard }, starved(collectorOf, 24<<20),
			report.LimitMemory, "collector", []string{"out-of-memory kills under a limit of"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := plantedSpec(t, test.engine)
			if test.change != nil {
				test.change(&s)
			}
			limit := limitOf(t, s, test.atLoad)
			if limit.Kind != test.want || limit.Node != test.node {
				t.Errorf("named %s, want %s of %q", limit.Text(), test.want, test.node)
			}
			evidence := strings.Join(limit.Evidence, "; ")
			for _, want := range test.evidence {
				if !strings.Contains(evidence, want) {
					t.Errorf("the evidence lacks %q: %s", want, evidence)
				}
			}
		})
	}
}

// plantedSpec is five seconds of load on one node of an engine, nothing of it limited. What the drain
// leaves behind has no say in what held the load back, so it is short.
func plantedSpec(t *testing.T, engine spec.Engine) spec.Spec {
	s := spec.Default()
	s.Experiment, s.Runtime, s.Results, s.Profile = "limits", spec.Process, t.TempDir(), spec.None
	s.Backends, s.Named, s.Load.DurationS, s.Load.DrainS = []spec.Backend{{Engine: engine}}, true, 5, 5
	if !engine.Embedded() {
		s.Backends[0].Nodes = 1
	}
	return s
}

// limitOf measures one run with something planted under its load, and gives what the report names as
// its limit.
func limitOf(t *testing.T, s spec.Spec, plant func(context.Context, Stack) error) report.Limit {
	t.Helper()
	planted := make(chan error, 1)
	hooks := Hooks{AtLoad: func(ctx context.Context, up Stack) {
		if plant != nil {
			planted <- plant(ctx, up)
		}
		close(planted)
	}, BeforeReadBack: func(ctx context.Context, up Stack) error {
		if s.Backends[0].Engine.Embedded() {
			return nil
		}
		return up.Collector.Node.Kill(ctx) // a full queue is written out before a polite end
	}}
	result, err := Run(t.Context(), s, Options{Console: NewConsole(testWriter{t}, false), Hooks: hooks})
	if err != nil && !strings.Contains(err.Error(), "out of memory") { // a death may be what is planted
		t.Fatal(err)
	}
	if err := <-planted; err != nil {
		t.Fatalf("nothing was planted: %v", err)
	}
	nothingLeft(t)
	saved, err := report.ReadSaved(result.Dir)
	if err != nil {
		t.Fatal(err)
	}
	run := saved.Record.Runs[0]
	limit := report.LimitOf(saved.Record.Host, run, saved.Series[run.Folder])
	t.Logf("%s: %s; verdict %s", limit.Text(), strings.Join(limit.Evidence, "; "), run.Verdict)
	return limit
}

func collectorOf(s Stack) node.Node { return s.Collector.Node }
func loadOf(s Stack) node.Node      { return s.Load }
func databaseOf(s Stack) node.Node  { return s.Cluster.Nodes()[0] }

// throughWindow is a little longer than the window: what ended with the load would hold its last requests
// until their deadline.
const throughWindow = 6500 * time.Millisecond

// squeezed gives a node so many CPUs through the window.
func squeezed(of func(Stack) node.Node, cpus float64) func(context.Context, Stack) error {
	return func(ctx context.Context, s Stack) error {
		undo, err := squeeze(s, of(s), cpus)
		if err != nil {
			return err
		}
		pause(ctx, throughWindow)
		return undo()
	}
}

// squeeze writes a quota of CPU into the control group of a plain process.
func squeeze(s Stack, n node.Node, cpus float64) (undo func() error, err error) {
	const period = 100_000 // microseconds, the kernel's default
	file, value := groupFile(s, n, "cpu", "cpu.max"), fmt.Sprintf("%.0f %d", cpus*period, period)
	if file == "" {
		file, value = groupFile(s, n, "cpu", "cpu.cfs_quota_us"), fmt.Sprintf("%.0f", cpus*period)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("squeeze %s: %w", n.Name(), err)
	}
	return func() error { return os.WriteFile(file, before, 0) }, os.WriteFile(file, []byte(value), 0)
}

// starved leaves a node so many bytes more than it has when the load begins.
func starved(of func(Stack) node.Node, spare int64) func(context.Context, Stack) error {
	return func(ctx context.Context, s Stack) error {
		n := of(s)
		usage, err := n.Read(ctx)
		if err != nil || usage.MemoryBytes == nil {
			return fmt.Errorf("starve %s: its memory is not known: %v", n.Name(), err)
		}
		limit := strconv.FormatInt(*usage.MemoryBytes+spare, 10)
		for _, name := range []string{"memory.max", "memory.limit_in_bytes"} {
			if file := groupFile(s, n, "memory", name); file != "" {
				return os.WriteFile(file, []byte(limit), 0)
			}
		}
		return fmt.Errorf("starve %s: it has no control group", n.Name())
	}
}

// groupFile is a file of a plain process's control group, of either version; "" when there is none.
func groupFile(s Stack, n node.Node, controller, name string) string {
	group := fmt.Sprintf("jaegerlab/%011x/%s/%s", s.Numbering.Run, n.Name(), name)
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/" + controller} {
		if _, err := os.Stat(filepath.Join(root, group)); err == nil {
			return filepath.Join(root, group)
		}
	}
	return ""
}

// frozen stops the first database node once, for a while.
func frozen(after, during time.Duration) func(context.Context, Stack) error {
	return func(ctx context.Context, s Stack) error {
		pause(ctx, after)
		return freeze(ctx, databaseOf(s), during)
	}
}

// stuttering stops the first database node again and again: each write takes long, and the node idles.
func stuttering(stopped, running time.Duration) func(context.Context, Stack) error {
	return func(ctx context.Context, s Stack) error {
		for ctx.Err() == nil { // to the load's end: quick writes of a drain would halve the mean latency
			if err := freeze(ctx, databaseOf(s), stopped); err != nil {
				return err
			}
			pause(ctx, running)
		}
		return nil
	}
}

func freeze(ctx context.Context, n node.Node, during time.Duration) error {
	if err := n.Pause(ctx); err != nil {
		return err
	}
	pause(ctx, during)
	return n.Resume(context.WithoutCancel(ctx))
}
