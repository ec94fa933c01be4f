package backend

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// fakeNode is a node whose ports lead to servers of a test.
type fakeNode struct {
	program node.Program
	addrs   map[string]string
	done    chan struct{}
	tail    string
	once    *sync.Once
}

func newFakeNode(name string, addrs map[string]string) *fakeNode {
	return &fakeNode{program: node.Program{Name: name}, addrs: addrs, done: make(chan struct{}), once: new(sync.Once)}
}

func (n *fakeNode) die(tail string) { n.once.Do(func() { n.tail = tail; close(n.done) }) }

func (n *fakeNode) Name() string                                        { return n.program.Name }
func (n *fakeNode) Program() node.Program                               { return n.program }
func (n *fakeNode) Addr(port string) string                             { return n.addrs[port] }
func (n *fakeNode) PeerAddr(port string) string                         { return n.addrs[port] }
func (n *fakeNode) PeerHost() string                                    { return "127.0.0.1" }
func (n *fakeNode) Done() <-chan struct{}                               { return n.done }
func (n *fakeNode) Exit() string                                        { return "exit status 3" }
func (n *fakeNode) Read(context.Context) (node.Usage, error)            { return node.Usage{}, nil }
func (n *fakeNode) LimitsInForce(context.Context) (*spec.Limits, error) { return nil, nil }
func (n *fakeNode) LogFile() string                                     { return n.program.Name + ".log" }
func (n *fakeNode) Tail(int) string                                     { return n.tail }
func (n *fakeNode) Stop(context.Context) error                          { n.die(""); return nil }
func (n *fakeNode) Kill(context.Context) error                          { n.die(""); return nil }
func (n *fakeNode) Pause(context.Context) error                         { return nil }
func (n *fakeNode) Resume(context.Context) error                        { return nil }

// fakeRuntime starts nodes by a function of the test.
type fakeRuntime struct {
	name  spec.Runtime
	host  record.Host
	start func(p node.Program) (node.Node, error)
	mu    sync.Mutex
	began []node.Program
}

func (r *fakeRuntime) Name() spec.Runtime          { return r.name }
func (r *fakeRuntime) Host() record.Host           { return r.host }
func (r *fakeRuntime) Close(context.Context) error { return nil }

func (r *fakeRuntime) Start(_ context.Context, p node.Program) (node.Node, error) {
	r.mu.Lock()
	r.began = append(r.began, p)
	r.mu.Unlock()
	if r.start == nil {
		return nil, errors.New("this runtime starts nothing")
	}
	return r.start(p)
}

func (r *fakeRuntime) names() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, p := range r.began {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

func anArm(engine spec.Engine, nodes, replication int) spec.Arm {
	return spec.Arm{Backend: spec.Backend{Engine: engine, Nodes: nodes}, Collector: "v2", Client: "otlp-grpc",
		Profile: spec.T2, Replication: replication}
}

// fakeCluster is a cluster whose nodes are the servers given, and whose engine was not checked.
func fakeCluster(t testing.TB, k kind, servers ...*cqlServer) *cqlCluster {
	t.Helper()
	c := &cqlCluster{kind: k, arm: anArm(k.engine(), len(servers), 1), layout: layout{count: len(servers)},
		env: Env{Runtime: &fakeRuntime{name: spec.Docker}}}
	for _, s := range servers {
		c.nodes = append(c.nodes, newFakeNode("db", map[string]string{"cql": s.addr}))
	}
	t.Cleanup(c.Close)
	return c
}

var elsewhere = net.IPv4(10, 255, 0, 1) // an address nothing here can reach
