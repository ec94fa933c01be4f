package observe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"jaegerlab/lab/node"
)

// Pusher sends what only the lab's own process can read, the cgroup of each node, to Prometheus
// over OTLP: a container can't reach this process everywhere, but this process reaches
// Prometheus's loopback port. There the metrics are lab_node_cpu_seconds_total,
// lab_node_throttled_seconds_total and lab_node_memory_bytes, with the labels job="jaegerlab",
// node and host.
type Pusher struct {
	Addr  string    // host:port of Prometheus
	Start time.Time // since when the counters run; zero = not known
}

// pushed names each metric in OTLP; Prometheus appends unit and "_total".
var pushed = map[string]struct {
	name, unit string
	counter    bool
}{
	"cpu":       {"lab_node_cpu", "s", true},
	"throttled": {"lab_node_throttled", "s", true},
	"memory":    {"lab_node_memory", "By", false},
}

// Push sends one node's points. Points of other metrics are left out.
func (p *Pusher) Push(ctx context.Context, n node.Node, points []Point) error {
	body, err := proto.Marshal(p.request(n, points))
	if err != nil {
		return fmt.Errorf("push to Prometheus: %w", err)
	}
	url := "http://" + p.Addr + "/api/v1/otlp/v1/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("push to Prometheus: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("push to Prometheus: %w", err)
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // only for the error's text
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("push to Prometheus: %s answered %s: %s", url, response.Status, bytes.TrimSpace(answer))
	}
	return nil
}

func (p *Pusher) request(n node.Node, points []Point) *collectorpb.ExportMetricsServiceRequest {
	start := uint64(0) // not known
	if !p.Start.IsZero() {
		start = uint64(p.Start.UnixNano())
	}
	labels := []*commonpb.KeyValue{text("node", n.Name()), text("host", string(n.Program().Host))}
	var list []*metricspb.Metric
	for _, point := range points {
		shape, known := pushed[point.Metric]
		if !known {
			continue
		}
		data := []*metricspb.NumberDataPoint{{
			Attributes:        labels,
			StartTimeUnixNano: start,
			TimeUnixNano:      uint64(point.At.UnixNano()),
			Value:             &metricspb.NumberDataPoint_AsDouble{AsDouble: point.Value},
		}}
		m := &metricspb.Metric{Name: shape.name, Unit: shape.unit}
		if shape.counter {
			m.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{DataPoints: data, IsMonotonic: true,
				AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE}}
		} else {
			m.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: data}}
		}
		list = append(list, m)
	}
	return &collectorpb.ExportMetricsServiceRequest{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource:     &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "jaegerlab")}},
		ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: list}},
	}}}
}

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key,
		Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}
