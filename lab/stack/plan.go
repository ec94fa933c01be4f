package stack

import (
	"fmt"
	"time"

	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
)

// Planner describes in containers what this package starts, without starting it. It is for the
// compose stacks, which are the same programs by hand.
type Planner struct {
	Binary func(program string) (node.Binary, error)
}

// planned is the docker runtime's name, and nothing else.
type planned struct{ node.Runtime }

func (planned) Name() spec.Runtime { return spec.Docker }

func (p Planner) env() Env { return Env{Runtime: planned{}, Binary: p.Binary} }

// Collector is the collector of an arm.
func (p Planner) Collector(ask Ask) (node.Program, error) {
	f, err := ParseFlavour(ask.Arm.Collector)
	if err != nil {
		return node.Program{}, fmt.Errorf("plan collector: %w", err)
	}
	program, _, err := collectorProgram(p.env(), f, ask)
	if err != nil {
		return node.Program{}, fmt.Errorf("plan collector %s: %w", f.Name, err)
	}
	return program, nil
}

// Schema is the Jaeger that creates the schema when it starts; its health check turns to OK after.
func (p Planner) Schema(ask Ask) (node.Program, error) {
	program, err := schemaProgram(p.env(), ask)
	if err != nil {
		return node.Program{}, fmt.Errorf("plan schema: %w", err)
	}
	return program, nil
}

// Monitor is node-exporter, under the given name, and the Prometheus that scrapes it and the targets.
func (p Planner) Monitor(ask MonitorAsk, exporterName string) (exporter, prometheus node.Program, err error) {
	if exporter, err = exporterProgram(p.env(), ask); err != nil {
		return exporter, prometheus, fmt.Errorf("plan node-exporter: %w", err)
	}
	exporter.Name = exporterName
	targets := append([]Target{{Job: jobExporter, Addr: fmt.Sprintf("%s:%d", exporterName, exporter.Ports[0].Number)}},
		ask.Targets...)
	if prometheus, err = prometheusProgram(p.env(), ask, targets, time.Second); err != nil {
		return exporter, prometheus, fmt.Errorf("plan Prometheus: %w", err)
	}
	return exporter, prometheus, nil
}
