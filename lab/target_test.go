package lab

import (
	"strings"
	"testing"

	"jaegerlab/lab/spec"
)

func roundOn(target *spec.Target) *round {
	return &round{comparison: &comparison{spec: spec.Spec{Target: target}}, arm: spec.Arm{Client: "otlp-grpc"}}
}

// TestClockOfATarget: one kernel's clock stamps writes and sends on this machine; that of another is not known.
func TestClockOfATarget(t *testing.T) {
	for addr, known := range map[string]bool{"127.0.0.1:4317": true, "localhost:4317": true, "[::1]:4317": true, "10.1.2.3:4317": false,
		"otel.example:4317": false} {
		target := &spec.Target{Collector: spec.TargetCollector{Ingest: map[string]string{"otlp-grpc": addr, "thrift-http": "10.0.0.1:1"}}}
		if offset := roundOn(target).clockOffset(); (offset != nil) != known || known && *offset != 0 {
			t.Errorf("%s: offset %v", addr, offset)
		}
	}
	if offset := roundOn(nil).clockOffset(); offset == nil || *offset != 0 {
		t.Errorf("the lab's own stack: %v", offset)
	}
}

// TestPlanOfATarget: only what runs here is counted.
func TestPlanOfATarget(t *testing.T) {
	s := spec.Default()
	s.Backends = []spec.Backend{{Engine: spec.Cassandra, Nodes: 1}}
	own := MakePlan(s)
	s.Target, s.Backends = &spec.Target{Name: "staging"}, []spec.Backend{{Engine: spec.Cassandra}}
	plan := MakePlan(s)
	if plan.Runs != 1 || plan.MemoryBytes >= own.MemoryBytes || plan.Time >= own.Time {
		t.Errorf("%s; a stack of the lab's own: %s", plan, own)
	}
}

// TestTryTarget: every part is tried, whatever the others say, and each fault names its field.
func TestTryTarget(t *testing.T) {
	nowhere := "127.0.0.1:1"
	checks := TryTarget(t.Context(), spec.Spec{Clients: []string{"otlp-grpc"}, Target: &spec.Target{
		Name: "staging", Prometheus: nowhere, CQL: spec.TargetCQL{Hosts: []string{nowhere}, Keyspace: "jaeger", Consistency: "ALL"},
		Collector: spec.TargetCollector{Ingest: map[string]string{"otlp-grpc": nowhere}, Metrics: nowhere, Generation: "v2"},
	}})
	fields := []string{"collector.metrics", "cql.hosts", "prometheus"}
	if len(checks) != len(fields) {
		t.Fatalf("%d checks: %+v", len(checks), checks)
	}
	for i, field := range fields {
		if c := checks[i]; c.State != "missing" || !strings.Contains(c.Have, field) || c.Remedy == "" {
			t.Errorf("%+v does not name %s", c, field)
		}
	}
}
