// Package solo runs one Jaeger v2 with the memory store and no queue, as a plain process, and
// reads traces back from it: the real receiver against which clients and exporters are proven. It
// stands beside the flow, for tests and benchmarks; arms of an experiment run on stack.
package solo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	yaml "go.yaml.in/yaml/v3"

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
	dir    string

	command *exec.Cmd
	ended   chan struct{}
	log     tail
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

// Start runs a program of Jaeger v2 with the receiver of a client, and returns when its query API
// answers. The port is chosen before Jaeger opens it; should another program take it in between,
// Jaeger ends and its output is in the error.
func Start(ctx context.Context, program string, p protocol.Protocol) (*Jaeger, error) {
	dir, err := os.MkdirTemp("", "jaegerlab-solo-")
	if err != nil {
		return nil, fmt.Errorf("start Jaeger on the memory store: %w", err)
	}
	j := &Jaeger{dir: dir, ended: make(chan struct{})}
	config, err := j.configuration(p)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.yaml"), config, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Jaeger on the memory store: %w", err), os.RemoveAll(dir))
	}
	j.command = exec.Command(program, "--config", filepath.Join(dir, "config.yaml"))
	j.command.Stdout, j.command.Stderr = &j.log, &j.log
	if err := j.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start Jaeger on the memory store: %w", err), os.RemoveAll(dir))
	}
	go func() { _ = j.command.Wait(); close(j.ended) }()
	if err := j.await(ctx); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// await waits at most 30 s for the query API, and notices Jaeger's death.
func (j *Jaeger) await(ctx context.Context) error {
	const patience = 30 * time.Second
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if response, err := http.Get("http://" + j.query + "/api/services"); err == nil {
			_ = response.Body.Close()
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for Jaeger's query API at %s: %w", j.query, context.Cause(ctx))
		case <-j.ended:
			return fmt.Errorf("start Jaeger on the memory store: it ended; its output ends:\n%s", j.log.String())
		case <-deadline.C:
			return fmt.Errorf("wait for Jaeger's query API at %s: no answer after %v; its output ends:\n%s",
				j.query, patience, j.log.String())
		}
	}
}

// Close ends Jaeger and removes its folder.
func (j *Jaeger) Close() error {
	_ = j.command.Process.Kill()
	<-j.ended
	return os.RemoveAll(j.dir)
}

// configuration is a pipeline from the client's receiver to the memory store without a queue:
// what was taken is stored.
func (j *Jaeger) configuration(p protocol.Protocol) ([]byte, error) {
	var receivers []string
	for name := range p.ReceiverV2 {
		receivers = append(receivers, name)
	}
	type section = map[string]any
	text, err := yaml.Marshal(section{
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
	if err != nil {
		return nil, err
	}
	config := string(text)
	for _, name := range []string{p.Port, "query", "query-grpc"} {
		addr, err := freeAddress()
		if err != nil {
			return nil, err
		}
		switch name {
		case p.Port:
			j.Target = addr
		case "query":
			j.query = addr
		}
		_, port, _ := net.SplitHostPort(addr) // as the kernel wrote it
		config = strings.ReplaceAll(config, "${port."+name+"}", port)
	}
	return []byte(strings.ReplaceAll(config, "${ip}", "127.0.0.1")), nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// tail keeps the end of an output.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String is the end of the output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
