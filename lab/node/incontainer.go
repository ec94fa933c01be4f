package node

import "fmt"

// containerDir is ${dir} in a container.
const containerDir = "/lab"

// InContainer is a program with its placeholders expanded as the docker runtime does: it listens
// on all addresses of its container, under the ports' own numbers, and its files are below /lab.
func InContainer(p Program) (Program, error) {
	ports := map[string]int{}
	for _, port := range p.Ports {
		ports[port.Name] = port.Number
	}
	places := placeholders{ip: "0.0.0.0", host: p.Name, dir: containerDir, ports: ports}
	var err error
	if p.Args, err = places.expandAll(p.Args); err != nil {
		return p, fmt.Errorf("arguments: %w", err)
	}
	if p.Env, err = places.expandAll(p.Env); err != nil {
		return p, fmt.Errorf("environment: %w", err)
	}
	p.Files, err = places.expandFiles(p.Files)
	return p, err
}

// ContainerFile is the path of one of a program's files in its container.
func ContainerFile(f File) string { return containerDir + "/" + f.Name }
