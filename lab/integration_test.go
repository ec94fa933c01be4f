package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocql/gocql"
	"github.com/google/go-cmp/cmp"

	"jaegerlab/lab/internal/need"
	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
)

// These tests prove the lab's detectors on real programs: what is planted between the drain and
// the read-back, or broken in mid-run, must be named by the record, and nothing may be left.

// measureWith runs one arm as plain processes under some seconds of load.
func measureWith(t *testing.T, b spec.Backend, seconds int, hooks Hooks) (record.Run, Result, error) {
	t.Helper()
	s := spec.Default()
	s.Experiment, s.Runtime, s.Results = "planted", spec.Process, t.TempDir()
	s.Backends, s.Named, s.Load.DurationS, s.Load.DrainS = []spec.Backend{b}, true, seconds, 60
	needs(t, s)
	ctx := t.Context()
	result, err := Run(ctx, s, Options{Console: NewConsole(testWriter{t}, false), Hooks: hooks})
	if len(result.Record.Runs) != 1 {
		t.Fatalf("the record has %d runs, want 1: %v", len(result.Record.Runs), err)
	}
	saved, loadErr := record.Load(result.Dir)
	if loadErr != nil {
		t.Fatalf("the record can't be read back: %v", loadErr)
	}
	if saved.Complete != (err == nil) {
		t.Errorf("complete %v, but the error is %v", saved.Complete, err)
	}
	nothingLeft(t)
	return saved.Runs[0], result, err
}

// needs skips, with a counted reason, where setup has not made what the arms need.
func needs(t *testing.T, s spec.Spec) {
	t.Helper()
	if testing.Short() {
		t.Skip(need.Reason + "time: not with -short")
	}
	absent, err := setup.Missing(t.Context(), setup.NeedOf(s, spec.Process))
	if err != nil {
		t.Fatal(err)
	}
	if len(absent) > 0 {
		t.Skip(need.Reason + absent[0].String())
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// nothingLeft fails when a temporary folder or a run's state is still there. Sweeping would hide
// what the run itself should have removed, so nothing is swept.
func nothingLeft(t *testing.T) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "jaegerlab-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if ended, err := node.Sweep(t.Context(), node.Dead); err != nil || len(ended) > 0 {
		t.Errorf("a sweep found leftovers: %v, %v", ended, err)
	}
}

func open(t *testing.T, s Stack) *gocql.Session {
	t.Helper()
	cluster := gocql.NewCluster(s.Cluster.Nodes()[0].Addr("cql"))
	cluster.Keyspace = keyspace(s.Numbering.Run)
	cluster.DisableInitialHostLookup, cluster.Timeout = true, 10*time.Second
	cluster.Events.DisableTopologyEvents, cluster.Events.DisableNodeStatusEvents = true, true // one node, by the address that the lab knows
	session, err := cluster.CreateSession()
	if err != nil {
		t.Fatalf("open a session of the test's own: %v", err)
	}
	return session
}

// key is the primary key of a row of Jaeger's table traces.
type key struct {
	trace []byte
	span  int64
	hash  int64
}

func (k key) String() string { return fmt.Sprintf("%x:%016x", k.trace, k.span) }

func firstKeys(t *testing.T, session *gocql.Session, n int) []key {
	t.Helper()
	iter := session.Query(`SELECT trace_id, span_id, span_hash FROM traces LIMIT ?`, n).Iter()
	var keys []key
	for {
		var k key
		if !iter.Scan(&k.trace, &k.span, &k.hash) {
			break
		}
		keys = append(keys, k)
	}
	if err := iter.Close(); err != nil || len(keys) != n {
		t.Fatalf("read %d keys: got %d, %v", n, len(keys), err)
	}
	return keys
}

// Between drain and read-back 7 rows are deleted, 5 known ids get a second row with another hash
// and one row is foreign: the ledger must name exactly those.
func TestIntegrationPlantedDefects(t *testing.T) {
	var deleted, doubled []string
	foreign := key{trace: []byte("jaegerlab-stray!"), span: 77, hash: 1}
	run, _, err := measureWith(t, spec.Backend{Engine: spec.Cassandra, Nodes: 1}, 4, Hooks{
		BeforeReadBack: func(ctx context.Context, s Stack) error {
			session := open(t, s)
			defer session.Close()
			keys := firstKeys(t, session, 12)
			const insert = `INSERT INTO traces (trace_id, span_id, span_hash, start_time) VALUES (?, ?, ?, ?)`
			var problems []error
			for _, k := range keys[:7] {
				problems = append(problems, session.Query(`DELETE FROM traces WHERE trace_id = ? AND span_id = ? AND span_hash = ?`,
					k.trace, k.span, k.hash).WithContext(ctx).Exec())
				deleted = append(deleted, k.String())
			}
			for _, k := range keys[7:] {
				problems = append(problems, session.Query(insert, k.trace, k.span, k.hash+1, int64(1)).WithContext(ctx).Exec())
				doubled = append(doubled, k.String())
			}
			problems = append(problems, session.Query(insert, foreign.trace, foreign.span, foreign.hash, int64(1)).WithContext(ctx).Exec())
			return errors.Join(problems...)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := run.Ledger
	if run.Verdict != record.Lossy || l.Missing != 7 || *l.Duplicates != 5 || *l.Foreign != 1 || *l.Rewritten != 5 {
		t.Errorf("verdict %s, missing %d, duplicates %d, foreign %d, rewritten %d; want lossy, 7, 5, 1, 5",
			run.Verdict, l.Missing, *l.Duplicates, *l.Foreign, *l.Rewritten)
	}
	named := map[string][]string{}
	for _, example := range l.Examples {
		named[example.Kind] = slices.Sorted(slices.Values(example.IDs))
	}
	slices.Sort(deleted)
	slices.Sort(doubled)
	for kind, want := range map[string][]string{"missing": deleted, "duplicate": doubled, "foreign": {foreign.String()}, "rewritten": doubled} {
		if diff := cmp.Diff(want, named[kind]); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
	for _, law := range l.Laws {
		if !law.Holds {
			t.Errorf("law broken: %+v", law)
		}
	}
}

// A collector killed in mid-run takes its queue with it: acknowledged spans are missing, the run
// is incomplete, and the death is named with its signal.
func TestIntegrationCollectorKilled(t *testing.T) {
	run, result, err := measureWith(t, spec.Backend{Engine: spec.Cassandra, Nodes: 1}, 8, Hooks{
		AtLoad: func(ctx context.Context, s Stack) {
			pause(ctx, 3*time.Second)
			_ = s.Collector.Node.Kill(ctx)
		},
	})
	if err == nil || !strings.Contains(run.Error, "collector died in mid-run") || !strings.Contains(run.Error, "SIGKILL") {
		t.Errorf("the error does not name the death: %v; %s", err, run.Error)
	}
	if run.Ledger.Acked == 0 || run.Ledger.Stored == 0 || run.Verdict == record.Whole {
		t.Errorf("acked %d, stored %d, verdict %s", run.Ledger.Acked, run.Ledger.Stored, run.Verdict)
	}
	if want := "died in mid-run"; !strings.Contains(result.Record.Incomplete, want) {
		t.Errorf("incomplete: %q", result.Record.Incomplete)
	}
}

// With a database node gone, what was not read is not known to be absent: never a loss, never whole.
func TestIntegrationDatabaseNodeKilled(t *testing.T) {
	run, _, err := measureWith(t, spec.Backend{Engine: spec.Cassandra, Nodes: 2}, 8, Hooks{
		AtLoad: func(ctx context.Context, s Stack) {
			pause(ctx, 3*time.Second)
			_ = s.Cluster.Nodes()[1].Kill(ctx)
		},
	})
	if err == nil || !strings.Contains(run.Error, "cassandra-2 died in mid-run") {
		t.Errorf("the error does not name the death: %v", err)
	}
	if run.Verdict != record.Unknown {
		t.Errorf("verdict %s, want unknown: %v", run.Verdict, run.Reasons)
	}
}

// longerThanABeat is an outage that is seen for certain: two beats of two seconds without an answer, and
// a beat that was under way when it began.
const longerThanABeat = 8 * time.Second

// Case 16: a node that goes away for some seconds and comes back, at one copy a row. Writes to it
// are late, the outage is in the record with its seconds, and the driver is found to have recovered.
func TestIntegrationDatabaseNodeAway(t *testing.T) {
	run, _, err := measureWith(t, spec.Backend{Engine: spec.Cassandra, Nodes: 2}, 22, Hooks{
		AtLoad: func(ctx context.Context, s Stack) {
			away := s.Cluster.Nodes()[1]
			pause(ctx, 3*time.Second)
			_ = away.Pause(ctx)
			pause(ctx, longerThanABeat)
			_ = away.Resume(context.WithoutCancel(ctx))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	warnings := strings.Join(run.Warnings, "\n")
	if !strings.Contains(warnings, "cassandra-2 gave no answer from second") {
		t.Errorf("the outage is not named: %s", warnings)
	}
	if run.Unfit != "" || run.Verdict == record.Unknown || run.Ledger.Stored == 0 {
		t.Errorf("unfit %q, verdict %s: %v", run.Unfit, run.Verdict, run.Reasons)
	}
	if l := run.Ledger; l.Missing > 0 && run.Verdict != record.Lossy {
		t.Errorf("%d missing, verdict %s", l.Missing, run.Verdict)
	}
}

// An interrupt saves what was measured, tears down and returns within 15 seconds.
func TestIntegrationInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var at time.Time
	s := spec.Default()
	s.Experiment, s.Runtime, s.Results = "interrupt", spec.Process, t.TempDir()
	s.Backends, s.Named, s.Load.DurationS = []spec.Backend{{Engine: spec.Badger}}, true, 30
	needs(t, s)
	result, err := Run(ctx, s, Options{Console: NewConsole(testWriter{t}, false), Hooks: Hooks{
		AtLoad: func(loading context.Context, _ Stack) {
			pause(loading, 2*time.Second)
			at = time.Now()
			interrupt()
		},
	}})
	if took := time.Since(at); took > 15*time.Second {
		t.Errorf("ended %s after the interrupt, want at most 15 s", took)
	}
	if !errors.Is(err, context.Canceled) || result.Record.Complete {
		t.Errorf("complete %v, error %v", result.Record.Complete, err)
	}
	run := result.Record.Runs[0]
	if run.Ledger.Generated == 0 || run.Verdict != record.Unknown {
		t.Errorf("generated %d, verdict %s", run.Ledger.Generated, run.Verdict)
	}
	if outcomes, err := record.ReadOutcomes(filepath.Join(result.Dir, run.Folder)); err != nil || len(outcomes) == 0 {
		t.Errorf("%d outcomes saved, %v", len(outcomes), err)
	}
	nothingLeft(t)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
