//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// ProcessOptions says where the nodes of one run live.
type ProcessOptions struct {
	RunID  string // names the run in the state folder and in cgroups; unique on the host
	Dir    string // the run's temporary folder; created here, removed by Close unless Keep
	LogDir string // folder of the nodes' logs, one <node>.log each; "" = Dir
	Keep   bool   // Close leaves the nodes up for a look; only Sweep with scope All ends them then
}

// processes is the runtime of plain processes: each node in its own process group and, where the
// kernel lets us, in its own cgroup.
type processes struct {
	options    ProcessOptions
	state      *runState
	unenforced string // why limits are not enforced; "" = they are

	mu     sync.Mutex
	nodes  map[string]*processNode
	closed bool
}

// NewProcess makes the runtime that starts plain processes. Limits are enforced through cgroup v1
// or v2 where this user may create groups; where not, nodes run without limits, LimitsInForce
// returns nil, and Unenforced says why.
func NewProcess(ctx context.Context, options ProcessOptions) (Runtime, error) {
	if options.RunID == "" || options.Dir == "" {
		return nil, errors.New("start process runtime: a run id and a folder are needed")
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("start process runtime: folder %s: %w", options.Dir, err)
	}
	options.Dir = dir
	if options.LogDir == "" {
		options.LogDir = dir
	}
	if found, _ := os.ReadDir(options.Dir); len(found) > 0 {
		return nil, fmt.Errorf("start process runtime: %s holds %s of an earlier run, and every run has a fresh folder: "+
			"jaegerlab clean removes what a lab left, or point TMPDIR elsewhere", options.Dir, found[0].Name())
	}
	for _, folder := range []string{options.Dir, options.LogDir} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("start process runtime: create folder: %w", err)
		}
	}
	state, err := newRunState(runOwner{RunID: options.RunID, Runtime: spec.Process, Dir: options.Dir})
	if err != nil {
		return nil, fmt.Errorf("start process runtime: %w", err)
	}
	r := &processes{options: options, state: state, nodes: map[string]*processNode{}}
	if err := probeGroups(ctx, options.RunID); err != nil {
		r.unenforced = err.Error()
	}
	return r, nil
}

// Unenforced says why a runtime can't enforce limits on this machine; "" when it can, as far as
// it knows. What is in force on a node is only known from its LimitsInForce.
func Unenforced(r Runtime) string {
	if p, ok := r.(interface{ unenforcedReason() string }); ok {
		return p.unenforcedReason()
	}
	return ""
}

func (r *processes) unenforcedReason() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unenforced
}

// Name implements Runtime.
func (r *processes) Name() spec.Runtime { return spec.Process }

// Host implements Runtime.
func (r *processes) Host() record.Host {
	host := localHost()
	if r.unenforcedReason() == "" {
		host.CgroupVersion = cgroupVersion()
	}
	return host
}

// Start implements Runtime.
func (r *processes) Start(ctx context.Context, p Program) (Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	if p.Loopback == "" {
		p.Loopback = "127.0.0.1"
	}
	if p.Grace == 0 {
		p.Grace = defaultGrace
	}
	n := &processNode{
		runtime: r, program: p,
		dir:  filepath.Join(r.options.Dir, p.Name),
		done: make(chan struct{}),
	}
	if err := r.enlist(n); err != nil {
		return nil, err
	}
	if err := n.launch(); err != nil {
		n.giveUp(err)
		r.delist(n)
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	return n, nil
}

// enlist takes the node's name. A name may be used again once its earlier node has ended.
func (r *processes) enlist(n *processNode) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fmt.Errorf("start %s: this run's runtime is already closed", n.Name())
	}
	if old, taken := r.nodes[n.Name()]; taken && !ended(old) {
		return fmt.Errorf("start %s: a node of this name is running already", n.Name())
	}
	n.log = freeLog(r.options.LogDir, n.Name())
	r.nodes[n.Name()] = n
	return nil
}

func (r *processes) delist(n *processNode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes[n.Name()] == n {
		delete(r.nodes, n.Name())
	}
}

// portsInUse are the ports of nodes that run: a node that has not bound its port yet keeps it.
func (r *processes) portsInUse() map[int]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	used := map[int]bool{}
	for _, n := range r.nodes {
		if ended(n) {
			continue
		}
		for _, port := range n.portNumbers() {
			used[port] = true
		}
	}
	return used
}

// Close implements Runtime. It gives each node a short grace only: what had to be saved in order
// was stopped in order before.
func (r *processes) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	nodes := make([]*processNode, 0, len(r.nodes))
	for _, n := range r.nodes {
		nodes = append(nodes, n)
	}
	r.mu.Unlock()
	if r.options.Keep {
		return r.state.markKept()
	}
	grace := closeGrace
	if ctx.Err() != nil {
		grace = hastyGrace
	}
	errs := stopAll(nodes, grace)
	errs = append(errs, endStrays(r.options.RunID)...)
	errs = append(errs, removeRunGroups(r.options.RunID))
	if err := os.RemoveAll(r.options.Dir); err != nil {
		errs = append(errs, fmt.Errorf("remove the run's temporary folder: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close run %s: %w", r.options.RunID, err) // the state stays: Sweep tries again
	}
	return r.state.remove()
}

func stopAll(nodes []*processNode, grace time.Duration) []error {
	errs := make([]error, len(nodes))
	var wait sync.WaitGroup
	for i, n := range nodes {
		wait.Go(func() { errs[i] = n.end(context.Background(), min(grace, n.program.Grace)) })
	}
	wait.Wait()
	return errs
}

// ended reports whether a node's Done is closed.
func ended(n Node) bool {
	select {
	case <-n.Done():
		return true
	default:
		return false
	}
}

const (
	defaultGrace = 10 * time.Second
	closeGrace   = 5 * time.Second
	hastyGrace   = 2 * time.Second // the user pressed Ctrl-C and waits
	killBound    = 5 * time.Second // from SIGKILL until the kernel must have ended it
)
