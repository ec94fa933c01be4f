package experiments

import (
	"testing"

	"jaegerlab/lab/spec"
)

// Question: how many spans per second does Jaeger really store on ScyllaDB (3 nodes) and on
// Cassandra (2 nodes), each on a database host of 2 CPUs and 4 GiB?
// Method: the same 10 x 10 x 10 x 60 s load through the same collector; every span is accounted
// for by identity, and what counts is what was stored within the window.
// Changes our mind: spans acked and missing on one side, limits that are not in force, a load
// node or collector that is the bottleneck, or a second round that says otherwise.
func TestBackends(t *testing.T) {
	compare(t, experiment{Name: "backends", Treatment: []string{spec.TreatEngine}})
}
