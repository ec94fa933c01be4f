//go:build unix

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// DockerOptions says how the containers of one run are known.
type DockerOptions struct {
	RunID  string // in the label and in the names of containers and network; unique on the daemon
	LogDir string // folder of the nodes' logs, one <node>.log each
	Keep   bool   // Close leaves containers and network up; only Sweep with scope All ends them then
}

// Labels on every container and network of the lab. Clean-up goes by them alone.
const (
	labLabel   = "jaegerlab"       // "1"
	runLabel   = "jaegerlab.run"   // run id
	nodeLabel  = "jaegerlab.node"  // node's name
	ownerLabel = "jaegerlab.owner" // the lab process, as JSON
	keepLabel  = "jaegerlab.keep"  // "1": the user asked to leave the run up
)

// containers is the docker runtime: one user network, one label, ports on 127.0.0.1 only.
type containers struct {
	options DockerOptions
	client  *client.Client
	daemon  daemonFacts
	state   *runState
	labels  map[string]string
	network string // name

	lost     chan struct{} // closed when the daemon has stopped answering
	stopBeat context.CancelFunc
	lostWhy  string

	mu     sync.Mutex
	nodes  map[string]*containerNode
	closed bool
}

// NewDocker makes the runtime that starts containers, with a network of its own. The error names
// the cause when no daemon answers or when Docker's address pools are used up.
func NewDocker(ctx context.Context, options DockerOptions) (Runtime, error) {
	if options.RunID == "" || options.LogDir == "" {
		return nil, errors.New("start docker runtime: a run id and a folder for logs are needed")
	}
	if err := os.MkdirAll(options.LogDir, 0o755); err != nil {
		return nil, fmt.Errorf("start docker runtime: create folder of logs: %w", err)
	}
	api, err := connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("start docker runtime: %w", err)
	}
	facts, err := askDaemon(ctx, api)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start docker runtime: %w", err), api.Close())
	}
	state, err := newRunState(runOwner{RunID: options.RunID, Runtime: spec.Docker})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start docker runtime: %w", err), api.Close())
	}
	r := &containers{
		options: options, client: api, daemon: facts, state: state, nodes: map[string]*containerNode{},
		lost: make(chan struct{}), network: "jaegerlab-" + options.RunID,
	}
	if r.labels, err = runLabels(state.owner, options.Keep); err == nil {
		err = r.createNetwork(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start docker runtime: %w", err), state.remove(), api.Close())
	}
	beat, stop := context.WithCancel(context.Background())
	r.stopBeat = stop
	go r.heartbeat(beat)
	return r, nil
}

func runLabels(owner runOwner, keep bool) (map[string]string, error) {
	text, err := json.Marshal(owner)
	if err != nil {
		return nil, fmt.Errorf("label of the run's owner: %w", err)
	}
	labels := map[string]string{labLabel: "1", runLabel: owner.RunID, ownerLabel: string(text)}
	if keep {
		labels[keepLabel] = "1"
	}
	return labels, nil
}

func (r *containers) createNetwork(ctx context.Context) error {
	_, err := r.client.NetworkCreate(ctx, r.network, client.NetworkCreateOptions{Driver: "bridge", Labels: r.labels})
	if err == nil {
		return nil
	}
	if !poolsUsedUp(err) {
		return fmt.Errorf("create network %s: %w", r.network, err)
	}
	all, listErr := r.client.NetworkList(ctx, client.NetworkListOptions{})
	if listErr != nil {
		return fmt.Errorf("create network %s: %w", r.network, err)
	}
	return poolError(r.network, err, all.Items)
}

// poolsUsedUp recognises the daemon's texts for "no subnet left for another network".
func poolsUsedUp(err error) bool {
	text := err.Error()
	return strings.Contains(text, "fully subnetted") || strings.Contains(text, "non-overlapping IPv4 address pool")
}

func poolError(name string, cause error, networks []network.Summary) error {
	own := 0
	for _, n := range networks {
		if n.Labels[labLabel] != "" {
			own++
		}
	}
	return fmt.Errorf("create network %s: Docker's address pools are used up by %d networks, %d of them the lab's own "+
		"(jaegerlab clean removes these; docker network prune removes other unused ones): %w",
		name, len(networks), own, cause)
}

// Name implements Runtime.
func (r *containers) Name() spec.Runtime { return spec.Docker }

// Host implements Runtime.
func (r *containers) Host() record.Host { return r.daemon.host }

// Start implements Runtime.
func (r *containers) Start(ctx context.Context, p Program) (Node, error) {
	n, err := r.start(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	return n, nil
}

func (r *containers) start(ctx context.Context, p Program) (*containerNode, error) {
	if p.Grace == 0 {
		p.Grace = defaultGrace
	}
	n := &containerNode{
		runtime: r, program: p, name: r.network + "-" + p.Name,
		done: make(chan struct{}),
	}
	image, err := r.client.ImageInspect(ctx, p.Binary.Image)
	if err != nil {
		return nil, imageError(p.Binary.Image, err)
	}
	exposed := []string{}
	if image.Config != nil {
		for port := range image.Config.ExposedPorts {
			exposed = append(exposed, port)
		}
	}
	if err := r.enlist(ctx, n); err != nil {
		return nil, err
	}
	if err := n.create(ctx, exposed); err != nil {
		err = fmt.Errorf("%w%s", err, n.lastLog())
		return nil, errors.Join(err, r.discard(n))
	}
	return n, nil
}

// enlist takes the node's name; the dead container of an earlier node of this name is removed.
func (r *containers) enlist(ctx context.Context, n *containerNode) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.New("this run's runtime is already closed")
	}
	old, taken := r.nodes[n.Name()]
	if taken && !ended(old) {
		return errors.New("a node of this name is running already")
	}
	if taken {
		if err := r.removeContainer(ctx, old.name); err != nil {
			return err
		}
	}
	n.log = freeLog(r.options.LogDir, n.Name())
	r.nodes[n.Name()] = n
	return nil
}

// discard removes what a failed start left.
func (r *containers) discard(n *containerNode) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeBound)
	defer cancel()
	r.mu.Lock()
	delete(r.nodes, n.Name())
	r.mu.Unlock()
	return r.removeContainer(ctx, n.name)
}

func (r *containers) removeContainer(ctx context.Context, name string) error {
	_, err := r.client.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !errdefs.IsNotFound(err) && !strings.Contains(err.Error(), "already in progress") {
		return fmt.Errorf("remove container %s: %w", name, err)
	}
	return nil
}

// Close implements Runtime.
func (r *containers) Close(context.Context) error {
	r.mu.Lock()
	already := r.closed
	r.closed = true
	nodes := make([]*containerNode, 0, len(r.nodes))
	for _, n := range r.nodes {
		nodes = append(nodes, n)
	}
	r.mu.Unlock()
	if already {
		return nil
	}
	defer r.client.Close()
	defer r.stopBeat()
	if r.options.Keep {
		return r.state.markKept()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()
	if ping(ctx, r.client) != nil { // it may have come back since it was lost
		return r.heldError(nodes)
	}
	var wait sync.WaitGroup
	for _, n := range nodes {
		if n.watched() {
			wait.Go(func() { _ = n.Kill(ctx) }) // its log is complete before its container goes
		}
	}
	wait.Wait()
	if err := r.removeAll(ctx); err != nil {
		return fmt.Errorf("close run %s: %w", r.options.RunID, err)
	}
	return r.state.remove()
}

// removeAll removes by label whatever the run has, also a container that was being made.
func (r *containers) removeAll(ctx context.Context) error {
	found, err := labelled(ctx, r.client, runLabel+"="+r.options.RunID)
	errs := []error{err}
	var wait sync.WaitGroup
	var mu sync.Mutex
	for _, one := range found {
		if one.kind != "container" {
			continue
		}
		wait.Go(func() {
			err := r.removeContainer(ctx, one.name)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wait.Wait()
	errs = append(errs, removeNetwork(ctx, r.client, r.network))
	return errors.Join(errs...)
}

// heldError names what a daemon that no longer answers still holds.
func (r *containers) heldError(nodes []*containerNode) error {
	held := []string{"network " + r.network}
	for _, n := range nodes {
		held = append(held, "container "+n.name)
	}
	slices.Sort(held)
	return fmt.Errorf("close run %s: the Docker daemon does not answer; it still holds %s; the next start removes them",
		r.options.RunID, strings.Join(held, ", "))
}

func removeNetwork(ctx context.Context, api *client.Client, name string) error {
	return Wait(ctx, "removal of network "+name, networkBound, nil, func(ctx context.Context) error {
		_, err := api.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
		if errdefs.IsNotFound(err) {
			return nil
		}
		return err // "has active endpoints" for a moment after its last container went
	})
}

const (
	removeBound  = 10 * time.Second
	closeBound   = 60 * time.Second
	networkBound = 20 * time.Second // a busy daemon detaches endpoints late
)
