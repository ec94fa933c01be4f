// Package need says what a test can't do without, and skips it by name and with a reason where
// that is missing, so that the number of skipped tests can be counted. It serves tests of every
// step.
package need

import (
	"context"
	"os"
	"testing"
	"time"

	"jaegerlab/lab/node"
)

// Reason begins the text of every skip, so that `go test -v` output can be counted by it.
const Reason = "SKIPPED, needs "

// RequireDocker is the environment variable that makes missing Docker a failure, for CI.
const RequireDocker = "LAB_REQUIRE_DOCKER"

// notShort skips under -short, which is for what takes seconds and needs nothing.
func notShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		skip(t, "time", "not with -short")
	}
}

func skip(t testing.TB, what, why string) {
	t.Helper()
	t.Skipf("%s%s: %s", Reason, what, why)
}

// Docker needs a Docker daemon that answers. With LAB_REQUIRE_DOCKER=1 a missing one fails the test.
func Docker(t testing.TB) {
	t.Helper()
	notShort(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := node.DockerAnswers(ctx)
	if err == nil {
		return
	}
	if os.Getenv(RequireDocker) == "1" {
		t.Fatalf("%s=1, but no Docker daemon answers: %v", RequireDocker, err)
	}
	skip(t, "Docker", err.Error())
}

// Built needs a program that make setup builds; find gives its path, or says what is missing.
func Built(t testing.TB, find func(context.Context) (string, error)) string {
	t.Helper()
	notShort(t)
	path, err := find(context.Background())
	if err != nil {
		skip(t, "a built program", err.Error())
	}
	return path
}

// Limits needs a machine where this user may set limits on processes.
func Limits(t testing.TB, r node.Runtime) {
	t.Helper()
	if why := node.Unenforced(r); why != "" {
		skip(t, "limits", why)
	}
}
