// Package compose renders the lab's stacks for Docker Compose, for looking at by hand: the same
// programs under the same limits and settings as a run starts, planned by packages backend and
// stack from the same spec. cassandra.yaml and scylladb.yaml are what it renders; a test fails when
// they are stale. It stands beside the flow and no step of the lab needs it.
package compose

import (
	"fmt"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/load"
	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/stack"
)

// Stacks are the files of this folder with the backend of each: the original's node counts.
var Stacks = map[string]spec.Backend{
	"cassandra.yaml": {Engine: spec.Cassandra, Nodes: 2},
	"scylladb.yaml":  {Engine: spec.Scylla, Nodes: 3},
}

// Keyspace is where a stack's Jaeger stores.
const Keyspace = "jaegerlab"

// FoldedCPUs is the machine that CPU sets in the files are made for: a larger one runs them as
// well, and Env gives its own sets.
const FoldedCPUs = 2

// GrafanaImage is not one of the lab's programs: only people look at it.
const GrafanaImage = "grafana/grafana:11.6.0"

// Names of services that the lab's own program is.
const (
	serviceAwait     = "schema-ready"
	serviceResources = "resources"
	serviceLoad      = "load"
	serviceGrafana   = "grafana"
	portResources    = 8081
)

// parts is everything a stack is made of.
type parts struct {
	database         []node.Program // in the order of joining
	schema           node.Program
	collector        node.Program
	collectorV1      node.Program
	exporter, prom   node.Program
	loadNode         node.Program
	monitor, loading spec.Limits
}

// plan describes a stack as a run on a machine with FoldedCPUs CPUs would start it, with public images.
func plan(b spec.Backend) (parts, error) {
	arm := spec.Arm{Backend: b, Collector: stack.V2, Client: "otlp-grpc", Profile: spec.T2, Replication: 1}
	limits := func(h spec.Host) spec.Limits { return spec.LimitsFor(arm.Profile, h, b.Engine, FoldedCPUs) }
	var p parts
	binary, err := public(string(b.Engine))
	if err != nil {
		return p, err
	}
	database, store, err := backend.Plan(arm, binary, FoldedCPUs, Keyspace)
	if err != nil {
		return p, err
	}
	p.database, p.monitor, p.loading = database, limits(spec.MonitorHost), limits(spec.LoadHost)
	receivers, err := clients("otlp-grpc", "thrift-http")
	if err != nil {
		return p, err
	}
	ask := stack.Ask{Arm: arm, Store: store, Protocol: receivers, Limits: limits(spec.CollectorHost)}
	if err := p.planJaeger(ask); err != nil {
		return p, err
	}
	p.loadNode = load.Program(node.Binary{}, p.loading)
	return p, p.planMonitor(b)
}

func (p *parts) planJaeger(ask stack.Ask) (err error) {
	planner := stack.Planner{Binary: public}
	ask.Name = "schema"
	if p.schema, err = planner.Schema(ask); err != nil {
		return err
	}
	ask.Name = "collector"
	if p.collector, err = planner.Collector(ask); err != nil {
		return err
	}
	ask.Name, ask.Arm.Collector = "collector-v1", stack.V1
	p.collectorV1, err = planner.Collector(ask)
	return err
}

func (p *parts) planMonitor(b spec.Backend) (err error) {
	targets := []stack.Target{
		{Job: "collector", Addr: addr(p.collector, "metrics")},
		{Job: "collector", Addr: addr(p.collectorV1, "metrics")},
		{Job: "load", Addr: addr(p.loadNode, "control")},
		{Job: "jaegerlab", Addr: fmt.Sprintf("%s:%d", serviceResources, portResources)},
	}
	for _, one := range p.database {
		if at := addr(one, "metrics"); at != "" {
			targets = append(targets, stack.Target{Job: string(b.Engine), Addr: at})
		}
	}
	ask := stack.MonitorAsk{Name: "prometheus", Targets: targets, Limits: p.monitor}
	p.exporter, p.prom, err = stack.Planner{Binary: public}.Monitor(ask, "node-exporter")
	return err
}

// public is a program's published image.
func public(program string) (node.Binary, error) {
	image, err := setup.PublicImage(program)
	return node.Binary{Image: image}, err
}

// addr is host:port of a named port in the stack's network; "" when the program has none.
func addr(p node.Program, port string) string {
	for _, one := range p.Ports {
		if one.Name == port {
			return fmt.Sprintf("%s:%d", p.Name, one.Number)
		}
	}
	return ""
}

// clients is a protocol whose receivers are those of several clients, so that by hand any of them
// can send.
func clients(names ...string) (protocol.Protocol, error) {
	var all protocol.Protocol
	for i, name := range names {
		p, err := protocol.Get(name)
		if err != nil {
			return all, err
		}
		if i == 0 {
			all = p
			all.ReceiverV2 = map[string]any{}
		}
		for receiver, fragment := range p.ReceiverV2 {
			if _, taken := all.ReceiverV2[receiver]; taken {
				return all, fmt.Errorf("clients %v: two of them want receiver %s", names, receiver)
			}
			all.ReceiverV2[receiver] = fragment
		}
	}
	return all, nil
}
