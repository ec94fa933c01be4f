package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/spec"
)

// TestExternalCollector: reached at the addresses of the file, not checked for the lab's queue, never stopped.
func TestExternalCollector(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "otelcol_exporter_queue_capacity 77")
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	p, err := protocol.Get("otlp-grpc")
	if err != nil {
		t.Fatal(err)
	}
	target := spec.Target{Name: "staging", Collector: spec.TargetCollector{
		Ingest: map[string]string{"otlp-grpc": addr}, Metrics: addr, Generation: "v2"}}
	c, err := ExternalCollector(t.Context(), target, p)
	if err != nil {
		t.Fatal(err)
	}
	if c.IngestAddr(true) != addr || c.MetricsAddr != addr || c.Node.PeerAddr("metrics") != addr || c.Record.Name != "staging" {
		t.Errorf("%+v", c)
	}
	if err := c.CheckQueue(t.Context()); err != nil {
		t.Errorf("its queue is its owner's: %v", err)
	}
	if err := c.Node.Kill(t.Context()); !errors.Is(err, node.ErrElsewhere) {
		t.Errorf("kill: %v", err)
	}
	usage, err := c.Node.Read(t.Context())
	if err != nil || usage.CPUSeconds != nil || usage.MemoryBytes != nil {
		t.Errorf("usage %+v, %v: nothing of it is known", usage, err)
	}
	other, err := protocol.Get("thrift-http")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ExternalCollector(t.Context(), target, other); err == nil || !strings.Contains(err.Error(), "otlp-grpc") {
		t.Errorf("a client that the target has no port for: %v", err)
	}
	target.Collector.Metrics = "127.0.0.1:1"
	if _, err := ExternalCollector(t.Context(), target, p); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("a target that refuses: %v", err)
	}
}

// TestTargetThatIsSomethingElse: another version, another program, and one that is too slow are refused
// before load, each by the field that names it.
func TestTargetThatIsSomethingElse(t *testing.T) {
	p, err := protocol.Get("otlp-grpc")
	if err != nil {
		t.Fatal(err)
	}
	slow := make(chan struct{})
	t.Cleanup(func() { close(slow) })
	for name, c := range map[string]struct {
		page, generation, want string
	}{
		"v1 called v2":    {"jaeger_collector_queue_capacity 2000\notelcol_x 1", "v2", "set it to v1"},
		"v2 called v1":    {"otelcol_process_uptime_seconds_total 1", "v1", "set it to v2"},
		"another program": {"go_goroutines 7", "v2", "none of the 1 metrics"},
		"a web page":      {"<html>", "v2", "collector.metrics"},
		"slow":            {"", "v2", "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.page == "" {
					select {
					case <-slow:
					case <-r.Context().Done():
					}
				}
				fmt.Fprintln(w, c.page)
			}))
			t.Cleanup(server.Close)
			addr := strings.TrimPrefix(server.URL, "http://")
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := ExternalCollector(ctx, spec.Target{Name: "staging", Collector: spec.TargetCollector{
				Ingest: map[string]string{"otlp-grpc": addr}, Metrics: addr, Generation: c.generation}}, p)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `collector.metrics: "`+addr) {
				t.Errorf("%v, want %q and the field", err, c.want)
			}
		})
	}
}

// TestExternalPrometheus: asked for its version, and for nothing else.
func TestExternalPrometheus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/status/buildinfo" {
			t.Errorf("it was asked to %s %s", r.Method, r.URL)
		}
		fmt.Fprint(w, `{"status":"success","data":{"version":"3.1.0"}}`)
	}))
	defer server.Close()
	target := spec.Target{Name: "staging", Prometheus: strings.TrimPrefix(server.URL, "http://")}
	program, err := ExternalPrometheus(t.Context(), target)
	if err != nil || program.Version != "3.1.0" || !strings.Contains(program.Source, "user's own") {
		t.Errorf("%+v, %v", program, err)
	}
	target.Prometheus = "127.0.0.1:1"
	if _, err := ExternalPrometheus(t.Context(), target); err == nil || !strings.Contains(err.Error(), `prometheus: "127.0.0.1:1"`) {
		t.Errorf("nothing listens: %v", err)
	}
}
