package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gocql/gocql"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/report"
	"jaegerlab/report/verify"
)

const strangers = 50 // rows of somebody else in a target's table

// TestIntegrationTarget: a stack that is somebody else's, with their rows in it, is the target of two
// runs, the second of which resumes the first. Both account for every span of their own, count nothing of
// the others', and leave everything as it was but for their own spans.
func TestIntegrationTarget(t *testing.T) {
	theirs, session := startTheirs(t)
	file := targetFile(t, theirs, "")
	run := func(rounds int, resume string) Result {
		t.Helper()
		s, err := spec.FromEnv([]string{"LAB_TARGET=" + file, "DURATION_S=3", "LAB_DRAIN_S=60", "LAB_RESULTS=" + t.TempDir(),
			fmt.Sprintf("LAB_ROUNDS=%d", rounds)})
		if err != nil {
			t.Fatal(err)
		}
		s.Experiment = "target"
		result, err := Run(t.Context(), s, Options{Console: NewConsole(testWriter{t}, false), Resume: resume})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	result := run(2, run(1, "").Dir)

	var stored int64
	for _, one := range result.Record.Runs {
		checkTargetRun(t, one)
		stored += one.Ledger.Stored
	}
	if len(result.Record.Runs) != 2 || !result.Record.Complete {
		t.Errorf("%d runs, complete %v; a resumed comparison has both", len(result.Record.Runs), result.Record.Complete)
	}
	checkTheirs(t, session, stored)
	if doc, err := report.Render(result.Dir); err != nil || !strings.Contains(strings.Join(doc.Notes, "\n"), "own Jaeger") {
		t.Errorf("the report does not say that it is a target: %v, %v", doc.Notes, err)
	}
	if checked, err := verify.Dir(result.Dir); err != nil || len(checked.Problems) > 0 {
		t.Errorf("verify: %v, %v", checked.Problems, err)
	}
	for _, n := range theirs.nodes() {
		if n.Exit() != "" {
			t.Errorf("%s of the target ended: %s", n.Name(), n.Exit())
		}
	}

	// With another keyspace it is refused before any span is sent.
	s, err := spec.FromEnv([]string{"LAB_TARGET=" + targetFile(t, theirs, "elsewhere"), "DURATION_S=3", "LAB_RESULTS=" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	refused, err := Run(t.Context(), s, Options{Console: NewConsole(testWriter{t}, false)})
	if err == nil || !strings.Contains(err.Error(), `cql.keyspace: "elsewhere"`) || refused.Record.Runs[0].Ledger.Generated != 0 {
		t.Errorf("a keyspace that is not there: %v", err)
	}
	checkTheirs(t, session, stored)
}

// startTheirs starts a stack by the lab's own steps and gives up the lock: from here on it is somebody
// else's. Their rows are in its table of traces.
func startTheirs(t *testing.T) (*round, *gocql.Session) {
	t.Helper()
	s := spec.Default()
	s.Experiment, s.Runtime, s.Results, s.Profile = "theirs", spec.Process, t.TempDir(), spec.None
	s.Backends, s.Named = []spec.Backend{{Engine: spec.Cassandra, Nodes: 1}}, true
	needs(t, s)
	c, err := prepare(t.Context(), s, Options{Console: NewConsole(testWriter{t}, false)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.newRound(c.spec.Arms()[0], 1)
	if err == nil {
		err = r.start(t.Context())
	}
	c.unlock()
	t.Cleanup(func() {
		if err := r.close(t.Context()); err != nil {
			t.Error(err)
		}
		nothingLeft(t)
	})
	if err != nil {
		t.Fatal(err)
	}
	session := open(t, r.Stack)
	t.Cleanup(session.Close)
	for i := range strangers {
		if err := session.Query(`INSERT INTO traces (trace_id, span_id, span_hash, start_time) VALUES (?, ?, 1, 1)`,
			fmt.Appendf(nil, "stranger%08d", i), int64(i)).Exec(); err != nil {
			t.Fatal(err)
		}
	}
	return r, session
}

// targetFile describes the stack as its owner would.
func targetFile(t *testing.T, theirs *round, otherKeyspace string) string {
	t.Helper()
	name := keyspace(theirs.Numbering.Run)
	if otherKeyspace != "" {
		name = otherKeyspace
	}
	path := filepath.Join(t.TempDir(), "theirs.yaml")
	text := fmt.Sprintf("collector: {ingest: {otlp-grpc: %q}, metrics: %q}\ncql: {hosts: [%q], keyspace: %s}\n",
		theirs.Collector.IngestAddr(false), theirs.Collector.MetricsAddr, theirs.Cluster.Nodes()[0].Addr("cql"), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func checkTargetRun(t *testing.T, run record.Run) {
	t.Helper()
	l := run.Ledger
	if run.Verdict != record.Whole || l.Acked == 0 || l.Stored != l.Acked || l.Foreign != nil {
		t.Errorf("verdict %s %v; acked %d, stored %d, foreign %v: want whole, and foreign not known", run.Verdict, run.Reasons,
			l.Acked, l.Stored, l.Foreign)
	}
	if run.Arm != "target:theirs otlp-grpc" || run.StoredInWindow == nil || run.SavedInWindowCounter == nil {
		t.Errorf("arm %q, stored in window %v, saved %v", run.Arm, run.StoredInWindow, run.SavedInWindowCounter)
	}
	if run.Engine.Name != "Apache Cassandra" || run.Engine.Nodes != 1 || run.Collector.Program.Version == "not reported" {
		t.Errorf("engine %+v, collector %+v: as they say themselves", run.Engine, run.Collector.Program)
	}
	for _, n := range run.Nodes {
		if n.Name == "collector" && (n.CPUSeconds != nil || n.MemoryBytes != nil || n.InForce != nil || n.Log != "") {
			t.Errorf("of the target's collector nothing can be seen: %+v", n)
		}
	}
}

// checkTheirs counts the rows as only their owner would.
func checkTheirs(t *testing.T, session *gocql.Session, stored int64) {
	t.Helper()
	var rows int64
	var trace []byte
	seen := map[string]bool{}
	iter := session.Query(`SELECT trace_id FROM traces`).Iter()
	for iter.Scan(&trace) {
		rows++
		seen[string(trace)] = true
	}
	if err := iter.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range strangers {
		if !seen[fmt.Sprintf("stranger%08d", i)] {
			t.Errorf("row %d of somebody else is gone", i)
		}
	}
	if rows != strangers+stored {
		t.Errorf("%d rows, want %d of others and %d of the runs", rows, strangers, stored)
	}
}
