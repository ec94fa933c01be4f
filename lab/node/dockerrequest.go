//go:build unix

package node

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"

	"jaegerlab/lab/spec"
)

// request describes a node's container to testcontainers.
func (r *containers) request(p Program, name string, exposed []string) (
	request testcontainers.ContainerRequest, err error,
) {
	var publish []string
	for _, port := range p.Ports {
		publish = append(publish, portName(port))
	}
	p, err = InContainer(p)
	if err != nil {
		return request, err
	}
	labels := map[string]string{nodeLabel: p.Name}
	for key, value := range r.labels {
		labels[key] = value
	}
	return testcontainers.ContainerRequest{
		Image: p.Binary.Image, Entrypoint: p.Binary.Entrypoint, Cmd: p.Args, Name: name, Labels: labels,
		Networks: []string{r.network}, NetworkAliases: map[string][]string{r.network: {p.Name}},
		ExposedPorts: publish,
		Env:          envMap(append([]string{"LC_ALL=C", "TMPDIR=" + containerDir + "/tmp"}, p.Env...)),
		ConfigModifier: func(c *container.Config) {
			c.Hostname = p.Name
		},
		HostConfigModifier: func(c *container.HostConfig) {
			setHostLimits(c, p.Limits)
			c.PortBindings = loopbackOnly(slices.Concat(publish, exposed))
			// whatever driver the daemon prefers: this one's output can be read back
			c.LogConfig = container.LogConfig{Type: "json-file"}
		},
		LifecycleHooks: []testcontainers.ContainerLifecycleHooks{{
			PostCreates: []testcontainers.ContainerHook{func(ctx context.Context, c testcontainers.Container) error {
				return copyIn(ctx, r.client, c.GetContainerID(), p.Files)
			}},
		}},
	}, nil
}

func portName(port Port) string {
	if port.UDP {
		return strconv.Itoa(port.Number) + "/udp"
	}
	return strconv.Itoa(port.Number) + "/tcp"
}

// setHostLimits asks for a node's limits; swap is off where memory is limited.
func setHostLimits(c *container.HostConfig, limits spec.Limits) {
	c.CpusetCpus = formatCPUSet(limits.CPUSet)
	c.CPUShares = int64(limits.CPUShares)
	c.NanoCPUs = int64(limits.CPUs * 1e9)
	c.Memory, c.MemorySwap = limits.MemoryBytes, limits.MemoryBytes
}

// loopbackOnly publishes ports on a free port of 127.0.0.1 each. It holds also for ports that
// only the image exposes: testcontainers publishes those when a program names none of its own.
func loopbackOnly(ports []string) network.PortMap {
	bindings := network.PortMap{}
	for _, text := range ports {
		if port, err := network.ParsePort(text); err == nil {
			bindings[port] = []network.PortBinding{{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1})}}
		}
	}
	return bindings
}

func envMap(env []string) map[string]string {
	values := map[string]string{}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return values
}
