package stack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// ExternalCollector is the collector of a target: reached, asked for its version, and neither
// started nor configured here. It fails when the target has no port for the client, or when
// either port or its metrics page does not answer.
func ExternalCollector(ctx context.Context, t spec.Target, p protocol.Protocol) (*Collector, error) {
	ingest := t.Collector.Ingest[p.Name]
	if ingest == "" {
		return nil, fmt.Errorf("reach the collector of target %s: client %s: accepted by its file: %s (collector.ingest)",
			t.Name, p.Name, strings.Join(slices.Sorted(maps.Keys(t.Collector.Ingest)), ", "))
	}
	n := node.Elsewhere("collector", spec.CollectorHost, map[string]string{p.Port: ingest, "metrics": t.Collector.Metrics})
	c := &Collector{
		Node: n, MetricsAddr: t.Collector.Metrics, client: p.Port, legacy: p.Port == "thrift-http",
		Flavour: Flavour{Name: t.Name, Generation: t.Collector.Generation, Config: "the target's own"},
	}
	families, err := scrape(ctx, c.MetricsAddr)
	if err == nil {
		err = speaks(families, t.Collector.Generation)
	}
	if err != nil {
		return nil, fmt.Errorf("reach the collector of target %s: collector.metrics: %q: %w", t.Name, c.MetricsAddr, err)
	}
	if !p.UDP { // nobody answers there
		if err := reachable(ctx, ingest); err != nil {
			return nil, fmt.Errorf("reach the collector of target %s: collector.ingest.%s: %q: %w; is it up, and is this the port of "+
				"that client?", t.Name, p.Name, ingest, err)
		}
	}
	version := reportedVersion(ctx, c.MetricsAddr)
	if version == "" {
		version = "not reported"
	}
	c.Record = record.Collector{Name: t.Name, Settings: map[string]string{},
		Program: record.Program{Name: "jaeger", Version: version, Source: "the user's own at " + ingest}}
	return c, nil
}

// speaks reports whether a metrics page is that of a Jaeger of the generation: counters by other names
// would be taken for counters that are not there. Both show their own names before the first span.
func speaks(families map[string]*dto.MetricFamily, generation string) error {
	seen := ""
	for name := range families {
		switch {
		case strings.HasPrefix(name, "jaeger_collector_"):
			seen = V1
		case seen == "" && strings.HasPrefix(name, "otelcol_"):
			seen = V2
		}
	}
	switch {
	case seen == "":
		return fmt.Errorf("none of the %d metrics there is one of Jaeger's (otelcol_..., jaeger_collector_...): "+
			"name the port of the collector's own metrics, by default 8888 for v2 and 14269 for v1", len(families))
	case seen != generation:
		return fmt.Errorf("its metrics are those of Jaeger %s and collector.generation is %q: set it to %s", seen, generation, seen)
	}
	return nil
}

// ExternalPrometheus asks the Prometheus of a target which version it is. Nothing is written to it.
func ExternalPrometheus(ctx context.Context, t spec.Target) (record.Program, error) {
	m := Monitor{Addr: t.Prometheus}
	var build struct {
		Version string `json:"version"`
	}
	if err := m.api(ctx, "/api/v1/status/buildinfo", &build); err != nil {
		return record.Program{}, fmt.Errorf("reach the Prometheus of target %s: prometheus: %q: %w; leave the field out and the lab "+
			"starts its own", t.Name, t.Prometheus, err)
	}
	return record.Program{Name: programPrometheus, Version: build.Version, Source: "the user's own at " + t.Prometheus}, nil
}
