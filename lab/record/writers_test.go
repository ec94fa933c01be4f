package record

import (
	"testing"

	"jaegerlab/lab/spec"
)

func TestWritersAreReadFromSettings(t *testing.T) {
	for name, test := range map[string]struct {
		client   string
		settings map[string]string
		want     int // 0 = not known
	}{
		"v1 over OTLP":    {"otlp-grpc", map[string]string{"env.COLLECTOR_NUM_WORKERS": "50"}, 10},
		"v1 over thrift":  {"thrift-http", map[string]string{"env.COLLECTOR_NUM_WORKERS": "50"}, 50},
		"v2, synchronous": {"otlp-grpc", map[string]string{"config.exporters.jaeger_storage_exporter.trace_storage": "store"}, 10},
		"v2 behind a batch processor": {"otlp-grpc", map[string]string{
			"config.exporters.jaeger_storage_exporter.trace_storage": "store", "config.service.pipelines.traces.processors": "batch"}, 1},
		"nothing": {"otlp-grpc", nil, 0},
	} {
		run := Run{Client: test.client, Load: spec.Load{Concurrency: 10}, Collector: Collector{Settings: test.settings}}
		got := run.Writers()
		if (got == nil) != (test.want == 0) || got != nil && *got != test.want {
			t.Errorf("%s: %v writers, want %d", name, got, test.want)
		}
	}
}
