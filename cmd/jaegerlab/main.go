// Command jaegerlab is the lab's own program: doctor, setup, images, report, compare, verify and clean for people,
// and load, which is the program of the load node. It only wires packages together.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"jaegerlab/bench"
	"jaegerlab/lab"
	"jaegerlab/lab/load"
	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol/sink"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
	"jaegerlab/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jaegerlab:", err)
		os.Exit(exitCode(err))
	}
}

// run is the whole program as a function of its arguments and writers.
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	root := &cobra.Command{
		Use:           "jaegerlab",
		Short:         "how many spans per second a Jaeger really stores, what holds it back, and whether anything was lost",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	root.AddCommand(doctorCommand(), setupCommand(), imagesCommand(), settingsCommand(), loadCommand(), reportCommand(),
		compareCommand(), verifyCommand(), cleanCommand(),
		composeCommand(), resourcesCommand(), awaitCommand())
	root.AddCommand(benchCommands()...)
	return root.ExecuteContext(ctx)
}

func sayTo(w io.Writer) func(string, ...any) {
	return func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
}

func setupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "build and fetch what the planned arms need",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := spec.FromEnv(os.Environ())
			if err != nil {
				return err
			}
			return lab.Setup(cmd.Context(), s, sayTo(cmd.OutOrStdout()))
		},
	}
}

func imagesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "images",
		Short: "build local images from packages, for machines without a registry (Debian, root)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setup.BuildImages(cmd.Context(), sayTo(cmd.OutOrStdout()))
		},
	}
}

func settingsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "settings",
		Short: "list the environment variables with defaults and accepted values",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range spec.Settings() {
				fmt.Fprintf(cmd.OutOrStdout(), "%-32s %s\n%32s default %q; accepted: %s\n", s.Name, s.Doc, "", s.Default, s.Accepted)
			}
			return nil
		},
	}
}

func loadCommand() *cobra.Command {
	var listen, target, client, hole string
	cmd := &cobra.Command{
		Use:   "load",
		Short: "be the load node: wait for a job over HTTP, send spans, keep the outcomes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port, addr, ok := strings.Cut(hole, "="); ok {
				return sink.Serve(cmd.Context(), sink.Ask{Port: port, Listen: addr, Metrics: listen})
			}
			if target != "" {
				return serveJob(cmd.Context(), listen, target, client, cmd.ErrOrStderr())
			}
			return load.Serve(cmd.Context(), listen, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "address of the control interface and of /metrics")
	cmd.Flags().StringVar(&target, "target", "", "host:port of a collector: start a job from the environment at once")
	cmd.Flags().StringVar(&hole, "hole", "", "PORT=host:port: be the black hole of the backend null instead, such as otlp-grpc=127.0.0.1:4317")
	_ = cmd.Flags().MarkHidden("hole") // the lab's own; it fails for unknown names only
	cmd.Flags().StringVar(&client, "client", "otlp-grpc", "how the job of --target sends")
	return cmd
}

func reportCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "report [DIR]",
		Short: "print and write the report of a recorded comparison or benchmark again, from its record alone",
		Long: `Print the report of a recorded comparison and write its files again, from the record alone.
DIR may also hold a benchmark: of bench-load or of the experiment exporters.

With --format the report goes to standard output in that format, and no file is written.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := filepath.Join("results", "latest")
			if len(args) == 1 {
				dir = args[0]
			}
			if bench.Is(dir) {
				return benchReport(cmd.OutOrStdout(), dir, format)
			}
			if format != "" {
				return printReport(cmd.OutOrStdout(), dir, format)
			}
			doc, err := report.Render(dir)
			if err != nil {
				return err
			}
			if err := report.Terminal(cmd.OutOrStdout(), doc); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "report:", filepath.Join(dir, "report.md"))
			return nil
		},
	}
	var names []string
	for _, f := range report.Formats() {
		names = append(names, f.Name)
	}
	cmd.Flags().StringVar(&format, "format", "", "print it as one of: "+strings.Join(names, ", "))
	return cmd
}

func printReport(w io.Writer, dir, format string) error {
	f, err := report.FormatNamed(format)
	if err != nil {
		return err
	}
	r, err := report.Read(dir)
	if err != nil {
		return err
	}
	return f.Write(w, r)
}

func cleanCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "end what a run with LAB_KEEP=1 or a crash left: only what carries the lab's own label or pid",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ended, err := node.Sweep(cmd.Context(), node.All)
			for _, one := range ended {
				fmt.Fprintln(cmd.OutOrStdout(), "ended", one)
			}
			if err == nil && len(ended) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing of the lab is left")
			}
			return err
		},
	}
}
