package experiments

import (
	"testing"

	"jaegerlab/lab/spec"
)

// Question: what do a collector's settings alone change? Jaeger v2 as shipped writes one span at
// a time; the lab's settings keep 50 writes in flight; v1 has 50 workers of its own.
// Method: the same load on one Cassandra node, one collector after another, with a short window, so
// that it fits go test's ten minutes: v2-stock takes minutes to write what it accepted in seconds.
// One round names what holds each back. To tell them apart takes rounds: LAB_ROUNDS=5 and
// -timeout 60m; with LAB_PROFILE=hard LAB_BACKENDS=cassandra:2 each host has its CPU quota.
// Changes our mind: v2-stock held back by anything else than its one write in flight, or storing as
// much as v2 within the window.
func TestCollectors(t *testing.T) {
	onlyWhenNamed(t)
	compare(t, experiment{
		Name:      "collectors",
		Settings:  []string{"LAB_BACKENDS=cassandra:1", "LAB_COLLECTOR=v2-stock,v2,v1", "DURATION_S=5"},
		Treatment: []string{spec.TreatCollector},
	})
}
