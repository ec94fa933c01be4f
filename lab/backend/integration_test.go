package backend_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/internal/need"
	"jaegerlab/lab/internal/testrun"
	"jaegerlab/lab/node"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/stack"
)

// lookUp finds programs as a run does, once for each runtime.
var lookUp = map[spec.Runtime]func() (func(string) (node.Binary, error), error){
	spec.Process: sync.OnceValues(func() (func(string) (node.Binary, error), error) { return catalog(spec.Process) }),
	spec.Docker:  sync.OnceValues(func() (func(string) (node.Binary, error), error) { return catalog(spec.Docker) }),
}

func catalog(runtime spec.Runtime) (func(string) (node.Binary, error), error) {
	found, err := setup.Find(context.Background(), runtime, nil)
	if err != nil {
		return nil, err
	}
	return func(program string) (node.Binary, error) {
		binary, err := found.Binary(program)
		if err != nil && program == setup.Scylla {
			return found.Binary(setup.ScyllaStandIn) // labelled by the engine's own evidence
		}
		return binary, err
	}, nil
}

// binaries skips a test that lacks a program; with LAB_REQUIRE_DOCKER it fails where Docker is
// what it needs.
func binaries(t testing.TB, runtime spec.Runtime, programs ...string) func(string) (node.Binary, error) {
	t.Helper()
	if testing.Short() {
		t.Skip(need.Reason + "time: not with -short")
	}
	find, err := lookUp[runtime]()
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		_, err := find(program)
		var absent *setup.AbsentError
		if errors.As(err, &absent) && !(runtime == spec.Docker && os.Getenv(need.RequireDocker) == "1") {
			t.Skipf("%s%s: %v", need.Reason, program, err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return find
}

// start brings a backend up in its own runtime, which ends with the test, with an empty store of
// this name. The schema is made as a run does: by the pinned Jaeger, early where that saves time.
func start(t testing.TB, runtime spec.Runtime, arm spec.Arm, name string, programs ...string,
) (backend.Cluster, backend.Env, backend.Store) {
	t.Helper()
	if runtime == spec.Docker {
		need.Docker(t)
	}
	env := backend.Env{Binary: binaries(t, runtime, programs...), Runtime: testrun.Runtime(t, runtime), Say: t.Logf}
	made := false
	env.First = func(ctx context.Context, c backend.Cluster) error {
		made = true
		return createSchema(ctx, c.Store(name), env, arm, name)
	}
	engine, err := backend.For(arm.Backend.Engine)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	cluster, err := engine.Start(t.Context(), env, arm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	t.Logf("%s: ready after %.1f s, with its schema %v", arm.Backend, time.Since(began).Seconds(), made)
	store := cluster.Store(name)
	if !made {
		err = createSchema(t.Context(), store, env, arm, name)
	}
	if err != nil {
		t.Fatal(err)
	}
	check(t, store)
	t.Logf("%s: ready for load after %.1f s", arm.Backend, time.Since(began).Seconds())
	return cluster, env, store
}

func createSchema(ctx context.Context, store backend.Store, env backend.Env, arm spec.Arm, name string) error {
	return stack.CreateSchema(ctx, stack.Env{Runtime: env.Runtime, Binary: env.Binary, Say: env.Say},
		stack.Ask{Arm: arm, Store: store, Name: "schema-" + name})
}

func check(t testing.TB, store backend.Store) {
	t.Helper()
	replication, err := store.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("replication: %s", replication)
}

func arm(t testing.TB, text string) spec.Arm {
	t.Helper()
	b, err := spec.ParseBackend(text)
	if err != nil {
		t.Fatal(err)
	}
	return spec.Arm{Backend: b, Collector: "v2", Client: "otlp-grpc", Profile: spec.T2, Replication: 1}
}
