package lab

import (
	"slices"
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

func fourArms(rounds int) *comparison {
	s := spec.Spec{
		Backends:   []spec.Backend{{Engine: spec.Badger}, {Engine: spec.Cassandra, Nodes: 2}},
		Collectors: []string{"v2", "v1"}, Clients: []string{"otlp-grpc"}, Rounds: rounds, Seed: 7,
	}
	return &comparison{spec: s, arms: s.Arms()}
}

// Over every two rounds each arm has the same mean place, the seed alone decides the order, and
// orders differ.
func TestOrderIsBalancedAndSeeded(t *testing.T) {
	c := fourArms(8)
	orders := map[string]bool{}
	for round := 1; round <= 8; round += 2 {
		first, second := c.order(round), c.order(round+1)
		for i, arm := range first {
			if j := slices.Index(second, arm); i+j != len(first)-1 {
				t.Errorf("rounds %d and %d: %s runs at %d and %d", round, round+1, arm.Name(), i, j)
			}
		}
		var names []string
		for _, arm := range first {
			names = append(names, arm.Name())
		}
		orders[strings.Join(names, ",")] = true
		if !slices.Equal(first, fourArms(8).order(round)) {
			t.Errorf("round %d has another order the second time", round)
		}
	}
	if len(orders) < 2 {
		t.Error("every round has the same order")
	}
	if c := fourArms(1); !slices.Equal(c.order(1), c.spec.Arms()) {
		t.Error("a single round is not in the order that was asked for")
	}
}

// Copies of one arm are arms with names of their own.
func TestCopiesAreTold(t *testing.T) {
	s := spec.Spec{Backends: []spec.Backend{{Engine: spec.Badger}}, Collectors: []string{"v2"}, Clients: []string{"otlp-grpc"}, Copies: 2}
	arms := s.Arms()
	if len(arms) != 2 || arms[0].Name() != "badger v2 otlp-grpc a" || arms[1].Name() != "badger v2 otlp-grpc b" {
		t.Errorf("arms %+v", arms)
	}
}

func TestNextRoundAfterAFailedOne(t *testing.T) {
	c := fourArms(3)
	arm := c.spec.Arms()[0]
	c.record.Runs = []record.Run{{Arm: arm.Name(), Round: 1}, {Arm: arm.Name(), Round: 2, Error: "killed"}, {Arm: "another", Round: 9}}
	if c.measured(arm) != 1 || c.nextRound(arm) != 3 {
		t.Errorf("%d measured, next is %d; want 1 and 3", c.measured(arm), c.nextRound(arm))
	}
}

// Rounds of another load, host or lab never join a comparison.
func TestOnlyTheSameComparisonIsResumed(t *testing.T) {
	s := fourArms(3).spec
	host := record.Host{CPUs: 4, CPUModel: "x"}
	r := record.Record{Lab: "v1", Spec: s, Host: host}
	more, other, some, another := s, s, s, s
	some.Backends, some.Collectors = s.Backends[:1], s.Collectors[1:]
	another.Backends = []spec.Backend{{Engine: spec.Memory}}
	more.Rounds, more.Results, more.Keep = 9, "elsewhere", true
	other.Load.DurationS = 3
	for name, test := range map[string]struct {
		s       spec.Spec
		host    record.Host
		version string
		want    string
	}{
		"the same": {s, host, "v1", ""}, "more rounds": {more, host, "v1", ""},
		"one of its arms": {some, host, "v1", ""}, "another arm": {another, host, "v1", "arm memory v2 otlp-grpc is not one of its arms"},
		"another load": {other, host, "v1", "what is measured differs"},
		"another host": {s, record.Host{CPUs: 8, CPUModel: "x"}, "v1", "the host differs"}, "another lab": {s, host, "v2", "version v1 of the lab"},
	} {
		err := sameComparison(r, test.s, test.host, test.version)
		if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// Rounds that were added after a look at the first ones are said: a test can't know of that.
func TestAddedRoundsAreSaid(t *testing.T) {
	planned := fourArms(2)
	planned.record.Spec = planned.spec
	for _, arm := range planned.arms {
		planned.record.Runs = append(planned.record.Runs, record.Run{Arm: arm.Name(), Round: 1})
	}
	if text := planned.addedRounds(2); text != "" {
		t.Errorf("an interrupted comparison that goes on as planned: %q", text)
	}
	if text := planned.addedRounds(5); !strings.Contains(text, "added to the 2 that were planned") {
		t.Errorf("five rounds instead of two: %q", text)
	}
	fresh := fourArms(2)
	fresh.record.Spec = fresh.spec
	if text := fresh.addedRounds(5); text != "" {
		t.Errorf("nothing was measured yet, and it says %q", text)
	}
}
