package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"jaegerlab/lab/node"
)

// CheckQueue proves before load that the queue which the lab configured is the one in force, from
// the collector's own metrics: in Jaeger 2.13 a queue that lacks one word of its configuration
// is silently off. Collectors whose queue the lab does not set (v2-stock, an own configuration)
// and queues that no metric shows (v1 over OTLP) pass.
func (c *Collector) CheckQueue(ctx context.Context) error {
	metric := ""
	switch {
	case c.queueAsked:
		metric = "otelcol_exporter_queue_capacity"
	case c.Flavour.Generation == V1 && c.legacy && !c.Flavour.setsQueue():
		metric = "jaeger_collector_queue_capacity"
	default:
		return nil
	}
	// v1 sets its gauge once a second only: 0 is not yet an answer.
	var got float64
	err := node.Wait(ctx, metric+" in the collector's metrics", queueShownWithin, c.Node, func(ctx context.Context) error {
		families, err := scrape(ctx, c.MetricsAddr)
		if err != nil {
			return err
		}
		for _, m := range families[metric].GetMetric() {
			got = m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
		if got == 0 {
			return errors.New("the page has none: this version took the settings and runs without a queue")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("check queue of collector %s: asked for %d spans: %w", c.Record.Name, QueueSpans, err)
	}
	if got != QueueSpans {
		return fmt.Errorf("check queue of collector %s: asked for %d spans, %s says %v",
			c.Record.Name, QueueSpans, metric, got)
	}
	return nil
}

// queueShownWithin bounds the wait for the gauge.
const queueShownWithin = 5 * time.Second

// setsQueue reports whether the user's file sets v1's queue.
func (f Flavour) setsQueue() bool {
	all := strings.Join(append(append([]string{}, f.Env...), f.Args...), "\n")
	return strings.Contains(all, "COLLECTOR_QUEUE_SIZE") || strings.Contains(all, "--collector.queue-size")
}

func scrape(ctx context.Context, addr string) (map[string]*dto.MetricFamily, error) {
	status, body, err := get(ctx, "http://"+addr+"/metrics")
	if err != nil {
		return nil, err
	}
	if status != 200 {
		return nil, fmt.Errorf("http://%s/metrics answered %d", addr, status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", addr, err)
	}
	return families, nil
}

// reportedVersion is what the collector says of itself, "" when it says nothing.
func reportedVersion(ctx context.Context, addr string) string {
	families, err := scrape(ctx, addr)
	if err != nil {
		return "" // the run goes on: only the version is not known
	}
	for _, source := range []struct{ metric, label string }{
		{"target_info", "service_version"}, {"jaeger_build_info", "version"},
	} {
		for _, m := range families[source.metric].GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == source.label && label.GetValue() != "" {
					return strings.TrimPrefix(label.GetValue(), "v")
				}
			}
		}
	}
	return ""
}

// reachable dials a port once.
func reachable(ctx context.Context, addr string) error {
	if addr == "" {
		return errors.New("the collector has no port for the client")
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
