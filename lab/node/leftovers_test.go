//go:build unix

package node

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// killedLab runs a lab process that has a node up and kills it with SIGKILL, now or by end.
func killedLab(t *testing.T, runID, dir string, kill bool) (end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "as", "owner", runID, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	if !scanner.Scan() || !strings.HasPrefix(scanner.Text(), "up ") || !strings.HasSuffix(scanner.Text(), "<nil>") {
		t.Fatalf("owner says %q", scanner.Text())
	}
	end = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	if kill {
		end()
	}
	return end
}

// Case 28 (b): data of an earlier run, of a cluster with another name perhaps, is never taken over.
func TestAFolderWithDataOfAnEarlierRunIsRefused(t *testing.T) {
	t.Setenv("LAB_CACHE", t.TempDir())
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "cassandra-1", "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := NewProcess(t.Context(), ProcessOptions{RunID: "b", Dir: dir})
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "cassandra-1") {
		t.Errorf("NewProcess() = %v; want the folder and what is in it", err)
	}
}

// Case 28: what a killed lab leaves is found and ended by the next start, and named; the nodes of
// a live lab are left alone.
func TestLeftoversOfAKilledLabAreEndedAndNamed(t *testing.T) {
	t.Setenv("LAB_CACHE", t.TempDir())
	dead, live := filepath.Join(t.TempDir(), "dead"), filepath.Join(t.TempDir(), "live")
	suffix := filepath.Base(filepath.Dir(t.TempDir()))
	killedLab(t, "dead"+suffix, dead, true)
	end := killedLab(t, "live"+suffix, live, false)
	defer func() {
		end()
		if told, err := sweepRuns(t.Context(), Dead); err != nil || len(told) == 0 || left(t) > 0 {
			t.Errorf("sweep after the live lab's death: %q, %v", told, err)
		}
	}()

	states, err := runStates()
	if err != nil || len(states) != 2 {
		t.Fatalf("%d runs on record, %v", len(states), err)
	}
	onRecord := map[string]processID{}
	for _, s := range states {
		for _, n := range s.nodes() {
			onRecord[s.owner.RunID] = n.id
		}
	}
	if !onRecord["dead"+suffix].alive() || !onRecord["live"+suffix].alive() {
		t.Fatalf("nodes on record are not running: %v", onRecord)
	}
	told, err := sweepRuns(t.Context(), Dead)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(told, "\n")
	named := strings.Contains(text, "process left of run dead"+suffix) && strings.Contains(text, dead)
	if !named || strings.Contains(text, "live"+suffix) {
		t.Errorf("told %q", told)
	}
	if of := onRecord["dead"+suffix]; of.alive() {
		t.Errorf("the dead run's node lives on: %v", of)
	}
	if of := onRecord["live"+suffix]; !of.alive() {
		t.Errorf("the live run's node was ended: %v", of)
	}
	if pids := marked("dead" + suffix); len(pids) > 0 {
		t.Errorf("grandchildren live on: %v", pids)
	}
	if again, err := sweepRuns(t.Context(), Dead); err != nil || len(again) > 0 {
		t.Errorf("second sweep: %q, %v", again, err)
	}
}

// LAB_KEEP: nodes stay up after Close, the next start leaves them, clean ends them.
func TestKeptStackIsEndedByCleanOnly(t *testing.T) {
	r := newRuntime(t)
	r.options.Keep = true
	n := start(t, r, Program{Name: "kept", Args: []string{"as", "stubborn"}, Grace: time.Millisecond})
	await(t, n, "ready")
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := sweepRuns(t.Context(), Dead); err != nil || ended(n) {
		t.Fatalf("a kept node was ended: %v, %v", ended(n), err)
	}
	told, err := sweepRuns(t.Context(), All)
	if err != nil || !strings.Contains(strings.Join(told, "\n"), "process kept") {
		t.Errorf("told %q, %v", told, err)
	}
	awaitDone(t, n)
	r.options.Keep = false
}

func left(t *testing.T) int {
	t.Helper()
	states, err := runStates()
	if err != nil {
		t.Fatal(err)
	}
	return len(states)
}
