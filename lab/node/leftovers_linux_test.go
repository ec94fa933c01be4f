package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A pid that another program got meanwhile is not touched.
func TestAReusedPIDIsLeftAlone(t *testing.T) {
	t.Setenv("LAB_CACHE", t.TempDir())
	s, err := newRunState(runOwner{RunID: "reused"})
	if err != nil {
		t.Fatal(err)
	}
	bystander := exec.Command(os.Args[0], "as", "stubborn")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	id, err := processStart(bystander.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	s.owner.Lab.Start = "1" // the lab that owned it is gone
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(filepath.Join("/proc", "self", "stat"))
	if err != nil {
		t.Skip("SKIPPED, needs /proc: ", err)
	}
	_, rest, _ := cutLast(string(line), ")")
	other := strings.Replace(rest, strings.Fields(rest)[19], "12345", 1)
	entry := strconv.Itoa(id.PID) + " (x)" + other
	if err := os.WriteFile(s.nodeFile("x"), []byte(entry), 0o644); err != nil {
		t.Fatal(err)
	}
	if told, err := sweepRuns(t.Context(), All); err != nil || strings.Contains(strings.Join(told, " "), "process") {
		t.Errorf("told %q, %v", told, err)
	}
	if !id.alive() {
		t.Error("a process that was never the lab's was ended")
	}
}
