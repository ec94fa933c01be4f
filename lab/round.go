package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/ledger"
	"jaegerlab/lab/load"
	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/stack"
	"jaegerlab/lab/trace"
)

// The bounds of the tear-down: after Ctrl-C a run ends within 15 s; else a busy machine gets its time.
const (
	closeWithin = time.Minute
	closeAtOnce = 9 * time.Second
)

// Stack is what a round has up; hooks get it to plant faults and defects.
type Stack struct {
	Runtime   node.Runtime
	Cluster   backend.Cluster
	Store     backend.Store
	Collector *stack.Collector
	Load      node.Node
	Monitor   *stack.Monitor
	Numbering trace.Numbering
}

// Hooks are for tests that prove the lab's detectors.
type Hooks struct {
	Path           func(ingest string) string               // where the load sends to, on its way to the collector
	AtLoad         func(ctx context.Context, s Stack)       // beside the load; ctx ends with the window
	BeforeReadBack func(ctx context.Context, s Stack) error // between drain and read-back
}

// round is one run of one arm under way.
type round struct {
	*comparison
	Stack
	arm      spec.Arm
	run      record.Run
	folder   record.RunFolder
	protocol protocol.Protocol
	remote   load.Remote
	started  time.Time
	keep     bool // leave the stack up

	window
	book *ledger.Book
}

// measure runs one round and tears everything of it down. The run is returned in any case, with
// what was measured until an error.
func (c *comparison) measure(ctx context.Context, arm spec.Arm, n int) (record.Run, error) {
	r, err := c.newRound(arm, n)
	if err != nil {
		return r.run, err
	}
	defer func() { c.record.Host = r.Runtime.Host() }()
	c.Console.Say("%s%s, round %d", &c.schedule, arm.Name(), n)
	err = r.steps(ctx)
	if err != nil {
		err = r.blame(ctx, err)
		r.run.Error = err.Error()
		r.salvage(ctx)
	}
	err = errors.Join(err, r.close(ctx), r.sumLogs())
	r.noteLargeData()
	return r.run, err
}

// steps is a round in its order; each step adds to the run what it found.
func (r *round) steps(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	if err := r.readBack(ctx); err != nil {
		return err
	}
	return r.died // measured to the end, but not what was planned
}

func (c *comparison) newRound(arm spec.Arm, n int) (*round, error) {
	run := randomRun()
	r := &round{comparison: c, arm: arm, started: time.Now()}
	r.Numbering = trace.New(run, c.spec.Load.SpansCount)
	r.run = record.Run{
		Arm: arm.Name(), Spec: arm, Round: n, Runtime: c.spec.Runtime, Profile: arm.Profile, Client: arm.Client,
		Started: r.started.UTC(), Load: c.spec.Load, Numbering: r.Numbering, Verdict: record.Unknown,
	}
	var err error
	if r.protocol, err = protocol.Get(arm.Client); err != nil {
		return r, err
	}
	if r.folder, err = c.folder.Run(arm.Name(), n); err != nil {
		return r, err
	}
	r.run.Folder = r.folder.Name
	r.keep = c.spec.Keep && c.schedule.last()
	r.Runtime, err = r.newRuntime(fmt.Sprintf("%011x", run))
	return r, err
}

// randomRun tells this round's spans from any other's; it is recorded with the numbering.
func randomRun() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	run := uint64(0)
	for _, octet := range b {
		run = run<<8 | uint64(octet)
	}
	return run & trace.MaxRun
}

func (r *round) newRuntime(id string) (node.Runtime, error) {
	ctx := context.Background() // a runtime outlives the step that makes it; Close ends it
	if r.spec.Runtime == spec.Docker {
		return node.NewDocker(ctx, node.DockerOptions{RunID: id, LogDir: r.folder.Logs, Keep: r.keep})
	}
	dir := filepath.Join(os.TempDir(), "jaegerlab-"+id)
	return node.NewProcess(ctx, node.ProcessOptions{RunID: id, Dir: dir, LogDir: r.folder.Logs, Keep: r.keep})
}

// start brings everything up. What does not wait for another is prepared beside it: the load node
// and node-exporter while the database nodes join.
func (r *round) start(ctx context.Context) error {
	beside, startCtx := errgroup.WithContext(ctx)
	up := r.starter()
	beside.Go(func() error { return up.startStore(startCtx) })
	beside.Go(func() error { return r.startLoad(startCtx) })
	if err := beside.Wait(); err != nil {
		return err
	}
	if err := up.startCollector(ctx); err != nil {
		return err
	}
	if err := up.startMonitor(ctx); err != nil {
		return err
	}
	r.run.Overcommitted = spec.Overcommitted(r.arm.Profile, r.Runtime.Host().CPUs)
	return nil
}

// startStore starts the cluster, has the schema made once, by the one owner, as soon as the backend
// says that it is cheapest, and proves the store empty.
func (r *round) startStore(ctx context.Context) error {
	engine, err := backend.For(r.arm.Backend.Engine)
	if err != nil {
		return err
	}
	made := false
	makeSchema := func(ctx context.Context, cluster backend.Cluster) error {
		made = true
		return stack.CreateSchema(ctx, r.stackEnv(), stack.Ask{
			Arm: r.arm, Store: cluster.Store(keyspace(r.Numbering.Run)), Limits: r.limits(spec.CollectorHost), Name: "schema",
		})
	}
	env := backend.Env{Runtime: r.Runtime, Binary: r.catalog.Binary, Say: r.Console.Live, First: makeSchema}
	if r.Cluster, err = engine.Start(ctx, env, r.arm); err != nil {
		return err
	}
	if r.run.Engine, err = r.Cluster.Engine(ctx); err != nil {
		return err
	}
	if !made {
		if err := makeSchema(ctx, r.Cluster); err != nil {
			return err
		}
	}
	r.Store = r.Cluster.Store(keyspace(r.Numbering.Run))
	r.run.Engine.Replication, err = r.Store.Check(ctx)
	return err
}

// keyspace names a round's own storage; a name of an earlier round is never used again.
func keyspace(run uint64) string { return fmt.Sprintf("jaegerlab_%011x", run) }

func (r *round) stackEnv() stack.Env {
	return stack.Env{Runtime: r.Runtime, Binary: r.catalog.Binary, Say: r.Console.Live}
}

func (r *round) limits(host spec.Host) spec.Limits {
	return spec.LimitsFor(r.arm.Profile, host, r.arm.Backend.Engine, r.Runtime.Host().CPUs)
}

func (r *round) startLoad(ctx context.Context) error {
	binary, err := r.catalog.Binary(setup.Load)
	if err != nil {
		return err
	}
	if r.Load, err = r.Runtime.Start(ctx, load.Program(binary, r.limits(spec.LoadHost))); err != nil {
		return err
	}
	r.remote = load.Remote{Addr: r.Load.Addr("control")}
	return node.Wait(ctx, "the load node to answer", 30*time.Second, r.Load, r.remote.Healthy)
}

func (r *round) startCollector(ctx context.Context) error {
	var err error
	r.Collector, err = stack.StartCollector(ctx, r.stackEnv(), stack.Ask{
		Arm: r.arm, Store: r.Store, Protocol: r.protocol, Limits: r.limits(spec.CollectorHost), Name: "collector",
	})
	if err != nil {
		return err
	}
	r.run.Collector = r.Collector.Record
	return r.Collector.CheckQueue(ctx)
}

func (r *round) startMonitor(ctx context.Context) error {
	targets := []stack.Target{
		{Job: "collector", Addr: r.Collector.Node.PeerAddr("metrics")},
		{Job: "load", Addr: r.Load.PeerAddr("control")},
	}
	for _, n := range r.Cluster.Nodes() {
		if hasPort(n, "metrics") {
			targets = append(targets, stack.Target{Job: string(r.arm.Backend.Engine), Addr: n.PeerAddr("metrics")})
		}
	}
	var err error
	r.Monitor, err = stack.StartMonitor(ctx, r.stackEnv(), stack.MonitorAsk{
		Name: "prometheus", Targets: targets, Limits: r.limits(spec.MonitorHost),
		Window: time.Duration(r.spec.Load.DurationS) * time.Second,
	})
	if err != nil {
		return err
	}
	r.run.Monitoring = r.Monitor.Programs
	r.run.Warnings = append(r.run.Warnings, r.Monitor.Notes...)
	return r.Monitor.WaitTargets(ctx)
}

func hasPort(n node.Node, name string) bool {
	return slices.ContainsFunc(n.Program().Ports, func(p node.Port) bool { return p.Name == name })
}

// nodes lists everything that is up, the database first.
func (r *round) nodes() []node.Node {
	var nodes []node.Node
	if r.Cluster != nil {
		nodes = append(nodes, r.Cluster.Nodes()...)
	}
	if r.Collector != nil {
		nodes = append(nodes, r.Collector.Node)
	}
	if r.Load != nil {
		nodes = append(nodes, r.Load)
	}
	if r.Monitor != nil {
		nodes = append(nodes, r.Monitor.Prometheus, r.Monitor.Exporter)
	}
	return nodes
}

// blame names a node that died, where an error is only what followed from it.
func (r *round) blame(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return errors.Join(cause, err)
	}
	for _, n := range r.nodes() {
		select {
		case <-n.Done():
			err = fmt.Errorf("%w\n%s ended: %s; its log: %s", err, n.Name(), n.Exit(), n.LogFile())
		default:
		}
	}
	return err
}

// close ends everything of the round, or leaves it up when the user asked for that.
func (r *round) close(ctx context.Context) error {
	within := closeWithin
	if ctx.Err() != nil {
		within = closeAtOnce
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if r.Cluster != nil {
		r.Cluster.Close()
	}
	if r.Runtime == nil {
		return nil
	}
	if r.keep {
		r.Console.Say("left up (LAB_KEEP); jaegerlab clean ends it:")
		for _, n := range r.nodes() {
			for _, port := range n.Program().Ports {
				r.Console.Say("  %-24s %s", n.Name()+" "+port.Name, n.Addr(port.Name))
			}
		}
	}
	return r.Runtime.Close(ctx)
}
