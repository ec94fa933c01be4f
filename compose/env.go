package compose

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"jaegerlab/lab/node"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
)

// Env is the text of compose/.env for this machine: the images that the daemon has, public ones
// or those of "make images", the load node's built from the checkout, and CPU sets of profile t2
// on the daemon's CPUs. What is absent is left out: then Compose pulls the public image.
func Env(ctx context.Context) ([]byte, error) {
	catalog, err := setup.Find(ctx, spec.Docker, nil)
	if err != nil {
		return nil, fmt.Errorf("write compose/.env: %w", err)
	}
	host, err := node.DockerHost(ctx)
	if err != nil {
		return nil, fmt.Errorf("write compose/.env: %w", err)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Written by jaegerlab compose for this machine: write it again when the checkout or the images change.\n")
	for _, program := range []string{setup.Jaeger, setup.JaegerV1Collector, setup.Prometheus, setup.NodeExporter,
		setup.Cassandra, setup.Scylla} {
		if binary, err := catalog.Binary(program); err == nil {
			fmt.Fprintf(&text, "%s=%s\n", imageVariable(program), binary.Image)
		}
	}
	own, err := catalog.Binary(setup.Load)
	if err != nil {
		return nil, fmt.Errorf("write compose/.env: %w", err)
	}
	fmt.Fprintf(&text, "STACK_IMAGE_LOAD=%s\n", own.Image)
	for _, h := range []spec.Host{spec.DatabaseHost, spec.CollectorHost, spec.LoadHost, spec.MonitorHost} {
		set := spec.LimitsFor(spec.T2, h, spec.Cassandra, host.CPUs).CPUSet
		fmt.Fprintf(&text, "STACK_CPUS_%s=%s\n", strings.ToUpper(string(h)), cpuList(set))
	}
	return text.Bytes(), nil
}
