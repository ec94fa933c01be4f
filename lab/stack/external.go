package stack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	if _, err := scrape(ctx, c.MetricsAddr); err != nil {
		return nil, fmt.Errorf("reach the collector of target %s: read its metrics: %w", t.Name, err)
	}
	if err := reachable(ctx, ingest); err != nil {
		return nil, fmt.Errorf("reach the collector of target %s: client %s at %s: %w", t.Name, p.Name, ingest, err)
	}
	version := reportedVersion(ctx, c.MetricsAddr)
	if version == "" {
		version = "not reported"
	}
	c.Record = record.Collector{Name: t.Name, Settings: map[string]string{},
		Program: record.Program{Name: "jaeger", Version: version, Source: "the user's own at " + ingest}}
	return c, nil
}
