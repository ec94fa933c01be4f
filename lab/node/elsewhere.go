package node

import (
	"context"
	"errors"
	"fmt"
	"net"

	"jaegerlab/lab/spec"
)

// Elsewhere is a program that the lab did not start and can't see into: the user's own. It has
// addresses and nothing more: no log, no cgroup, no limits; it is never stopped, and its end is
// not noticed here.
func Elsewhere(name string, host spec.Host, addrs map[string]string) Node {
	n := elsewhere{name: name, host: host, addrs: addrs, done: make(chan struct{})}
	return n
}

type elsewhere struct {
	name  string
	host  spec.Host
	addrs map[string]string // port name -> host:port
	done  chan struct{}     // never closed
}

// ErrElsewhere is returned for what can't be done to a program of somebody else.
var ErrElsewhere = errors.New("it is not the lab's own program")

func (n elsewhere) refuse(what string) error {
	return fmt.Errorf("%s %s: %w", what, n.name, ErrElsewhere)
}

// Name implements Node.
func (n elsewhere) Name() string { return n.name }

// Program implements Node.
func (n elsewhere) Program() Program { return Program{Name: n.name, Host: n.host} }

// Addr implements Node.
func (n elsewhere) Addr(port string) string { return n.addrs[port] }

// PeerAddr implements Node: there is one network.
func (n elsewhere) PeerAddr(port string) string { return n.addrs[port] }

// PeerHost implements Node: the host of any of its addresses.
func (n elsewhere) PeerHost() string {
	for _, addr := range n.addrs {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			return host
		}
	}
	return ""
}

// Done implements Node.
func (n elsewhere) Done() <-chan struct{} { return n.done }

// Exit implements Node.
func (n elsewhere) Exit() string { return "" }

// Read implements Node: every field is unknown.
func (n elsewhere) Read(context.Context) (Usage, error) { return Usage{}, nil }

// LimitsInForce implements Node.
func (n elsewhere) LimitsInForce(context.Context) (*spec.Limits, error) { return nil, nil }

// LogFile implements Node.
func (n elsewhere) LogFile() string { return "" }

// Tail implements Node.
func (n elsewhere) Tail(int) string { return "" }

// Stop implements Node: nothing of the user's is stopped, and a run's end is no error.
func (n elsewhere) Stop(context.Context) error { return nil }

// Kill implements Node.
func (n elsewhere) Kill(context.Context) error { return n.refuse("kill") }

// Pause implements Node.
func (n elsewhere) Pause(context.Context) error { return n.refuse("pause") }

// Resume implements Node.
func (n elsewhere) Resume(context.Context) error { return n.refuse("resume") }
