package stack

import (
	"context"
	"fmt"
	"time"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

const (
	programLoad = "load" // the lab's own program, which is the black hole too
	holeWithin  = 30 * time.Second
)

// startHole starts the black hole of the backend null where an arm's collector would stand, under
// its limits: it takes what the client sends, counts it and keeps nothing.
func startHole(ctx context.Context, env Env, ask Ask) (*Collector, error) {
	binary, err := env.Binary(programLoad)
	if err != nil {
		return nil, fmt.Errorf("start the black hole: %w", err)
	}
	n, err := env.Runtime.Start(ctx, holeProgram(ask, binary))
	if err != nil {
		return nil, fmt.Errorf("start the black hole: %w", err)
	}
	err = node.Wait(ctx, "the black hole's metrics", holeWithin, n, func(ctx context.Context) error {
		_, err := scrape(ctx, n.Addr("metrics"))
		return err
	})
	if err != nil {
		stop(n)
		return nil, fmt.Errorf("start the black hole: %w", err)
	}
	return &Collector{
		Node: n, MetricsAddr: n.Addr("metrics"), client: ask.Protocol.Port,
		Flavour: Flavour{Name: spec.NoCollector, Config: "none"},
		Record: record.Collector{Name: spec.NoCollector, Program: programRecord("black hole", binary),
			Settings: map[string]string{}},
	}, nil
}

func holeProgram(ask Ask, binary node.Binary) node.Program {
	port := node.Port{Name: ask.Protocol.Port, Number: 4317, UDP: ask.Protocol.UDP}
	return node.Program{
		Name: ask.Name, Host: spec.CollectorHost, Binary: binary, Limits: ask.Limits,
		Args: []string{"--hole", port.Name + "=${ip}:${port." + port.Name + "}",
			"--listen", "${ip}:${port.metrics}"},
		Ports: []node.Port{port, {Name: "metrics", Number: 8888}},
	}
}
