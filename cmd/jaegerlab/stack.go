package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"jaegerlab/compose"
	"jaegerlab/compose/resources"
	"jaegerlab/lab/load"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// Commands of the compose stacks: await, resources and load --target run inside them, compose
// fits them to this machine.

func composeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compose",
		Short: "write compose/.env: the images and CPUs of this machine, for the stacks in compose/",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := compose.Env(cmd.Context())
			if err != nil {
				return err
			}
			path := filepath.Join("compose", ".env")
			if err := os.WriteFile(path, text, 0o644); err != nil {
				return fmt.Errorf("write %s: %w; run it in the checkout", path, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is written:\n%s", path, text)
			return nil
		},
	}
}

func resourcesCommand() *cobra.Command {
	var ask resources.Ask
	cmd := &cobra.Command{
		Use:   "resources",
		Short: "in a compose stack: show Prometheus the CPU and memory of each container, and Cassandra's virtual tables",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return resources.Serve(cmd.Context(), ask, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&ask.Listen, "listen", "127.0.0.1:8081", "address of /metrics")
	flags.StringVar(&ask.Project, "project", "", "name of the Compose project")
	flags.StringVar(&ask.HostLabel, "label", compose.HostLabel, "label of its containers that holds the original host")
	flags.StringArrayVar(&ask.Cassandra, "cassandra", nil, "host:port of a Cassandra node; may be repeated")
	flags.StringVar(&ask.Keyspace, "keyspace", compose.Keyspace, "keyspace whose tables are shown")
	return cmd
}

func awaitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "await URL",
		Short: "in a compose stack: wait until a page answers with 200",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return await(cmd.Context(), args[0], timeout, func(ctx context.Context) error { return page(ctx, args[0]) })
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait")
	return cmd
}

func page(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200)) // only for the error's text
		return fmt.Errorf("it answered %s: %s", response.Status, text)
	}
	return nil
}

const (
	awaitPause = 500 * time.Millisecond
	awaitTry   = 5 * time.Second
)

// await tries until it works; the error of the last try says what it waited for.
func await(ctx context.Context, what string, within time.Duration, try func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		once, done := context.WithTimeout(bounded, awaitTry)
		err := try(once)
		done()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(awaitPause):
		case <-bounded.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
			}
			return fmt.Errorf("wait for %s: not there after %s: %w", what, within, err)
		}
	}
}

const targetWithin = time.Minute // a collector that has just been started

// serveJob is the load node of a compose stack: it starts a job from the environment on its own,
// and goes on serving its metrics and outcomes.
func serveJob(ctx context.Context, listen, target, client string, logTo io.Writer) error {
	s, err := spec.FromEnv(os.Environ())
	if err != nil {
		return err
	}
	job := load.Job{
		Numbering: trace.New(randomRun(), s.Load.SpansCount), Load: s.Load, Seed: s.Seed, Client: client, Target: target,
	}
	if err := job.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := startJob(ctx, listen, job); err != nil {
			cancel(err)
		}
	}()
	if err := load.Serve(ctx, listen, logTo); err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

func startJob(ctx context.Context, listen string, job load.Job) error {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("start load: --listen %q: %w", listen, err)
	}
	reachable := func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", job.Target)
		if err != nil {
			return err
		}
		return connection.Close()
	}
	if err := await(ctx, "the collector at "+job.Target, targetWithin, reachable); err != nil {
		return err
	}
	remote := load.Remote{Addr: net.JoinHostPort("127.0.0.1", port)}
	if err := await(ctx, "the load node itself", awaitTry, remote.Healthy); err != nil {
		return err
	}
	return remote.Start(ctx, job)
}

// randomRun tells this run's spans from any other's.
func randomRun() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return binary.BigEndian.Uint64(b[:]) & trace.MaxRun
}
