// Command scylla-stand-in takes ScyllaDB's command line and runs Cassandra in its place; it is the
// entrypoint of an image for tests where ScyllaDB can't be had. See package standin.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"jaegerlab/lab/backend/standin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := standin.Run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scylla-stand-in:", err)
		os.Exit(1)
	}
}
