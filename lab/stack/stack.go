// Package stack brings up what stands between the load and the store, and what watches it: the
// collector of an arm, Prometheus and node-exporter. It is a step of the flow spec -> backend,
// stack -> load -> observe -> ledger -> record -> report: it takes a running cluster's Store
// and returns running, healthy nodes with every setting that they were given.
//
// # Collectors
//
// LAB_COLLECTOR names a collector, that is a Jaeger and its settings:
//
//	v2        Jaeger v2 with the lab's settings: a queue of 2,000 spans, 50 consumers, senders
//	          held back when it is full, retry of failed writes, time-outs (v2.go says why)
//	v2-stock  Jaeger v2 with the pipeline of its own example configuration
//	v1        Jaeger 1.76 (with embedded stores its all-in-one), its defaults
//	FILE      a file (.yaml, .yml, .json) that names an own image, binary or configuration
//
// Such a file has these fields; testdata/collector-own.yaml is a complete example:
//
//	name      how tables and folders call it; default: the file's name
//	flavour   v2 or v1: which configuration and metric names it understands; default v2
//	image     image reference for the docker runtime; default: the pinned Jaeger's
//	binary    path of an executable for the process runtime; default: the pinned Jaeger
//	config    v2 only: a configuration, inline or a path; default: the lab's settings
//	env       list of NAME=value
//	args      list of further arguments
//
// In an own configuration these placeholders stand for what only the lab knows:
//
//	${lab.storage}         the backend below extensions.jaeger_storage.backends.<name>
//	${lab.receivers}       the receivers section for the arm's client
//	${lab.receiver_names}  the list of their names, for the pipeline
//	${ip}                  the address to listen on
//	${port.metrics}        port of the Prometheus metrics: needed, counters are read there
//	${port.health}         port of the health check; without it the metrics page stands for it
//	${port.query-grpc}     port of Jaeger's gRPC query API: needed with badger and memory
//	${port.query}          port of its HTTP query API and page
//	${port.CLIENT}         port of the client (otlp-grpc, thrift-http), without ${lab.receivers}
//
// The three lab.* placeholders are whole values: `receivers: ${lab.receivers}`.
package stack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// Env is what this step needs from the run.
type Env struct {
	Runtime node.Runtime
	Binary  func(program string) (node.Binary, error) // package setup: "jaeger", "prometheus", ...
	Say     func(format string, args ...any)          // progress: what is being waited for; may be nil
}

func (e Env) say(format string, args ...any) {
	if e.Say != nil {
		e.Say(format, args...)
	}
}

// Ask is one collector to start.
type Ask struct {
	Arm      spec.Arm
	Store    backend.Store
	Protocol protocol.Protocol
	Limits   spec.Limits
	Name     string // of the node; unique in the run
}

// Names of the programs as package setup knows them.
const (
	programV2         = "jaeger"
	programV1         = "jaeger-v1-collector"
	programV1AllInOne = "jaeger-v1-all-in-one"
	programPrometheus = "prometheus"
	programExporter   = "node-exporter"
)

// probeTimeout bounds one HTTP request to a node; a throttled collector answers slowly.
const probeTimeout = 5 * time.Second

// get fetches a page from a node, at most 16 MiB of it.
func get(ctx context.Context, url string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("get %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err // it names method and URL itself
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err != nil {
		return 0, nil, fmt.Errorf("get %s: read answer: %w", url, err)
	}
	return response.StatusCode, body, nil
}

func programRecord(name string, b node.Binary) record.Program {
	return record.Program{Name: name, Version: b.Version, Source: b.Source}
}
