//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"jaegerlab/lab/spec"
)

// containerNode is one program in a container.
type containerNode struct {
	runtime *containers
	program Program
	name    string // of the container
	log     string
	done    chan struct{}

	id     string            // of the container, once created
	ports  map[string]string // port name -> 127.0.0.1:port
	group  *cgroup           // on this machine; nil where the daemon's cgroups can't be seen
	output *follower

	mu       sync.Mutex
	running  bool // it is watched: done will be closed
	stopping bool
	exit     string
	last     Usage
	limits   *spec.Limits
}

// create makes and starts the container, and watches it. On an error the caller removes it.
func (n *containerNode) create(ctx context.Context, exposed []string) error {
	request, err := n.runtime.request(n.program, n.name, exposed)
	if err != nil {
		return err
	}
	_, err = testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: request, Started: true, Logger: quietLogger{},
	})
	if err != nil {
		return fmt.Errorf("run image %s: %w", n.program.Binary.Image, err)
	}
	inspected, err := n.runtime.client.ContainerInspect(ctx, n.name, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("inspect container %s: %w", n.name, err)
	}
	n.id = inspected.Container.ID
	if n.ports, err = publishedPorts(n.program, inspected.Container); err != nil {
		return err
	}
	if state := inspected.Container.State; state != nil {
		n.group = containerGroup(state.Pid, n.id)
	}
	if n.output, err = follow(n.runtime.client, n.id, n.log); err != nil {
		return err
	}
	n.mu.Lock()
	n.running = true
	n.mu.Unlock()
	go n.watch()
	return nil
}

// watched reports whether the node came as far as to run.
func (n *containerNode) watched() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running
}

// publishedPorts reads where the daemon published each port; a container that has died already
// has none.
func publishedPorts(p Program, inspected container.InspectResponse) (map[string]string, error) {
	ports := map[string]string{}
	for _, port := range p.Ports {
		key, err := network.ParsePort(portName(port))
		if err != nil {
			return nil, fmt.Errorf("port %s: %w", port.Name, err)
		}
		if inspected.NetworkSettings == nil {
			continue
		}
		for _, binding := range inspected.NetworkSettings.Ports[key] {
			if binding.HostIP.Is4() {
				ports[port.Name] = net.JoinHostPort(binding.HostIP.String(), binding.HostPort)
			}
		}
		running := inspected.State != nil && inspected.State.Running
		if ports[port.Name] == "" && running {
			return nil, fmt.Errorf("port %s (%s): the daemon published it on no IPv4 address", port.Name, key)
		}
	}
	return ports, nil
}

// watch samples usage until the container ends or the daemon is gone, then completes the log and
// closes done.
func (n *containerNode) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		n.sample(ctx)
	}()
	exit, oom := n.waitExit(ctx)
	cancel()
	<-sampled
	n.output.complete(n.runtime.isLost())
	n.mu.Lock()
	n.exit = exit
	if oom && (n.last.OOMKills == nil || *n.last.OOMKills == 0) {
		kills := int64(1) // at least; its cgroup is gone
		n.last.OOMKills = &kills
	}
	n.mu.Unlock()
	close(n.done)
}

// sample keeps a recent usage, since a container's cgroup goes with it.
func (n *containerNode) sample(ctx context.Context) {
	pause := time.Second
	if n.group == nil {
		pause = 5 * time.Second // asking the daemon costs more than reading files
	}
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	n.keepLimits(ctx)
	for {
		_, _ = n.readNow(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// keepLimits reads the limits once, so that they are known after the container's end.
func (n *containerNode) keepLimits(ctx context.Context) {
	limits, err := n.readLimits(ctx)
	if err != nil || limits == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.limits = limits
}

// waitExit waits until the container has ended or the daemon is lost.
func (n *containerNode) waitExit(ctx context.Context) (exit string, oom bool) {
	for {
		result := n.runtime.client.ContainerWait(ctx, n.id,
			client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case <-n.runtime.lost:
			return "unknown: the Docker daemon stopped answering: " + n.runtime.lostWhy, false
		case <-result.Result:
			return n.inspectExit(ctx)
		case err := <-result.Error:
			if errdefs.IsNotFound(err) {
				return "its container was removed by somebody else", false
			}
		}
		if !n.pauseUnlessLost(time.Second) { // the daemon restarts, or is gone: the heartbeat finds out
			return "unknown: the Docker daemon stopped answering: " + n.runtime.lostWhy, false
		}
	}
}

func (n *containerNode) pauseUnlessLost(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-n.runtime.lost:
		return false
	case <-timer.C:
		return true
	}
}

const exitSIGKILL = 128 + 9

// inspectExit reads how the container ended. The daemon may learn of an OOM kill a moment after
// the exit, so a SIGKILL that the lab did not ask for is looked at twice.
func (n *containerNode) inspectExit(ctx context.Context) (string, bool) {
	for look := 0; ; look++ {
		inspected, err := n.runtime.client.ContainerInspect(ctx, n.id, client.ContainerInspectOptions{})
		if err != nil || inspected.Container.State == nil {
			return fmt.Sprintf("unknown: inspect container %s: %v", n.name, err), false
		}
		state := inspected.Container.State
		surprise := state.ExitCode == exitSIGKILL && !state.OOMKilled && n.program.Limits.MemoryBytes > 0 && !n.asked()
		if surprise && look < 5 && n.pauseUnlessLost(200*time.Millisecond) {
			continue
		}
		return n.containerExit(state), state.OOMKilled
	}
}

func (n *containerNode) containerExit(state *container.State) string {
	text := fmt.Sprintf("exit status %d", state.ExitCode)
	oom := "out of memory"
	if limit := n.program.Limits.MemoryBytes; limit > 0 {
		oom += " at its limit of " + formatBytes(limit)
	}
	switch {
	case state.OOMKilled && state.ExitCode == exitSIGKILL:
		return "killed: " + oom
	case state.ExitCode == exitSIGKILL:
		text = "killed by SIGKILL (exit status 137)"
	case state.ExitCode == 128+15:
		text = "killed by SIGTERM (exit status 143)"
	}
	if state.OOMKilled {
		text += "; a process of it was killed: " + oom
	}
	if state.Error != "" {
		text += ": " + state.Error
	}
	if n.asked() {
		text += ", as the lab asked"
	}
	return text
}

func (n *containerNode) asked() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopping
}

// Name implements Node.
func (n *containerNode) Name() string { return n.program.Name }

// Program implements Node.
func (n *containerNode) Program() Program { return n.program }

// Addr implements Node.
func (n *containerNode) Addr(port string) string { return n.ports[port] }

// PeerAddr implements Node.
func (n *containerNode) PeerAddr(port string) string {
	for _, p := range n.program.Ports {
		if p.Name == port {
			return net.JoinHostPort(n.program.Name, fmt.Sprint(p.Number))
		}
	}
	return ""
}

// PeerHost implements Node.
func (n *containerNode) PeerHost() string { return n.program.Name }

// Done implements Node.
func (n *containerNode) Done() <-chan struct{} { return n.done }

// Exit implements Node.
func (n *containerNode) Exit() string {
	if !ended(n) {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.exit
}

// LogFile implements Node.
func (n *containerNode) LogFile() string { return n.log }

// Tail implements Node.
func (n *containerNode) Tail(lines int) string { return tail(n.log, lines) }

// lastLog is the tail of a failed start, for its error.
func (n *containerNode) lastLog() string {
	if n.output != nil {
		n.output.complete(n.runtime.isLost())
	} else if n.runtime.client != nil {
		_ = fetchLog(n.runtime.client, n.name, n.log) // never started: there may be none
	}
	if text := n.Tail(waitTailLines); text != "" {
		return fmt.Sprintf("\nlast lines of %s:\n%s", n.log, text)
	}
	return ""
}

// Stop implements Node.
func (n *containerNode) Stop(ctx context.Context) error { return n.end(ctx, n.program.Grace) }

// Kill implements Node.
func (n *containerNode) Kill(ctx context.Context) error { return n.end(ctx, 0) }

func (n *containerNode) end(ctx context.Context, grace time.Duration) error {
	n.mu.Lock()
	n.stopping = true
	n.mu.Unlock()
	if ended(n) {
		return nil
	}
	_, _ = n.readNow(ctx) // the last chance: its cgroup goes with it
	bounded, cancel := context.WithTimeout(context.Background(), grace+stopBound)
	defer cancel()
	if grace > 0 {
		_ = n.Resume(bounded) // a paused program gets the polite signal only when it runs
		go n.politely(bounded, grace)
		waitDone(ctx, n, grace)
	}
	if !ended(n) {
		_, err := n.runtime.client.ContainerKill(bounded, n.id, client.ContainerKillOptions{Signal: "KILL"})
		if !waitDone(bounded, n, stopBound) {
			return fmt.Errorf("stop %s: container %s is still there %s after SIGKILL: %w", n.Name(), n.name, stopBound, err)
		}
	}
	if n.runtime.isLost() {
		return fmt.Errorf("stop %s: the Docker daemon stopped answering; it may still hold container %s", n.Name(), n.name)
	}
	return nil
}

// politely sends the image's own stop signal, as docker stop does.
func (n *containerNode) politely(ctx context.Context, grace time.Duration) {
	seconds := int(grace/time.Second) + 1 // the daemon kills then; end does so earlier
	_, _ = n.runtime.client.ContainerStop(ctx, n.id, client.ContainerStopOptions{Timeout: &seconds})
}

const stopBound = 10 * time.Second // the daemon reaps, saves the log and answers

// Pause implements Node.
func (n *containerNode) Pause(ctx context.Context) error {
	if _, err := n.runtime.client.ContainerPause(ctx, n.id, client.ContainerPauseOptions{}); err != nil {
		return fmt.Errorf("pause %s: %w", n.Name(), err)
	}
	return nil
}

// Resume implements Node.
func (n *containerNode) Resume(ctx context.Context) error {
	inspected, err := n.runtime.client.ContainerInspect(ctx, n.id, client.ContainerInspectOptions{})
	if err == nil && inspected.Container.State != nil && !inspected.Container.State.Paused {
		return nil
	}
	if err == nil {
		_, err = n.runtime.client.ContainerUnpause(ctx, n.id, client.ContainerUnpauseOptions{})
	}
	if err != nil {
		return fmt.Errorf("resume %s: %w", n.Name(), err)
	}
	return nil
}

var errNotRead = errors.New("neither its cgroup nor the daemon's statistics can be read")
