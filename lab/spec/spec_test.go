package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The empty environment is the original experiment: 10 x 10 x 10 x 60 s.
func TestDefaultsAreTheOriginalExperiment(t *testing.T) {
	s := Default()
	want := Load{Concurrency: 10, SpansCount: 10, TagsCount: 10, DurationS: 60, DrainS: 300, Services: 1, TagValues: 1, RequestTimeoutS: 30,
		TracesPerRequest: 1, MaxRequestSpans: 1000, Operations: 1, Shape: "star"}
	if diff := cmp.Diff(want, s.Load); diff != "" {
		t.Error(diff)
	}
	if s.Runtime != Auto || s.Profile != T2 || s.Replication != 1 || s.Named || s.Rounds != 1 {
		t.Errorf("defaults differ from the documentation: %+v", s)
	}
}

// Every bad value is named at once, each with variable, value and what is accepted.
func TestAllErrorsAtOnce(t *testing.T) {
	_, err := FromEnv([]string{
		"CONCURRENCY=ten", "SPANS_COUNT=-1", "DURATION_S=0", "TAGS_COUNT=99999999999999999999", "LAB_PROFILE=t3",
		"LAB_BACKENDS=cassandra:6,mysql,badger:2", "LAB_COLECTOR=v2", "LAB_RATE=3", "LAB_CLIENT=otlp-grcp", "LAB_KEEP=maybe",
		"LAB_COLLECTOR=v3",
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`CONCURRENCY="ten": accepted: 1 to 10000`,
		`SPANS_COUNT="-1": accepted: 0 to 10000`,
		`DURATION_S="0": accepted: 1 to 86400`,
		`TAGS_COUNT="99999999999999999999": accepted: 0 to 1000`,
		`LAB_PROFILE="t3": accepted: t2, hard, none`,
		`LAB_BACKENDS="cassandra:6": accepted`,
		`LAB_BACKENDS="mysql": accepted`,
		`LAB_BACKENDS="badger:2": accepted`,
		`LAB_COLECTOR="v2": no such setting; nearest known one is LAB_COLLECTOR`,
		`LAB_RATE="3": no such setting; nearest known one is RATE`,
		`LAB_CLIENT="otlp-grcp": accepted: a list of otlp-grpc`,
		`LAB_KEEP="maybe": accepted: 1, 0, true, false`,
		`LAB_COLLECTOR="v3": accepted: a list of v2, v2-stock, v1`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "CONCURRENCY="); n != 1 {
		t.Errorf("CONCURRENCY named %d times:\n%v", n, err)
	}
}

func TestPairsThatCannotWork(t *testing.T) {
	for name, env := range map[string][]string{
		"LAB_REPLICATION=\"3\": cassandra:2 has 2 nodes":  {"LAB_BACKENDS=cassandra:2", "LAB_REPLICATION=3"},
		"LAB_REPLICATION=\"2\": badger keeps one copy":    {"LAB_BACKENDS=badger", "LAB_REPLICATION=2"},
		"LAB_BACKENDS=\"cassandra:3\": the database host": {"LAB_BACKENDS=cassandra:3"},
		"LAB_BACKENDS=\"scylla:5\": the database host":    {"LAB_BACKENDS=scylla:5", "LAB_PROFILE=hard"},
		"LAB_BACKENDS=\"cassandra:2\": named twice":       {"LAB_BACKENDS=cassandra:2,cassandra:2"},
		"Jaeger v1.76 has no UDP receiver":                {"LAB_COLLECTOR=v1", "LAB_CLIENT=thrift-udp"},
		"holds 2,000 spans":                               {"LAB_MAX_REQUEST_SPANS=2001"},
		"only otlp-http compresses":                       {"LAB_GZIP=1"},
	} {
		if _, err := FromEnv(env); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: want %q, got %v", env, name, err)
		}
	}
}

func TestArmsAreTheProduct(t *testing.T) {
	s, err := FromEnv([]string{"LAB_BACKENDS=scylla:3, cassandra:2", "LAB_COLLECTOR=v2,v1", "LAB_CLIENT=otlp-grpc"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, arm := range s.Arms() {
		names = append(names, arm.Name())
	}
	want := []string{"scylla:3 v2 otlp-grpc", "scylla:3 v1 otlp-grpc", "cassandra:2 v2 otlp-grpc", "cassandra:2 v1 otlp-grpc"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// Default arms that a runtime can't have are left out by name; named ones are an error.
func TestOnARuntime(t *testing.T) {
	s, left, err := Default().On(Process, "linux")
	if err != nil || len(left) != 1 || s.Backends[0].String() != "cassandra:2" || s.Backends[1].String() != "badger" {
		t.Errorf("got %v, left out %v, %v", s.Backends, left, err)
	}
	s, _, err = Default().On(Process, "darwin")
	if err != nil || s.Backends[0].String() != "cassandra:1" {
		t.Errorf("macOS: got %v, %v", s.Backends, err)
	}
	named, _ := FromEnv([]string{"LAB_BACKENDS=scylla:3"})
	if _, _, err := named.On(Process, "linux"); err == nil || !strings.Contains(err.Error(), "Docker only") {
		t.Errorf("named ScyllaDB as process: %v", err)
	}
}

func TestImagesAreOverridable(t *testing.T) {
	s, err := FromEnv([]string{"LAB_IMAGE_CASSANDRA=mirror.local/cassandra:5.0.8"})
	if err != nil || s.Images["cassandra"] != "mirror.local/cassandra:5.0.8" || len(s.Images) != 1 {
		t.Errorf("got %v, %v", s.Images, err)
	}
}

// The profiles hand out the original hosts' resources, folded onto the CPUs there are.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		profile Profile
		host    Host
		engine  Engine
		cpus    int
		want    Limits
	}{
		{T2, DatabaseHost, Cassandra, 8, Limits{CPUSet: []int{0, 1}, CPUShares: 512, MemoryBytes: 3 * gib / 2}},
		{T2, DatabaseHost, Scylla, 8, Limits{CPUSet: []int{0, 1}, CPUShares: 512, MemoryBytes: gib}},
		{T2, LoadHost, "", 2, Limits{CPUSet: []int{1}, CPUShares: 512, MemoryBytes: gib}},
		{T2, CollectorHost, Badger, 2, Limits{CPUSet: []int{0, 1}, CPUShares: 512, MemoryBytes: 5 * gib}},
		{Hard, DatabaseHost, Cassandra, 2, Limits{CPUs: 0.5, MemoryBytes: 3 * gib / 2}},
		{Hard, CollectorHost, Cassandra, 2, Limits{CPUs: 1, MemoryBytes: gib}},
		{Hard, CollectorHost, Memory, 2, Limits{CPUs: 2, MemoryBytes: 5 * gib}},
		{None, DatabaseHost, Cassandra, 2, Limits{}},
	} {
		if diff := cmp.Diff(c.want, LimitsFor(c.profile, c.host, c.engine, c.cpus)); diff != "" {
			t.Errorf("%v %v %v on %d CPUs: %s", c.profile, c.host, c.engine, c.cpus, diff)
		}
	}
	if Overcommitted(T2, 5) || !Overcommitted(T2, 4) || Overcommitted(None, 1) {
		t.Error("overcommitted must mean: fewer CPUs than the profile's five")
	}
}

// Whatever is typed, reading it ends in a spec or in an error that names the variable.
func TestAnyValueIsAcceptedOrNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(Settings()).Draw(t, "name").Name
		value := rapid.StringMatching(`[ -~]{1,20}`).Draw(t, "value")
		if _, err := FromEnv([]string{name + "=" + value}); err != nil && !strings.Contains(err.Error(), name) {
			t.Fatalf("%s=%q: the error does not name it: %v", name, value, err)
		}
	})
}
