package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gocql/gocql"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

const (
	clusterName   = "jaegerlab"
	joinWithin    = 3 * time.Minute // of one node that has a whole CPU
	agreeWithin   = time.Minute     // of all nodes, once each has joined
	probeWithin   = 2 * time.Second // one OPTIONS request
	refusalTail   = 40
	smallestShare = 0.05 // CPUs: what a time-out is stretched by at most
)

// kind is what engines that speak CQL do differently.
type kind interface {
	engine() spec.Engine
	program() string // as package setup names it
	// preflight refuses what can't work here, before anything starts.
	preflight(env Env, arm spec.Arm) error
	// node describes one node.
	node(l layout, index int) (node.Program, error)
	// confirm says why the servers are not the engine that was asked for, and marks a stand-in.
	confirm(ctx context.Context, c *cqlCluster, found *record.Engine) error
	differences(runtime spec.Runtime) []string
}

// layout is what the nodes of one cluster share. Nodes are counted from 0; node 0 is the seed.
type layout struct {
	binary node.Binary
	count  int
	limits spec.Limits
	ports  ports // process runtime
}

// cqlBackend starts clusters of one kind.
type cqlBackend struct{ kind kind }

// Start implements Backend.
func (b cqlBackend) Start(ctx context.Context, env Env, arm spec.Arm) (Cluster, error) {
	what := fmt.Sprintf("start %s", arm.Backend)
	if err := refuse(arm); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if err := b.kind.preflight(env, arm); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	binary, err := env.Binary(b.kind.program())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	c := &cqlCluster{env: env, arm: arm, kind: b.kind, layout: layout{
		binary: binary, count: arm.Backend.Nodes,
		limits: spec.LimitsFor(arm.Profile, spec.DatabaseHost, arm.Backend.Engine, env.Runtime.Host().CPUs),
	}}
	if err := c.start(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return c, nil
}

// refuse names what no cluster can do, with both values, before anything starts.
func refuse(arm spec.Arm) error {
	nodes := arm.Backend.Nodes
	if nodes < 1 {
		return fmt.Errorf("it has %d nodes; LAB_BACKENDS takes a count from 1, as in %s:2", nodes, arm.Backend.Engine)
	}
	if arm.Replication < 1 || arm.Replication > nodes {
		return fmt.Errorf("replication factor %d does not fit %d nodes; LAB_REPLICATION takes 1 to %d",
			arm.Replication, nodes, nodes)
	}
	return nil
}

// cqlCluster is a running cluster. Its nodes belong to the runtime; it owns the sessions.
type cqlCluster struct {
	env    Env
	arm    spec.Arm
	kind   kind
	layout layout
	nodes  []node.Node

	mu       sync.Mutex
	sessions map[string]*gocql.Session // by address
	views    []view
	closed   bool
}

func (c *cqlCluster) start(ctx context.Context) error {
	if c.env.Runtime.Name() == spec.Process {
		var err error
		if c.layout.ports, err = pickPorts(c.layout.count); err != nil {
			return err
		}
	}
	for i := range c.layout.count {
		if err := c.addNode(ctx, i); err != nil {
			return err
		}
		if i == 0 && c.layout.count > 1 {
			if err := c.callFirst(ctx); err != nil {
				return err
			}
		}
	}
	return c.awaitAgreement(ctx)
}

// callFirst gives the run the cluster while it is one node, where that saves time: ScyllaDB's
// nodes agree on a schema through raft, at once.
func (c *cqlCluster) callFirst(ctx context.Context) error {
	if c.env.First == nil || c.kind.engine() != spec.Cassandra {
		return nil
	}
	if err := c.awaitAgreement(ctx); err != nil {
		return err
	}
	return c.env.First(ctx, c)
}

// addNode starts one node and waits until it has joined in its own view and in the seed's. A
// join that the cluster refused, because it saw another one under way, is tried once more.
func (c *cqlCluster) addNode(ctx context.Context, index int) error {
	program, err := c.kind.node(c.layout, index)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		n, err := c.env.Runtime.Start(ctx, program)
		if err != nil && index == 0 && attempt == 1 && c.layout.ports.cql != 0 {
			if program, err = c.repick(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		c.say("waiting for %s (node %d of %d) to join", n.Name(), index+1, c.layout.count)
		c.nodes = append(c.nodes[:index], n)
		err = c.awaitJoin(ctx, index)
		if err == nil || attempt == 2 || !joinRefused(n) {
			return err
		}
		if err := n.Stop(ctx); err != nil {
			return err
		}
	}
}

// repick describes the first node with other ports: one may have been taken since it was picked.
func (c *cqlCluster) repick() (node.Program, error) {
	var err error
	if c.layout.ports, err = pickPorts(c.layout.count); err != nil {
		return node.Program{}, err
	}
	return c.kind.node(c.layout, 0)
}

// joinRefused recognises a node that ended because another one was joining.
func joinRefused(n node.Node) bool {
	select {
	case <-n.Done():
		return strings.Contains(n.Tail(refusalTail), "Other bootstrapping/leaving/moving nodes detected")
	default:
		return false
	}
}

// awaitJoin waits for node index; what it waited for, the last state and the log's end are in
// the error. A time-out grows as the CPU limit shrinks.
func (c *cqlCluster) awaitJoin(ctx context.Context, index int) error {
	n := c.nodes[index]
	what := fmt.Sprintf("%s to answer CQL and to list %d peers, and the seed to list it", n.Name(), index)
	ctx, stop := c.whileAlive(ctx)
	defer stop()
	return node.Wait(ctx, what, stretch(joinWithin, c.layout.limits), n, func(ctx context.Context) error {
		for _, i := range []int{index, 0} {
			v, err := c.view(ctx, i)
			if err != nil {
				return err
			}
			if err := v.joining(index + 1); err != nil {
				return fmt.Errorf("%s: %w", c.nodes[i].Name(), err)
			}
		}
		return nil
	})
}

// awaitAgreement waits until every node has the same view of a cluster of all nodes.
func (c *cqlCluster) awaitAgreement(ctx context.Context) error {
	c.say("waiting for %d nodes to agree", len(c.nodes))
	what := fmt.Sprintf("all %d nodes to list each other with one schema version", len(c.nodes))
	ctx, stop := c.whileAlive(ctx)
	defer stop()
	return node.Wait(ctx, what, stretch(agreeWithin, c.layout.limits), c.nodes[len(c.nodes)-1],
		func(ctx context.Context) error {
			views, err := c.allViews(ctx)
			if err != nil {
				return err
			}
			if err := agree(views); err != nil {
				return err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.views = views
			return nil
		})
}

// whileAlive returns a context that ends, with the reason as its cause, when any node does.
func (c *cqlCluster) whileAlive(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	for _, n := range c.nodes[:len(c.nodes)-1] { // node.Wait watches the last one
		go func() {
			select {
			case <-n.Done():
				cancel(fmt.Errorf("%s has ended: %s\nlast lines of %s:\n%s", n.Name(), n.Exit(), n.LogFile(), n.Tail(20)))
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

func (c *cqlCluster) allViews(ctx context.Context) ([]view, error) {
	views := make([]view, len(c.nodes))
	for i := range c.nodes {
		var err error
		if views[i], err = c.view(ctx, i); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// view asks node i what it sees. The raw request comes first: it costs little, it ends within two
// seconds on a listener that is silent, and it refuses servers without the lab's CQL version.
func (c *cqlCluster) view(ctx context.Context, i int) (view, error) {
	if !c.connected(i) {
		probe, cancel := context.WithTimeout(ctx, probeWithin)
		defer cancel()
		options, err := askOptions(probe, c.nodes[i].Addr("cql"), cqlVersion)
		if err != nil {
			return view{}, fmt.Errorf("%s: %w", c.nodes[i].Name(), err)
		}
		if err := speaks(options); err != nil {
			return view{}, fmt.Errorf("%s: %w", c.nodes[i].Name(), err)
		}
	}
	session, err := c.session(ctx, i)
	if err != nil {
		return view{}, err
	}
	v, err := look(ctx, session)
	if err != nil {
		return view{}, fmt.Errorf("%s at %s: %w", c.nodes[i].Name(), c.nodes[i].Addr("cql"), err)
	}
	return v, nil
}

// speaks refuses a server that does not offer the protocol version of the lab and of Jaeger.
// ScyllaDB sends no list of versions.
func speaks(options map[string][]string) error {
	offered := options["PROTOCOL_VERSIONS"]
	for _, version := range offered {
		if strings.HasPrefix(version, fmt.Sprintf("%d/", cqlVersion)) {
			return nil
		}
	}
	if len(offered) == 0 {
		return nil
	}
	return fmt.Errorf("the server does not offer CQL protocol version %d; it offers %s",
		cqlVersion, strings.Join(offered, ", "))
}

func (c *cqlCluster) connected(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[c.nodes[i].Addr("cql")] != nil
}

// session returns the session of node i, opened when first needed.
func (c *cqlCluster) session(ctx context.Context, i int) (*gocql.Session, error) {
	addr := c.nodes[i].Addr("cql")
	c.mu.Lock()
	known := c.sessions[addr]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	opened, err := openSession(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.nodes[i].Name(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.sessions[addr]; known != nil || c.closed {
		opened.Close()
		if known == nil {
			return nil, fmt.Errorf("%s: connect to %s over CQL: the cluster is closed", c.nodes[i].Name(), addr)
		}
		return known, nil
	}
	if c.sessions == nil {
		c.sessions = map[string]*gocql.Session{}
	}
	c.sessions[addr] = opened
	return opened, nil
}

// Nodes implements Cluster.
func (c *cqlCluster) Nodes() []node.Node { return append([]node.Node(nil), c.nodes...) }

// Answers asks every node for its CQL options, all at once: nil for one that answers. It costs a
// server next to nothing and needs no session.
func (c *cqlCluster) Answers(ctx context.Context) []error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	answers := make([]error, len(c.nodes))
	var asked sync.WaitGroup
	for i, n := range c.nodes {
		asked.Go(func() { _, answers[i] = askOptions(ctx, n.Addr("cql"), cqlVersion) })
	}
	asked.Wait()
	return answers
}

// Close implements Cluster: it ends the sessions and leaves the nodes to the runtime.
func (c *cqlCluster) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, session := range c.sessions {
		session.Close()
	}
	c.sessions, c.closed = nil, true
}

// alive lists the indices of nodes whose program still runs.
func (c *cqlCluster) alive() []int {
	var indices []int
	for i, n := range c.nodes {
		select {
		case <-n.Done():
		default:
			indices = append(indices, i)
		}
	}
	return indices
}

var errNoNode = errors.New("no node of the cluster runs any more")

func (c *cqlCluster) say(format string, args ...any) {
	if c.env.Say != nil {
		c.env.Say(format, args...)
	}
}

// stretch lengthens a time-out that fits one CPU to the CPU quota of a node.
func stretch(d time.Duration, limits spec.Limits) time.Duration {
	if limits.CPUs <= 0 || limits.CPUs >= 1 {
		return d
	}
	return time.Duration(float64(d) / max(limits.CPUs, smallestShare))
}
