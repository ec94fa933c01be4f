package setup

import (
	"context"
	"fmt"
	"slices"
)

// Names of the peers that benchmarks measure beside the lab's own generator.
const (
	Tracegen     = "tracegen"
	Telemetrygen = "telemetrygen"
)

// peers are built from pinned modules like the programs, but no run of the lab needs them.
var peers = []program{
	{name: Tracegen, version: "1.76.0", folder: "tools/tracegen", pkg: jaegerModule + "/cmd/tracegen",
		module: jaegerModule + " " + jaegerPin, first: "2 minutes"},
	{name: Telemetrygen, version: "0.161.0", folder: "tools/telemetrygen",
		pkg:    "github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen",
		module: "github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen v0.161.0", first: "3 minutes"},
}

// Peer builds a peer unless it is up to date, and returns the path of the binary and its version.
func Peer(ctx context.Context, name string, say Say) (path, version string, err error) {
	i := slices.IndexFunc(peers, func(p program) bool { return p.name == name })
	if i < 0 {
		return "", "", fmt.Errorf("build peer %q: there is no such peer", name)
	}
	unlock, err := lock(ctx, say)
	if err != nil {
		return "", "", err
	}
	defer unlock()
	b, err := newBuilder(say)
	if err != nil {
		return "", "", err
	}
	path, err = b.build(ctx, peers[i], thisPlatform())
	return path, peers[i].version, err
}
