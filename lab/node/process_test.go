//go:build unix

package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jaegerlab/lab/spec"
)

// Case 35: nothing of the output of a program that dies at once is lost.
func TestEveryLineOfAProgramThatExitsAtOnceIsSaved(t *testing.T) {
	r := newRuntime(t)
	n := start(t, r, Program{Name: "lines", Args: []string{"as", "lines", "10000", "3"}})
	awaitDone(t, n)
	log, err := os.ReadFile(n.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(log), "\n"), "\n")
	if len(lines) != 10000 || lines[9999] != "line 9999" {
		t.Errorf("%d lines, last %q", len(lines), lines[len(lines)-1])
	}
	if n.Exit() != "exit status 3" {
		t.Errorf("exit %q", n.Exit())
	}
	if got := n.Tail(2); got != "line 9998\nline 9999" {
		t.Errorf("tail %q", got)
	}
	usage, err := n.Read(t.Context())
	if err != nil || usage.CPUSeconds == nil || usage.MemoryPeakBytes == nil {
		t.Errorf("last usage %+v, %v: not kept at death", usage, err)
	}
}

// A program that ignores the polite signal is killed after its grace, with its whole group.
func TestStubbornProgramIsKilledAfterItsGrace(t *testing.T) {
	r := newRuntime(t)
	n := start(t, r, Program{Name: "stubborn", Args: []string{"as", "stubborn"}, Grace: 100 * time.Millisecond})
	await(t, n, "ready")
	if n.Exit() != "" {
		t.Errorf("exit while it runs: %q", n.Exit())
	}
	before := time.Now()
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(before); took < 100*time.Millisecond {
		t.Errorf("killed after %s, before its grace", took)
	}
	if !strings.Contains(n.Exit(), "SIGKILL") || !strings.Contains(n.Exit(), "as the lab asked") {
		t.Errorf("exit %q", n.Exit())
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

func TestStopWithCancelledContextKillsAtOnce(t *testing.T) {
	r := newRuntime(t)
	n := start(t, r, Program{Name: "stubborn", Args: []string{"as", "stubborn"}, Grace: time.Minute})
	await(t, n, "ready")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	awaitDone(t, n)
}

// Death from outside is noticed and named.
func TestDeathIsNoticedWithItsSignal(t *testing.T) {
	r := newRuntime(t)
	n := start(t, r, Program{Name: "victim", Args: []string{"as", "stubborn"}})
	await(t, n, "ready")
	if err := syscall.Kill(n.(*processNode).pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitDone(t, n)
	if n.Exit() != "killed by SIGKILL (killed)" {
		t.Errorf("exit %q", n.Exit())
	}
	err := Wait(t.Context(), "its answer", time.Minute, n, func(context.Context) error { return fmt.Errorf("refused") })
	if err == nil || !strings.Contains(err.Error(), "victim has ended") || !strings.Contains(err.Error(), "ready") {
		t.Errorf("a wait on a dead node says: %v", err)
	}
}

// A grandchild dies with its node, in the node's group or (where cgroups or /proc tell) out of it.
func TestGrandchildDiesToo(t *testing.T) {
	for _, kind := range []string{"group", "session"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "session" && runtime.GOOS != "linux" {
				t.Skip("SKIPPED, needs Linux: elsewhere a process that left its group is not found")
			}
			r := newRuntime(t)
			n := start(t, r, Program{Name: "parent", Args: []string{"as", "parent", kind}})
			await(t, n, "child")
			child := childPID(t, n.Tail(1))
			if err := n.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !waitGone(child) {
				t.Errorf("grandchild %d lives on", child.PID)
			}
		})
	}
}

func childPID(t *testing.T, line string) processID {
	t.Helper()
	fields := strings.Fields(line)
	pid, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		t.Fatal(err)
	}
	id, err := processStart(pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestPauseAndResume(t *testing.T) {
	r := newRuntime(t)
	n := start(t, r, Program{Name: "sleeper", Args: []string{"as", "stubborn"}, Grace: 50 * time.Millisecond})
	await(t, n, "ready")
	if err := n.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Errorf("stop of a paused node: %v", err)
	}
}

// Case 31: a free port that another program grabs before the child binds it leads to new ports
// and one retry, as the same node.
func TestPortRaceIsRetriedOnceOnNewPorts(t *testing.T) {
	r := newRuntime(t)
	mark := filepath.Join(t.TempDir(), "first")
	n := start(t, r, Program{
		Name: "racer", Ports: []Port{{Name: "http", Number: 80}},
		Args: []string{"as", "thief", "${ip}:${port.http}", mark},
	})
	await(t, n, "serving")
	first, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	if n.Addr("http") == string(first) {
		t.Errorf("still on the taken port %s: %s", first, n.Tail(20))
	}
	conn, err := net.Dial("tcp4", n.Addr("http"))
	if err != nil {
		t.Fatalf("new port: %v", err)
	}
	conn.Close()
	if !strings.Contains(n.Tail(10), "in use") {
		t.Errorf("the lost start is not in the log: %q", n.Tail(10))
	}
}

// Case 31: a fixed port that others hold is named with its owner.
func TestFixedPortTakenNamesItsOwner(t *testing.T) {
	r := newRuntime(t)
	holder := start(t, r, Program{
		Name: "holder", Ports: []Port{{Name: "cql", Number: 9042}}, Args: []string{"as", "listen", "${ip}:${port.cql}"},
	})
	await(t, holder, "serving")
	_, port, _ := net.SplitHostPort(holder.Addr("cql"))
	number, _ := strconv.Atoi(port)
	_, err := r.Start(t.Context(), Program{Name: "second", Binary: self(), Ports: []Port{{Name: "cql", Local: number}}})
	if err == nil {
		t.Fatal("a taken port was given")
	}
	pid := fmt.Sprint("pid ", holder.(*processNode).pid())
	for _, want := range []string{"start second", holder.Addr("cql"), pid, "listen"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestPortsOfOneProgramDiffer(t *testing.T) {
	ports, err := pickPorts(Program{Loopback: "127.0.0.1", Ports: []Port{
		{Name: "a"}, {Name: "b"}, {Name: "c", UDP: true}, {Name: "d"},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ports["a"] == ports["b"] || ports["a"] == ports["d"] || ports["b"] == ports["d"] || ports["c"] == 0 {
		t.Errorf("%v", ports)
	}
}

func TestChildrenGetACleanEnvironmentAndTheirFiles(t *testing.T) {
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	t.Setenv("JAVA_TOOL_OPTIONS", "-Dnot=wanted")
	r := newRuntime(t)
	n := start(t, r, Program{
		Name: "env", Args: []string{"as", "env"}, Env: []string{"WHERE=${dir}", "OWN=${env:X}"},
		Files: []File{{Name: "conf/a.yaml", Data: []byte("listen: ${ip}\nkeep: ${other}\n")}},
	})
	awaitDone(t, n)
	env := strings.Split(n.Tail(100), "\n")
	dir := filepath.Join(r.options.Dir, "env")
	for _, want := range []string{"LC_ALL=C", "WHERE=" + dir, "OWN=${env:X}"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s in %q", want, env)
		}
	}
	if strings.Contains(n.Tail(100), "not=wanted") {
		t.Error("the user's environment reached the child")
	}
	file, err := os.ReadFile(filepath.Join(dir, "conf/a.yaml"))
	if err != nil || string(file) != "listen: 127.0.0.1\nkeep: ${other}\n" {
		t.Errorf("file %q, %v", file, err)
	}
}

func TestBadProgramsAreRefused(t *testing.T) {
	r := newRuntime(t)
	for name, p := range map[string]Program{
		"make setup":  {Name: "none"},
		"not-there":   {Name: "none", Binary: Binary{Command: []string{"/usr/bin/not-there"}}},
		"${port.cql}": {Name: "none", Binary: self(), Args: []string{"${port.cql}"}},
	} {
		if _, err := r.Start(t.Context(), p); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q in: %v", name, err)
		}
	}
	start(t, r, Program{Name: "one", Args: []string{"as", "stubborn"}, Grace: time.Millisecond})
	if _, err := r.Start(t.Context(), Program{Name: "one", Binary: self()}); err == nil {
		t.Error("a second node of one name was started")
	}
}

// enforced skips where this machine lets no limits be set.
func enforced(t *testing.T, r *processes) {
	t.Helper()
	if why := Unenforced(r); why != "" {
		t.Skip("SKIPPED, needs writable cgroups: " + why)
	}
}

// Case 38: limits are read back from the kernel, not repeated from what was asked.
func TestLimitsAreReadBack(t *testing.T) {
	r := newRuntime(t)
	enforced(t, r)
	asked := spec.Limits{CPUSet: []int{0}, CPUShares: 512, CPUs: 0.5, MemoryBytes: 256 << 20}
	n := start(t, r, Program{Name: "limited", Args: []string{"as", "stubborn"}, Limits: asked, Grace: time.Millisecond})
	await(t, n, "ready")
	got, err := n.LimitsInForce(t.Context())
	if err != nil || got == nil {
		t.Fatalf("read back %v, %v", got, err)
	}
	if differences := notInForce(asked, got); len(differences) > 0 {
		t.Errorf("%q", differences)
	}
	free := start(t, r, Program{Name: "free", Args: []string{"as", "stubborn"}, Grace: time.Millisecond})
	got, err = free.LimitsInForce(t.Context())
	if err != nil || got == nil || got.CPUShares != 0 || len(got.CPUSet) != 0 {
		t.Errorf("unlimited node: %+v, %v", got, err)
	}
	usage, err := n.Read(t.Context())
	if known := figures(usage); err != nil || strings.Contains(known, "-") || *usage.MemoryBytes == 0 {
		t.Errorf("usage %s, %v", known, err)
	}
}

// Case 38: without permission nodes run, without limits, and that is what they say.
func TestWithoutCgroupsNothingIsClaimed(t *testing.T) {
	r := newRuntime(t)
	r.unenforced = "not on this machine"
	asked := spec.Limits{MemoryBytes: 1 << 30}
	n := start(t, r, Program{Name: "free", Args: []string{"as", "stubborn"}, Limits: asked, Grace: time.Millisecond})
	await(t, n, "ready")
	limits, err := n.LimitsInForce(t.Context())
	if err != nil || limits != nil || len(notInForce(asked, limits)) == 0 {
		t.Errorf("limits %v, %v", limits, err)
	}
	if Unenforced(r) == "" || r.Host().CgroupVersion != 0 {
		t.Errorf("%q, cgroup version %d", Unenforced(r), r.Host().CgroupVersion)
	}
	usage, err := n.Read(t.Context())
	if err != nil || usage.CPUSeconds == nil || usage.MemoryBytes == nil || *usage.MemoryBytes == 0 {
		t.Errorf("usage %s, %v", figures(usage), err)
	}
	if usage.ThrottledS != nil || usage.OOMKills != nil {
		t.Errorf("usage %s: claims what only a cgroup knows", figures(usage))
	}
	if err := n.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	usage, err = n.Read(t.Context())
	if err != nil || usage.CPUSeconds == nil || usage.MemoryPeakBytes == nil || *usage.MemoryPeakBytes == 0 {
		t.Errorf("last usage %+v, %v", usage, err)
	}
}

// A node started again under its name, as after a fault, keeps the log of its first life.
func TestSecondLifeHasItsOwnLog(t *testing.T) {
	r := newRuntime(t)
	first := start(t, r, Program{Name: "again", Args: []string{"as", "lines", "1", "0"}})
	awaitDone(t, first)
	second := start(t, r, Program{Name: "again", Args: []string{"as", "lines", "2", "0"}})
	awaitDone(t, second)
	if first.Tail(9) != "line 0" || second.Tail(9) != "line 0\nline 1" || first.LogFile() == second.LogFile() {
		t.Errorf("%s: %q, %s: %q", first.LogFile(), first.Tail(9), second.LogFile(), second.Tail(9))
	}
}

// Cases 12 and 24: a program that outgrows its memory limit is killed, and that is what it says.
func TestMemorySqueezeNamesTheLimit(t *testing.T) {
	r := newRuntime(t)
	enforced(t, r)
	n := start(t, r, Program{Name: "eater", Args: []string{"as", "eat"}, Limits: spec.Limits{MemoryBytes: 48 << 20}})
	awaitDone(t, n)
	if n.Exit() != "killed: out of memory at its limit of 48 MiB" {
		t.Errorf("exit %q", n.Exit())
	}
	usage, err := n.Read(t.Context())
	if err != nil || usage.OOMKills == nil || *usage.OOMKills == 0 {
		t.Errorf("usage %+v, %v", usage, err)
	}
	if limits, _ := n.LimitsInForce(t.Context()); limits == nil || limits.MemoryBytes != 48<<20 {
		t.Errorf("limits after death: %+v", limits)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	r := newRuntime(t)
	n := start(t, r, Program{Name: "stubborn", Args: []string{"as", "stubborn"}, Grace: time.Millisecond})
	await(t, n, "ready")
	id, err := processStart(n.(*processNode).pid())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(ctx); err != nil {
		t.Errorf("second close: %v", err)
	}
	if id.alive() || len(runGroups(r.options.RunID)) > 0 {
		t.Errorf("left: process %v, cgroups %v", id.alive(), runGroups(r.options.RunID))
	}
	for _, path := range []string{r.options.Dir, r.state.dir} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("left: %s", path)
		}
	}
	if _, err := os.Stat(n.LogFile()); err != nil {
		t.Errorf("its log is gone: %v", err)
	}
	if _, err := r.Start(t.Context(), Program{Name: "late", Binary: self()}); err == nil {
		t.Error("a node was started after close")
	}
}
