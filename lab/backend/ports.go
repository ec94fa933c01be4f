package backend

import (
	"fmt"
	"net"
	"strconv"
)

// ports are those of a cluster of plain processes. A driver knows one CQL port and one address
// per node, so the nodes differ in address, not in port. JMX always listens on 127.0.0.1.
type ports struct {
	cql, storage int
	jmx          []int
}

// loopback is the address of node i, counted from 0.
func loopback(i int) string { return fmt.Sprintf("127.0.0.%d", i+1) }

// pickPorts finds ports that are free on all addresses of n nodes. They are not held: a program
// that takes one before the node does makes the node's start fail, with the port in the error.
func pickPorts(n int) (ports, error) {
	for i := 1; i < n; i++ {
		probe, err := net.Listen("tcp4", net.JoinHostPort(loopback(i), "0"))
		if err != nil {
			return ports{}, fmt.Errorf("give %d nodes an address each: %s does not work on this machine (%w); "+
				"take one node (LAB_BACKENDS=cassandra:1) or Docker (LAB_RUNTIME=docker)", n, loopback(i), err)
		}
		_ = probe.Close()
	}
	taken := map[int]bool{}
	var p ports
	var err error
	if p.cql, err = freeOnAll(n, taken); err != nil {
		return ports{}, err
	}
	if p.storage, err = freeOnAll(n, taken); err != nil {
		return ports{}, err
	}
	for range n {
		jmx, err := freeOnAll(n, taken)
		if err != nil {
			return ports{}, err
		}
		p.jmx = append(p.jmx, jmx)
	}
	return p, nil
}

// freeOnAll finds a port free on the addresses of n nodes and marks it as taken.
func freeOnAll(n int, taken map[int]bool) (int, error) {
	const attempts = 200
	for range attempts {
		first, err := net.Listen("tcp4", net.JoinHostPort(loopback(0), "0"))
		if err != nil {
			return 0, fmt.Errorf("find a free port on %s: %w", loopback(0), err)
		}
		port := first.Addr().(*net.TCPAddr).Port
		free := !taken[port]
		for i := 1; i < n && free; i++ {
			other, err := net.Listen("tcp4", net.JoinHostPort(loopback(i), strconv.Itoa(port)))
			if err != nil {
				free = false
				break
			}
			_ = other.Close()
		}
		_ = first.Close()
		if free {
			taken[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a port that is free on %s to %s: none in %d tries", loopback(0), loopback(n-1), attempts)
}
