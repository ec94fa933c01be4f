package spec

import (
	"strings"
	"testing"
)

func aimed(t *testing.T, file string, more ...string) (Spec, error) {
	t.Helper()
	path := targetFile(t, file)
	writeBeside(t, path, "ca.pem")
	return FromEnv(append([]string{"LAB_TARGET=" + path}, more...))
}

// TestTargetIsTheOneArm: named after the target, without limits, its load node a process; nothing says
// how many nodes or copies it has.
func TestTargetIsTheOneArm(t *testing.T) {
	s, err := aimed(t, goodTarget, "LAB_RUNTIME=auto", "LAB_PROFILE=none", "LAB_KEEP=0")
	if err != nil {
		t.Fatal(err)
	}
	s, left, err := s.On(Process, "darwin")
	if err != nil || len(left) > 0 {
		t.Fatalf("left out %v, %v", left, err)
	}
	arms := s.Arms()
	if len(arms) != 1 || arms[0].Name() != "target:staging otlp-grpc" || arms[0].Profile != None || s.Runtime != Process ||
		arms[0].Replication != 0 || arms[0].Backend != (Backend{Engine: Cassandra}) || arms[0].Collector != "v2" {
		t.Errorf("arms %+v, runtime %s", arms, s.Runtime)
	}
	s, err = aimed(t, goodTarget, "LAB_CLIENT=otlp-grpc,thrift-http")
	if err != nil || len(s.Arms()) != 2 {
		t.Errorf("two clients: %+v, %v", s.Arms(), err)
	}
}

// TestBesideATarget: what the lab would start has no meaning then, and is refused by name, all at once
// with every other fault.
func TestBesideATarget(t *testing.T) {
	_, err := aimed(t, goodTarget, "LAB_BACKENDS=badger", "LAB_COLLECTOR=v1", "LAB_RUNTIME=docker", "LAB_PROFILE=hard", "LAB_KEEP=1",
		"LAB_REPLICATION=2", "LAB_IMAGE_SCYLLA=x", "LAB_CLIENT=thrift-udp", "LAB_ROUNDS=0")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`LAB_BACKENDS="badger": not with LAB_TARGET`, `LAB_COLLECTOR="v1"`, `LAB_RUNTIME="docker"`, `LAB_PROFILE="hard"`,
		`LAB_KEEP="1"`, `LAB_REPLICATION="2"`, `LAB_IMAGE_SCYLLA="x"`, `LAB_ROUNDS="0"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no complaint with %q in:\n%v", want, err)
		}
	}
	_, err = aimed(t, goodTarget, "LAB_CLIENT=otlp-http")
	if err == nil || !strings.Contains(err.Error(), `LAB_CLIENT="otlp-http"`) || !strings.Contains(err.Error(), "otlp-grpc, thrift-http") {
		t.Errorf("a client that the target has no port for: %v", err)
	}
	if _, err := FromEnv([]string{"LAB_TARGET_CONFIRM=1x1"}); err == nil || !strings.Contains(err.Error(), "LAB_TARGET") {
		t.Errorf("a confirmation of nothing: %v", err)
	}
	if _, err := FromEnv([]string{"LAB_TARGET=/no/such/file"}); err == nil || !strings.Contains(err.Error(), `LAB_TARGET="/no/such/file"`) {
		t.Errorf("no such file: %v", err)
	}
	if _, err := aimed(t, strings.Replace(goodTarget, "keyspace: jaegerlab", "", 1)); err == nil || !strings.Contains(err.Error(), "cql.keyspace") {
		t.Errorf("a missing field: %v", err)
	}
}

// TestRemoteTargetIsConfirmed: by rate and seconds of one run, warm-up included, before anything starts.
func TestRemoteTargetIsConfirmed(t *testing.T) {
	remote := strings.Replace(goodTarget, "127.0.0.1:4317", "otel.example:4317", 1)
	for _, c := range []struct {
		more []string
		want string
	}{
		{nil, "set RATE"},
		{[]string{"RATE=0:500:30", "LAB_TARGET_CONFIRM=500x60"}, "set RATE"},
		{[]string{"RATE=500"}, "accepted: 500x60"},
		{[]string{"RATE=500", "LAB_WARMUP_S=5", "LAB_TARGET_CONFIRM=500x60"}, "accepted: 500x65"},
		{[]string{"RATE=500", "LAB_WARMUP_S=5", "LAB_TARGET_CONFIRM=500x65", "LAB_ROUNDS=5"}, ""},
	} {
		_, err := aimed(t, remote, c.more...)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.more, err, c.want)
		}
	}
}
