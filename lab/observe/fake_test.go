package observe

import (
	"context"
	"errors"
	"sync"
	"time"

	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
)

// fakeNode is a node without a program whose cgroup says what the test gives.
type fakeNode struct {
	program node.Program
	usage   func() (node.Usage, error)
	inForce *spec.Limits

	mu   sync.Mutex
	exit string
	done chan struct{}
}

func newFakeNode(name string) *fakeNode {
	return &fakeNode{program: node.Program{Name: name, Host: spec.CollectorHost}, done: make(chan struct{})}
}

func (n *fakeNode) die(exit string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.exit == "" {
		n.exit = exit
		close(n.done)
	}
}

func (n *fakeNode) Exit() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.exit
}

func (n *fakeNode) Read(context.Context) (node.Usage, error) {
	if n.usage == nil {
		return node.Usage{At: time.Now()}, nil
	}
	return n.usage()
}

func (n *fakeNode) LimitsInForce(context.Context) (*spec.Limits, error) {
	if n.inForce == nil {
		return nil, errors.New("no cgroup")
	}
	return n.inForce, nil
}

func (n *fakeNode) Name() string                 { return n.program.Name }
func (n *fakeNode) Program() node.Program        { return n.program }
func (n *fakeNode) Addr(string) string           { return "" }
func (n *fakeNode) PeerAddr(string) string       { return "" }
func (n *fakeNode) PeerHost() string             { return n.program.Name }
func (n *fakeNode) Done() <-chan struct{}        { return n.done }
func (n *fakeNode) LogFile() string              { return n.program.Name + ".log" }
func (n *fakeNode) Tail(int) string              { return "" }
func (n *fakeNode) Stop(context.Context) error   { return nil }
func (n *fakeNode) Kill(context.Context) error   { return nil }
func (n *fakeNode) Pause(context.Context) error  { return nil }
func (n *fakeNode) Resume(context.Context) error { return nil }
