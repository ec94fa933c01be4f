package experiments

import (
	"testing"

	"jaegerlab/lab/spec"
)

// Question: what do a collector's settings alone change? Jaeger v2 as shipped writes one span at
// a time; the lab's settings keep 50 writes in flight; v1 has 50 workers of its own.
// Method: the same load on the same two Cassandra nodes under CPU quotas, one collector after
// another.
// Changes our mind: v2 storing less than five times what v2-stock stores within the window.
func TestCollectors(t *testing.T) {
	onlyWhenNamed(t)
	compare(t, experiment{
		Name:       "collectors",
		Backends:   []spec.Backend{{Engine: spec.Cassandra, Nodes: 2}},
		Collectors: []string{"v2-stock", "v2", "v1"},
		Profile:    spec.Hard,
		Treatment:  []string{spec.TreatCollector},
	})
}
