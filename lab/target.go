package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/observe"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/stack"
)

// starter brings up what a round measures. A round starts a stack of the lab's own; targetRound
// takes the user's as it is.
type starter interface {
	startStore(ctx context.Context) error
	startCollector(ctx context.Context) error
	startMonitor(ctx context.Context) error
}

func (r *round) starter() starter {
	if r.spec.Target != nil {
		return targetRound{r}
	}
	return r
}

// targetRound is a round on the user's own Jaeger and database: of it nothing is started, stopped,
// emptied or scanned, and what can't be seen from here stays unknown. Load node, ledger and record
// are those of every round.
type targetRound struct{ *round }

func (r targetRound) startStore(ctx context.Context) error {
	var err error
	if r.Cluster, err = backend.Connect(ctx, r.spec.Target.CQL); err != nil {
		return err
	}
	if r.run.Engine, err = r.Cluster.Engine(ctx); err != nil {
		return err
	}
	r.Store = r.Cluster.Store(r.spec.Target.CQL.Keyspace)
	r.run.Engine.Replication, err = r.Store.Check(ctx)
	return err
}

func (r targetRound) startCollector(ctx context.Context) error {
	var err error
	if r.Collector, err = stack.ExternalCollector(ctx, *r.spec.Target, r.protocol); err != nil {
		return err
	}
	r.run.Collector = r.Collector.Record
	return nil
}

// startMonitor starts the lab's own Prometheus, which scrapes the load node and the one page of the
// target that is named; with a Prometheus of the target's, nothing.
func (r targetRound) startMonitor(ctx context.Context) error {
	if r.spec.Target.Prometheus == "" {
		return r.round.startMonitor(ctx)
	}
	program, err := stack.ExternalPrometheus(ctx, *r.spec.Target)
	if err != nil {
		return err
	}
	r.run.Monitoring = append(r.run.Monitoring, program)
	return nil
}

// clockOffset is the collector's clock less the load node's: zero where the clock of one kernel stamps
// writes and sends, as on all nodes of the lab's own stack in either runtime; nil where it is not known.
func (r *round) clockOffset() *time.Duration {
	if t := r.spec.Target; t != nil && slices.Contains(t.Elsewhere(), t.Collector.Ingest[r.arm.Client]) {
		return nil
	}
	return new(time.Duration)
}

// pusher takes what only the lab can read to Prometheus; nil where the lab has none of its own.
func (r *round) pusher() *observe.Pusher {
	if r.Monitor == nil {
		return nil
	}
	return &observe.Pusher{Addr: r.Monitor.Addr, Start: r.started}
}

// TryTarget looks at the target of a spec as a run would before its load, and sends no span.
func TryTarget(ctx context.Context, s spec.Spec) []setup.Check {
	t := s.Target
	check := func(what, have string, err error) setup.Check {
		c := setup.Check{Name: "target: " + what, State: setup.OK, Have: have, Need: "what " + t.Name + "'s file says"}
		if err != nil {
			c.State, c.Have, c.Remedy = setup.Lack, err.Error(), "correct the file of LAB_TARGET, or the target"
		}
		return c
	}
	var checks []setup.Check
	for _, client := range s.Clients {
		p, err := protocol.Get(client)
		have := ""
		if err == nil {
			var c *stack.Collector
			if c, err = stack.ExternalCollector(ctx, *t, p); err == nil {
				have = "Jaeger " + c.Record.Program.Version
			}
		}
		checks = append(checks, check("collector, "+client, have, err))
	}
	have, err := tryStore(ctx, t.CQL)
	checks = append(checks, check("database", have, err))
	if t.Prometheus != "" {
		program, err := stack.ExternalPrometheus(ctx, *t)
		checks = append(checks, check("Prometheus", program.Version, err))
	}
	return checks
}

func tryStore(ctx context.Context, t spec.TargetCQL) (string, error) {
	cluster, err := backend.Connect(ctx, t)
	if err != nil {
		return "", err
	}
	defer cluster.Close()
	engine, err := cluster.Engine(ctx)
	if err != nil {
		return "", err
	}
	replication, err := cluster.Store(t.Keyspace).Check(ctx)
	return strings.TrimSpace(fmt.Sprintf("%s %s, keyspace %s %s", engine.Name, engine.Version, t.Keyspace, replication)), err
}
