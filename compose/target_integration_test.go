package compose

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"jaegerlab/lab"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
)

// target measures the stack, which holds the spans of other loads, by target.yaml with the ports where
// this one is published.
func (c *composed) target() {
	c.t.Helper()
	text, err := os.ReadFile("target.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(c.t.TempDir(), "target.yaml")
	moved := strings.NewReplacer("127.0.0.1:4317", c.addr("collector", 4317), "127.0.0.1:14268", c.addr("collector", 14268),
		"127.0.0.1:8888", c.addr("collector", 8888), "127.0.0.1:9090", c.addr("prometheus", 9090),
		"127.0.0.1:9042", c.addr("cassandra-1", 9042), "127.0.0.1:19042", c.addr("cassandra-2", 9042)).Replace(string(text))
	if err := os.WriteFile(file, []byte(moved), 0o644); err != nil {
		c.t.Fatal(err)
	}
	s, err := spec.FromEnv([]string{"LAB_TARGET=" + file, "DURATION_S=" + loadSeconds, "LAB_DRAIN_S=60", "LAB_RESULTS=" + c.t.TempDir()})
	if err != nil {
		c.t.Fatal(err)
	}
	s.Experiment = "compose"
	absent, err := setup.Missing(c.t.Context(), setup.NeedOf(s, spec.Process))
	if err != nil {
		c.t.Fatal(err)
	}
	if len(absent) > 0 {
		lacking(c.t, absent[0].String(), "it is the load node of the target run")
	}
	result, err := lab.Run(c.t.Context(), s, lab.Options{Console: lab.NewConsole(c.t.Output(), false)})
	if err != nil {
		c.t.Fatal(err)
	}
	run := result.Record.Runs[0]
	if l := run.Ledger; run.Verdict != record.Whole || l.Acked == 0 || l.Stored != l.Acked || l.Foreign != nil || run.Engine.Nodes != 2 {
		c.t.Errorf("verdict %s %v; acked %d, stored %d, foreign %v, %d nodes; want whole, and foreign not known", run.Verdict, run.Reasons,
			l.Acked, l.Stored, l.Foreign, run.Engine.Nodes)
	}
	if monitoring := fmt.Sprint(run.Monitoring); !strings.Contains(monitoring, "the user's own") {
		c.t.Errorf("monitoring %s: the stack's Prometheus is named, so none is started", monitoring)
	}
	c.t.Logf("target: %s, %d spans stored", run.Verdict, run.Ledger.Stored)
}
