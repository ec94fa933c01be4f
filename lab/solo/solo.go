// Package solo runs one Jaeger v2 with the memory store and no queue, as a plain process, and
// reads traces back from it: the real receiver against which clients and exporters are proven. It
// stands beside the flow, for tests and benchmarks; arms of an experiment run on stack.
package solo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
)

// maxTraces is above what any test or benchmark sends: beyond it the memory store forgets.
const maxTraces = 1_000_000

// Jaeger is a running one.
type Jaeger struct {
	Target string // host:port that takes spans
	query  string

	runtime node.Runtime
	node    node.Node
}

// Program returns the path of the Jaeger that setup has built for this machine.
func Program(ctx context.Context) (string, error) {
	catalog, err := setup.Find(ctx, spec.Process, nil)
	if err != nil {
		return "", err
	}
	binary, err := catalog.Binary(setup.Jaeger)
	if err != nil {
		return "", err
	}
	return binary.Command[0], nil
}

// startWithin is what Jaeger gets until its query API answers.
const startWithin = 30 * time.Second

// Start runs a program of Jaeger v2 with the receiver of a client, in a runtime of its own, and
// returns when its query API answers.
func Start(ctx context.Context, program string, p protocol.Protocol) (*Jaeger, error) {
	config, err := configuration(p)
	if err != nil {
		return nil, fmt.Errorf("start Jaeger on the memory store: %w", err)
	}
	id := fmt.Sprintf("solo%x", time.Now().UnixNano())
	runtime, err := node.NewProcess(ctx, node.ProcessOptions{RunID: id, Dir: filepath.Join(os.TempDir(), "jaegerlab-"+id)})
	if err != nil {
		return nil, fmt.Errorf("start Jaeger on the memory store: %w", err)
	}
	j := &Jaeger{runtime: runtime}
	j.node, err = runtime.Start(ctx, node.Program{
		Name: "jaeger", Host: spec.CollectorHost, Binary: node.Binary{Command: []string{program}},
		Args:  []string{"--config", "${dir}/config.yaml"},
		Files: []node.File{{Name: "config.yaml", Data: config}},
		Ports: []node.Port{{Name: p.Port, UDP: p.UDP}, {Name: "query"}, {Name: "query-grpc"}},
	})
	if err == nil {
		j.Target, j.query = j.node.Addr(p.Port), j.node.Addr("query")
		err = node.Wait(ctx, "Jaeger's query API", startWithin, j.node, j.answers)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Jaeger on the memory store: %w", err), j.Close())
	}
	return j, nil
}

func (j *Jaeger) answers(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+j.query+"/api/services", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// closeWithin bounds the tear-down.
const closeWithin = 30 * time.Second

// Close ends Jaeger and removes its folder.
func (j *Jaeger) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	var killed error
	if j.node != nil {
		killed = j.node.Kill(ctx) // its store is memory: there is nothing that a polite end would save
	}
	return errors.Join(killed, j.runtime.Close(ctx))
}

// configuration is a pipeline from the client's receiver to the memory store without a queue:
// what was taken is stored.
func configuration(p protocol.Protocol) ([]byte, error) {
	var receivers []string
	for name := range p.ReceiverV2 {
		receivers = append(receivers, name)
	}
	type section = map[string]any
	return yaml.Marshal(section{
		"service": section{
			"extensions": []string{"jaeger_storage", "jaeger_query"},
			"pipelines": section{"traces": section{
				"receivers": receivers, "exporters": []string{"jaeger_storage_exporter"}}},
			"telemetry": section{"metrics": section{"level": "none"}},
		},
		"extensions": section{
			"jaeger_storage": section{"backends": section{"store": section{"memory": section{"max_traces": maxTraces}}}},
			"jaeger_query": section{"storage": section{"traces": "store"},
				"http": section{"endpoint": "${ip}:${port.query}"},
				"grpc": section{"endpoint": "${ip}:${port.query-grpc}"}},
		},
		"receivers": p.ReceiverV2,
		"exporters": section{"jaeger_storage_exporter": section{"trace_storage": "store"}},
	})
}
