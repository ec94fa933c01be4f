package lab

import (
	"strings"
	"testing"
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// The default experiment must fit go test's default limit of ten minutes in both runtimes.
func TestDefaultPlanFitsGoTestsLimit(t *testing.T) {
	for _, runtime := range []spec.Runtime{spec.Docker, spec.Process} {
		s, _, err := spec.Default().On(runtime, "linux")
		if err != nil {
			t.Fatal(err)
		}
		if err := MakePlan(s).Check(record.Host{}, -1, 10*time.Minute); err != nil {
			t.Errorf("%s: %v", runtime, err)
		}
	}
}

// Case 33: a matrix longer than the limit is refused with the -timeout it needs.
func TestPlanThatCannotFitIsRefused(t *testing.T) {
	s := spec.Default()
	s.Backends, s.Rounds = []spec.Backend{{Engine: spec.Cassandra, Nodes: 2}}, 6
	err := MakePlan(s).Check(record.Host{MemoryBytes: 2 << 30}, 1<<30, 10*time.Minute)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"-timeout", "GiB of memory", "GiB of disk"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in %v", want, err)
		}
	}
}
