package stack

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
