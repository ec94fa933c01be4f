//go:build unix

package node

import (
	"context"

	"github.com/moby/moby/client"
)

// ConnectDocker connects to the daemon that containers of a run will be on. It is for package
// setup, whose images have to be on the same daemon; the caller closes the client.
func ConnectDocker(ctx context.Context) (*client.Client, error) { return connect(ctx) }
