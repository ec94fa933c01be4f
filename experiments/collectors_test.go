package experiments

import (
	"testing"

	"jaegerlab/lab/spec"
)

// Question: what do a collector's settings alone change? Jaeger v2 as shipped writes one span at
// a time; the lab's settings keep 50 writes in flight; v1 has 50 workers of its own.
// Method: the same load on one Cassandra node, three rounds of each collector in seeded order, with
// a short window, so that nine runs fit go test's ten minutes. That names what holds each back; to
// tell three arms apart takes five rounds (LAB_ROUNDS=5 and -timeout 30m), and with
// LAB_PROFILE=hard LAB_BACKENDS=cassandra:2 each host has its CPU quota.
// Changes our mind: v2-stock held back by anything else than its one write in flight, or storing as
// much as v2 within the window.
func TestCollectors(t *testing.T) {
	onlyWhenNamed(t)
	compare(t, experiment{
		Name:       "collectors",
		Backends:   []spec.Backend{{Engine: spec.Cassandra, Nodes: 1}},
		Collectors: []string{"v2-stock", "v2", "v1"},
		Rounds:     3,
		DurationS:  5,
		Treatment:  []string{spec.TreatCollector},
	})
}
