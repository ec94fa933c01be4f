package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// fairRecord has five rounds of ScyllaDB and Cassandra, the first a fifth above, that differ in
// nothing but the engine.
func fairRecord() record.Record {
	s := baseSpec(spec.Backend{Engine: spec.Cassandra, Nodes: 2}, spec.Backend{Engine: spec.Scylla, Nodes: 3})
	s.Rounds, s.Treatment = 5, []string{spec.TreatEngine}
	r := baseRecord(s)
	for i := range 5 {
		cassandra := cassandraRun(44_000, 0, 40_000+int64(100*i))
		cassandra.Round, cassandra.Folder = i+1, fmt.Sprint("cassandra-", i)
		cassandra.Facts = &record.Facts{}
		cassandra.Engine.Settings = map[string]string{"commitlog_sync": "periodic, 10s", "disk": "one"}
		memory := int64(3) << 30
		cassandra.Nodes = []record.Node{
			{Name: "a", Host: spec.DatabaseHost, InForce: &spec.Limits{CPUSet: []int{0, 1}, MemoryBytes: memory}, CPUSeconds: ptr(60.0), Enforced: true},
			{Name: "collector", Host: spec.CollectorHost, InForce: &spec.Limits{CPUSet: []int{2}}, CPUSeconds: ptr(20.0), Enforced: true},
			{Name: "load", Host: spec.LoadHost, InForce: &spec.Limits{CPUSet: []int{3}}, CPUSeconds: ptr(5.0), Enforced: true},
		}
		cassandra.HostLoad, cassandra.Backlog = ptr(0.1), ptr(0.0)
		scylla := cassandra
		scylla.Spec.Backend, scylla.Engine = spec.Backend{Engine: spec.Scylla, Nodes: 3}, cassandra.Engine
		scylla.Arm, scylla.Engine.Name, scylla.Engine.Version, scylla.Engine.Nodes = scylla.Spec.Name(), "ScyllaDB", "6.2.3", 3
		scylla.Folder = fmt.Sprint("scylla-", i)
		scylla.StoredInWindow = ptr(48_000 + int64(100*i))
		r.Runs = append(r.Runs, cassandra, scylla)
	}
	return r
}

// A winner is named when everything is in order, and each single thing out of order takes it away
// and says why, while figures and difference stay.
func TestWhatForbidsAWinner(t *testing.T) {
	each := func(change func(*record.Run)) func(*record.Record) {
		return func(r *record.Record) {
			for i := range r.Runs {
				if r.Runs[i].Spec.Backend.Engine == spec.Scylla {
					r.Runs[i].Nodes = slices.Clone(r.Runs[i].Nodes)
					change(&r.Runs[i])
				}
			}
		}
	}
	for name, test := range map[string]struct {
		plant func(*record.Record)
		want  string // "" = the winner is named
	}{
		"in order": {func(*record.Record) {}, ""},
		"stand-in": {each(func(run *record.Run) { run.Engine.StandIn = true }), "stand-in, which is never ranked"},
		"a driver that did not recover": {func(r *record.Record) { r.Runs[1].Unfit = "driver did not recover" },
			"scylla:3 v2 otlp-grpc, round 1, does not judge its store: driver did not recover"},
		"a lossy round":       {func(r *record.Record) { r.Runs[1].Verdict = record.Lossy }, "scylla:3 v2 otlp-grpc is lossy in 1 of 5 rounds"},
		"an unknown round":    {func(r *record.Record) { r.Runs[0].Verdict = record.Unknown }, "cassandra:2 v2 otlp-grpc is unknown in 1 of 5 rounds"},
		"limits not in force": {each(func(run *record.Run) { run.LimitsInForce = false }), "limits in force (true against false)"},
		"more memory": {each(func(run *record.Run) {
			run.Nodes[0].InForce = &spec.Limits{CPUSet: []int{0, 1}, MemoryBytes: 4 << 30}
		}), "memory (3072 MiB against 4096 MiB)"},
		"other CPUs": {each(func(run *record.Run) {
			run.Nodes[0].InForce = &spec.Limits{CPUSet: []int{0, 1, 2}, MemoryBytes: 3 << 30}
		}), "CPU set 0 1 against CPU set 0 1 2"},
		"replication":    {each(func(run *record.Run) { run.Spec.Replication = 3 }), "replication (1 against 3)"},
		"consistency":    {each(func(run *record.Run) { run.Collector.Settings = map[string]string{"x.query.consistency": "QUORUM"} }), "write consistency (LOCAL_ONE against QUORUM)"},
		"counted at ONE": {each(func(run *record.Run) { run.Facts = &record.Facts{AbsentUnknown: true} }), "read consistency (ALL against ONE)"},
		"commit log": {each(func(run *record.Run) {
			run.Engine.Settings = map[string]string{"commitlog_sync": "batch", "disk": "one"}
		}), "commit-log sync (periodic, 10s against batch)"},
		"not known": {each(func(run *record.Run) { run.Engine.Settings = nil }), "commit-log sync (not known)"},
		"collector": {each(func(run *record.Run) { run.Collector.Program.Version = "2.20.0" }), "collector (jaeger 2.13.0 against jaeger 2.20.0)"},
		"an argument": {each(func(run *record.Run) { run.Collector.Settings = map[string]string{"arg.2": "--num-workers=9"} }),
			"setting arg.2"},
		"connections": {each(func(run *record.Run) {
			run.Collector.Settings = map[string]string{"config.extensions.store.connections_per_host": "9"}
		}), "connections_per_host"},
		"a setting":   {each(func(run *record.Run) { run.Collector.Settings = map[string]string{"queue": "5 spans"} }), "setting queue"},
		"client":      {each(func(run *record.Run) { run.Client = "thrift-http" }), "client"},
		"busy host":   {each(func(run *record.Run) { run.HostLoad = ptr(1.5) }), "CPUs that others used on the host (0.1 against 1.5)"},
		"compactions": {each(func(run *record.Run) { run.Backlog = ptr(40.0) }), "compactions pending"},
		"generator":   {each(func(run *record.Run) { run.Nodes[2].CPUSeconds = ptr(59.0) }), "held back by its generator in 5 of 5 rounds"},
		"generator and collector in turn": {func(r *record.Record) {
			for i := 1; i < 9; i += 2 { // four of five rounds of ScyllaDB, two for each reason
				r.Runs[i].Nodes = slices.Clone(r.Runs[i].Nodes)
				r.Runs[i].Nodes[1+i/2%2].CPUSeconds = ptr(59.0)
			}
		}, "held back by its collector CPU in 2 and generator in 2 of 5 rounds"},
		"collector's CPU": {each(func(run *record.Run) { run.Nodes[1].CPUSeconds = ptr(59.0) }), "held back by its collector CPU"},
		"noise": {func(r *record.Record) {
			r.Runs[1].StoredInWindow, r.Runs[3].StoredInWindow = ptr(int64(20_000)), ptr(int64(21_000))
		}, noDifference},
		"too few rounds":  {func(r *record.Record) { r.Runs = r.Runs[:6] }, "needs 4 rounds of each"},
		"a round without": {func(r *record.Record) { r.Runs[0].StoredInWindow, r.Runs[0].SavedInWindowCounter = nil, nil }, "no figures to compare"},
	} {
		r := fairRecord()
		test.plant(&r)
		doc := Of(r)
		notes := strings.Join(doc.Notes, "\n")
		named := strings.Contains(notes, "Winner: scylla:3 v2 otlp-grpc")
		if named != (test.want == "") || !strings.Contains(notes, test.want) {
			t.Errorf("%s: winner named: %v, want %q in:\n%s", name, named, test.want, notes)
		}
		if c := find(t, doc, "Comparison", "scylla:3", "winner"); (c.Plain == "none") == named {
			t.Errorf("%s: the table says %q", name, c.Plain)
		}
	}
}

// With the collector as the treatment its writes in flight are what is compared.
func TestTheTreatmentMayBeTheLimit(t *testing.T) {
	r := fairRecord()
	r.Spec.Treatment = []string{spec.TreatCollector}
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Spec.Backend.Engine == spec.Scylla {
			stored := run.StoredInWindow
			folder, round := run.Folder, run.Round
			*run = r.Runs[0]
			run.StoredInWindow, run.Folder, run.Round = stored, folder, round
			run.Arm, run.Spec.Collector, run.Collector.Name = "cassandra:2 v2-stock otlp-grpc", "v2-stock", "v2-stock"
			run.Collector.Settings = map[string]string{"queue": "none"}
			run.Nodes = slices.Clone(run.Nodes)
			run.Nodes[1].CPUSeconds = ptr(59.0)
		}
	}
	notes := strings.Join(Of(r).Notes, "\n")
	if !strings.Contains(notes, "Winner: cassandra:2 v2-stock otlp-grpc") {
		t.Errorf("no winner between collectors:\n%s", notes)
	}
}

// Several rivals of one baseline share the risk of a false call, and it is said.
func TestRivalsShareTheRisk(t *testing.T) {
	r := fairRecord()
	for _, run := range slices.Clone(r.Runs[:10]) {
		if run.Spec.Backend.Engine == spec.Scylla {
			run.Arm += " third"
			run.Folder += "-third"
			r.Runs = append(r.Runs, run)
		}
	}
	wantNote(t, Of(r), "with 2 comparisons a difference is called at p of at most 0.025")
}

// An arm that was given more rounds has more losses in all: what is compared is a round's.
func TestCountsOfUnequalRoundsAreComparedByRound(t *testing.T) {
	r := fairRecord()
	for i := range r.Runs {
		r.Runs[i].Ledger.Refused = 10
	}
	more := r.Runs[1]
	more.Round, more.Folder = 6, "scylla-6"
	r.Runs = append(r.Runs, more)
	for _, table := range Of(r).Tables {
		if table.Title != "Every quantity compared" {
			continue
		}
		for _, row := range table.Rows {
			if row[1].Text != "refused (spans)" {
				continue
			}
			if row[3].Text != "50" || row[4].Text != "60" || row[5].Text != "same" || row[8].Text != "exact, 5+6" {
				t.Errorf("%v", row)
			}
			return
		}
	}
	t.Error("refused spans are not compared")
}
