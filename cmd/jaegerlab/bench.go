package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"jaegerlab/bench"
	"jaegerlab/bench/exporters"
	"jaegerlab/bench/generators"
	"jaegerlab/report"
)

// benchCommands are the benchmark of generators and the program of one of its contestants.
func benchCommands() []*cobra.Command {
	return []*cobra.Command{benchLoadCommand(), benchSendCommand()}
}

func benchLoadCommand() *cobra.Command {
	o, only := generators.Options{}, ""
	cmd := &cobra.Command{
		Use:   "bench-load",
		Short: "measure the lab's span generator, its ceiling, tracegen and telemetrygen against one black hole",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Rounds < 1 || o.Each < 100*time.Millisecond {
				return fmt.Errorf("measure generators: --rounds %d, --each %v; accepted: at least 1, at least 100ms",
					o.Rounds, o.Each)
			}
			if only != "" {
				expression, err := regexp.Compile(only)
				if err != nil {
					return fmt.Errorf("measure generators: --only: %w", err)
				}
				o.Only = expression
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("measure generators: find this program: %w", err)
			}
			o.Self, o.Out, o.Say = self, cmd.OutOrStdout(), sayTo(cmd.ErrOrStderr())
			if o.Results == "" {
				o.Results = filepath.Join(".", "results")
			}
			return generators.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().IntVar(&o.Rounds, "rounds", 5, "how often each generator is measured")
	cmd.Flags().DurationVar(&o.Each, "each", 3*time.Second, "how long each time")
	cmd.Flags().StringVar(&only, "only", "", "measure only the rows whose names match this regular expression")
	cmd.Flags().StringVar(&o.Results, "results", os.Getenv("LAB_RESULTS"), "folder of results")
	return cmd
}

func benchSendCommand() *cobra.Command {
	var client, target string
	var traces int
	var patch bool
	cmd := &cobra.Command{
		Use: "bench-send", Hidden: true, Args: cobra.NoArgs,
		Short: "send until interrupted, without a load node: a contestant of bench-load",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return generators.Send(cmd.Context(), client, target, traces, patch, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&client, "client", "otlp-grpc", "how spans are sent")
	cmd.Flags().StringVar(&target, "target", "127.0.0.1:4317", "host:port of the black hole")
	cmd.Flags().IntVar(&traces, "traces", 1, "traces per request")
	cmd.Flags().BoolVar(&patch, "patch", true, "patch ids and times; without, the same bytes are sent again")
	return cmd
}

// benchReport renders a saved benchmark again. Benchmarks have files for people and for benchstat
// only; every other format is that of comparisons.
func benchReport(w io.Writer, dir, format string) error {
	r, doc, err := benchDocument(dir)
	if err != nil {
		return err
	}
	switch format {
	case "":
		if err := bench.Rewrite(dir, r, doc); err != nil {
			return err
		}
		if err := report.Terminal(w, doc); err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, "report:", filepath.Join(dir, report.FileName))
		return err
	case "terminal":
		return report.Terminal(w, doc)
	case "markdown":
		return report.MarkdownTables(w, doc)
	case "benchfmt":
		_, err := w.Write(bench.Benchfmt(r))
		return err
	}
	return fmt.Errorf("print the benchmark in %s as %q: benchmarks are printed as terminal, markdown or benchfmt", dir, format)
}

// benchDocument reads a benchmark and makes its table.
func benchDocument(dir string) (r bench.Record, doc report.Document, err error) {
	if r, err = bench.Load(dir); err != nil {
		return r, doc, err
	}
	documents := map[string]func(bench.Record) report.Document{
		"generators": generators.Document, "exporters": exporters.Document,
	}
	of := documents[r.Experiment]
	if of == nil {
		return r, doc, fmt.Errorf("render the benchmark in %s: it is of %q, which this program does not know",
			dir, r.Experiment)
	}
	return r, of(r), nil
}
