package load

import (
	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
)

// Program describes the load node: bin is the lab's own program and runs its command "load".
// Its control port also serves /metrics.
func Program(bin node.Binary, limits spec.Limits) node.Program {
	return node.Program{
		Name:   "load",
		Host:   spec.LoadHost,
		Binary: bin,
		Args:   []string{"--listen", "${ip}:${port.control}"},
		Ports:  []node.Port{{Name: "control", Number: 8080}},
		Limits: limits,
	}
}
