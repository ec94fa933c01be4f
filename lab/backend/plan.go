package backend

import (
	"fmt"
	"net"
	"strconv"

	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
)

// defaultDataCenter is what both engines call theirs with the snitch of the lab.
const defaultDataCenter = "datacenter1"

// Plan describes a cluster in containers without starting it: the programs in the order in which
// they have to join, and the storage of Jaeger on them under the given keyspace. It is for the
// compose stacks, which are the same clusters by hand.
func Plan(arm spec.Arm, binary node.Binary, hostCPUs int, keyspace string) ([]node.Program, Store, error) {
	what := "plan " + arm.Backend.String()
	if err := refuse(arm); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", what, err)
	}
	engine, err := For(arm.Backend.Engine)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", what, err)
	}
	cql, ok := engine.(cqlBackend)
	if !ok {
		return nil, nil, fmt.Errorf("%s: it has no nodes of its own", what)
	}
	c := &cqlCluster{arm: arm, kind: cql.kind, views: []view{{DataCenter: defaultDataCenter}}, layout: layout{
		binary: binary, count: arm.Backend.Nodes,
		limits: spec.LimitsFor(arm.Profile, spec.DatabaseHost, arm.Backend.Engine, hostCPUs),
	}}
	var programs []node.Program
	for i := range arm.Backend.Nodes {
		program, err := cql.kind.node(c.layout, i)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", what, err)
		}
		programs = append(programs, program)
		c.nodes = append(c.nodes, plannedNode{program: program})
	}
	return programs, c.Store(keyspace), nil
}

// plannedNode has addresses as a container would, and nothing else.
type plannedNode struct {
	node.Node
	program node.Program
}

func (n plannedNode) Name() string { return n.program.Name }

func (n plannedNode) PeerAddr(name string) string {
	for _, port := range n.program.Ports {
		if port.Name == name {
			return net.JoinHostPort(n.program.Name, strconv.Itoa(port.Number))
		}
	}
	return ""
}
