// Package testrun gives integration tests of every step a runtime that is ended with the test, and the
// programs that setup has made. It stands beside the flow and skips, by name, where one is missing.
package testrun

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jaegerlab/lab/internal/need"
	"jaegerlab/lab/node"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
)

// closeWithin bounds the tear-down on a busy machine.
const closeWithin = time.Minute

// Up needs programs, as package setup names them, in one runtime. It returns the runtime, closed
// at the test's end, and the catalogue's look-up.
func Up(t testing.TB, where spec.Runtime, programs ...string) (node.Runtime, func(string) (node.Binary, error)) {
	t.Helper()
	if testing.Short() {
		t.Skip(need.Reason + "time: not with -short")
	}
	if where == spec.Docker {
		need.Docker(t)
	}
	catalog, err := setup.Find(t.Context(), where, nil)
	if err != nil {
		t.Fatal(err)
	}
	if absent := catalog.Missing(programs...); len(absent) > 0 {
		if where == spec.Docker && os.Getenv(need.RequireDocker) == "1" {
			t.Fatalf("%s=1, but %s", need.RequireDocker, absent[0])
		}
		t.Skip(need.Reason + absent[0].String())
	}
	return Runtime(t, where), catalog.Binary
}

// Runtime starts a runtime that is closed at the test's end.
func Runtime(t testing.TB, where spec.Runtime) node.Runtime {
	t.Helper()
	runtime, err := start(t, where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		if err := runtime.Close(ctx); err != nil {
			t.Errorf("close the runtime: %v", err)
		}
	})
	return runtime
}

func start(t testing.TB, where spec.Runtime) (node.Runtime, error) {
	id := fmt.Sprintf("test%x", time.Now().UnixNano()) // names of containers and control groups are made of it
	ctx := context.Background()                        // a runtime outlives the test's context; its cleanup ends it
	if where == spec.Docker {
		return node.NewDocker(ctx, node.DockerOptions{RunID: id, LogDir: t.TempDir()})
	}
	return node.NewProcess(ctx, node.ProcessOptions{RunID: id, Dir: filepath.Join(t.TempDir(), "run")})
}
