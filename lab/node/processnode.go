//go:build unix

package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"jaegerlab/lab/spec"
)

// processNode is one program as a plain process. A program that loses the race for a free port
// is started once more on other ports; that is the same node.
type processNode struct {
	runtime *processes
	program Program
	dir     string
	log     string
	done    chan struct{}

	mu       sync.Mutex
	ports    map[string]int
	group    *cgroup // nil where limits can't be enforced
	cmd      *exec.Cmd
	started  time.Time
	logFrom  int64 // where this start's output begins in the log
	retried  bool
	stopping bool   // the lab asked it to end
	exit     string // how it ended
	last     Usage  // kept at death
	limits   *spec.Limits
}

// launch starts the program on fresh ports and watches it.
func (n *processNode) launch() error {
	ports, err := pickPorts(n.program, n.runtime.portsInUse())
	if err != nil {
		return err
	}
	places := placeholders{ip: n.program.Loopback, host: n.program.Loopback, dir: n.dir, ports: ports}
	cmd, err := n.command(places)
	if err != nil {
		return err
	}
	output, err := os.OpenFile(n.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer output.Close() // the child holds its own descriptor
	logFrom, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	cmd.Stdout, cmd.Stderr = output, output
	group, err := n.newGroup()
	if err != nil {
		return err
	}
	wrap(cmd, n.runtime.state.nodeFile(n.Name()), group)

	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopping {
		return n.abandon(group, fmt.Errorf("stopped before it ran"))
	}
	if err := cmd.Start(); err != nil {
		return n.abandon(group, fmt.Errorf("run %s: %w", n.program.Binary.Command[0], err))
	}
	n.ports, n.cmd, n.group, n.started, n.logFrom = ports, cmd, group, time.Now(), logFrom
	go n.watch(cmd, group)
	return nil
}

func (n *processNode) abandon(group *cgroup, cause error) error {
	_ = group.remove()
	n.runtime.state.forget(n.Name())
	return cause
}

// giveUp ends a node that never ran.
func (n *processNode) giveUp(cause error) {
	n.mu.Lock()
	n.exit = cause.Error()
	n.mu.Unlock()
	close(n.done)
}

// newGroup makes the node's cgroup with its limits; nil when limits can't be enforced here.
func (n *processNode) newGroup() (*cgroup, error) {
	if n.runtime.unenforcedReason() != "" {
		return nil, nil
	}
	group, err := newGroup(n.runtime.options.RunID, n.Name(), n.program.Limits)
	if err != nil {
		return nil, fmt.Errorf("set limits %s: %w", describeLimits(n.program.Limits), err)
	}
	return group, nil
}

// command writes the node's files and builds the command line with a clean environment.
func (n *processNode) command(places placeholders) (*exec.Cmd, error) {
	if len(n.program.Binary.Command) == 0 {
		return nil, fmt.Errorf("no executable for it on this machine (run: make setup)")
	}
	executable, err := exec.LookPath(n.program.Binary.Command[0])
	if err != nil {
		return nil, fmt.Errorf("find its executable: %w (run: make setup)", err)
	}
	if executable, err = filepath.Abs(executable); err != nil {
		return nil, fmt.Errorf("find its executable: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(n.dir, "tmp"), 0o755); err != nil {
		return nil, fmt.Errorf("create its folder: %w", err)
	}
	args, err := places.expandAll(n.program.Args)
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	env, err := places.expandAll(n.program.Env)
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	files, err := places.expandFiles(n.program.Files)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		path := filepath.Join(n.dir, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("write %s: %w", file.Name, err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			return nil, fmt.Errorf("write %s: %w", file.Name, err)
		}
	}
	cmd := exec.Command(executable, slices.Concat(n.program.Binary.Command[1:], args)...)
	cmd.Dir = n.dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "TMPDIR=" + filepath.Join(n.dir, "tmp"), "LC_ALL=C",
		runMarker + "=" + n.runtime.options.RunID,
	}, env...)
	return cmd, nil
}

// watch waits for the end, keeps the last usage, ends what the program left behind, and closes
// done, unless it died because another program took its port first.
func (n *processNode) watch(cmd *exec.Cmd, group *cgroup) {
	_ = cmd.Wait() // how it ended is in ProcessState
	_ = signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	usage := group.usage()
	if group == nil {
		usage = usageAtExit(cmd.ProcessState)
	}
	limits := group.limits(n.program.Limits, runtime.NumCPU())
	group.kill()
	_ = group.remove()
	n.runtime.state.forget(n.Name())

	n.mu.Lock()
	n.last, n.limits, n.group = usage, limits, nil
	again := n.lostPortRace(cmd.ProcessState)
	n.retried = n.retried || again
	exit := exitText(cmd.ProcessState, usage, limits, n.stopping)
	n.cmd = nil
	n.mu.Unlock()
	if again {
		err := n.launch()
		if err == nil {
			return
		}
		exit += "; started again on other ports: " + err.Error()
	}
	n.mu.Lock()
	n.exit = exit
	n.mu.Unlock()
	close(n.done)
}

// lostPortRace reports whether the program died soon after its start because a port that was
// free when it was picked had been taken meanwhile, and other ports may still be tried.
func (n *processNode) lostPortRace(state *os.ProcessState) bool {
	if n.retried || n.stopping || state.Success() || time.Since(n.started) > portRaceBound {
		return false
	}
	free := false
	for _, port := range n.program.Ports {
		free = free || port.Local == 0
	}
	return free && saysAddressInUse(tailFrom(n.log, n.logFrom, 200))
}

const portRaceBound = 60 * time.Second // a JVM under a small quota binds late

// Name implements Node.
func (n *processNode) Name() string { return n.program.Name }

// Program implements Node.
func (n *processNode) Program() Program { return n.program }

// Addr implements Node.
func (n *processNode) Addr(port string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, known := n.ports[port]
	if !known {
		return ""
	}
	return net.JoinHostPort(n.program.Loopback, strconv.Itoa(number))
}

// PeerAddr implements Node.
func (n *processNode) PeerAddr(port string) string { return n.Addr(port) }

// PeerHost implements Node.
func (n *processNode) PeerHost() string { return n.program.Loopback }

// Done implements Node.
func (n *processNode) Done() <-chan struct{} { return n.done }

// Exit implements Node.
func (n *processNode) Exit() string {
	if !ended(n) {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.exit
}

// Read implements Node.
func (n *processNode) Read(ctx context.Context) (Usage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.cmd == nil:
		return n.last, nil
	case n.group != nil:
		return n.group.usage(), nil
	}
	usage, err := usageOfProcess(ctx, n.cmd.Process.Pid)
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", n.Name(), err)
	}
	return usage, nil
}

// LimitsInForce implements Node.
func (n *processNode) LimitsInForce(context.Context) (*spec.Limits, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return n.limits, nil
	}
	return n.group.limits(n.program.Limits, runtime.NumCPU()), nil
}

// LogFile implements Node.
func (n *processNode) LogFile() string { return n.log }

// Tail implements Node.
func (n *processNode) Tail(lines int) string { return tail(n.log, lines) }

// Stop implements Node.
func (n *processNode) Stop(ctx context.Context) error { return n.end(ctx, n.program.Grace) }

// Kill implements Node.
func (n *processNode) Kill(ctx context.Context) error { return n.end(ctx, 0) }

// Pause implements Node.
func (n *processNode) Pause(context.Context) error { return n.signal(syscall.SIGSTOP) }

// Resume implements Node.
func (n *processNode) Resume(context.Context) error { return n.signal(syscall.SIGCONT) }

// end sends the polite signal, unless there is no grace, and kills after the grace or when ctx
// ends first. It returns when the program is gone.
func (n *processNode) end(ctx context.Context, grace time.Duration) error {
	n.mu.Lock()
	n.stopping = true
	n.mu.Unlock()
	if grace > 0 && !ended(n) {
		_ = n.signal(syscall.SIGTERM)
		_ = n.signal(syscall.SIGCONT) // a paused program gets the polite signal only when it runs
		waitDone(ctx, n, grace)
	}
	if ended(n) {
		return nil
	}
	_ = n.signal(syscall.SIGKILL)
	if !waitDone(context.Background(), n, killBound) {
		return fmt.Errorf("stop %s: still there %s after SIGKILL (pid %d)", n.Name(), killBound, n.pid())
	}
	return nil
}

func waitDone(ctx context.Context, n Node, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-n.Done():
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return ended(n)
}

// signal reaches the whole process group and whatever else is in the cgroup.
func (n *processNode) signal(sig syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return fmt.Errorf("signal %s: it has ended", n.Name())
	}
	err := signalGroup(n.cmd.Process.Pid, sig)
	n.group.signal(sig)
	if err != nil {
		return fmt.Errorf("signal %s: %w", n.Name(), err)
	}
	return nil
}

func (n *processNode) pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return 0
	}
	return n.cmd.Process.Pid
}

func (n *processNode) portNumbers() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	var numbers []int
	for _, number := range n.ports {
		numbers = append(numbers, number)
	}
	return numbers
}
