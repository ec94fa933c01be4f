package report

import (
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// The recorded comparisons that the golden files render. They are built here, saved and loaded,
// so that what is rendered has been through record.json.

func ptr[T any](v T) *T { return &v }

const second = int64(time.Second)

var started = time.Date(2026, 5, 17, 9, 30, 0, 0, time.UTC)

func baseSpec(backends ...spec.Backend) spec.Spec {
	return spec.Spec{
		Experiment: "backends", Runtime: spec.Docker, Backends: backends, Collectors: []string{"v2"}, Clients: []string{"otlp-grpc"},
		Profile: spec.T2, Replication: 1, Rounds: 1, Seed: 7,
		Load: spec.Load{Concurrency: 10, SpansCount: 10, TagsCount: 10, DurationS: 60, Services: 1, TagValues: 1, RequestTimeoutS: 30},
	}
}

func baseRecord(s spec.Spec, runs ...record.Run) record.Record {
	return record.Record{
		Version: record.Version, ID: "20260517T093000Z-0a1b2c", Experiment: s.Experiment, Lab: "v0.1.0",
		Started: started, Ended: started.Add(5 * time.Minute), Complete: true, Spec: s,
		Host: record.Host{OS: "linux", Arch: "amd64", Kernel: "6.1.0", CPUModel: "Example CPU", CPUs: 8, MemoryBytes: 16 << 30, CgroupVersion: 2, Docker: "27.1"},
		Runs: runs,
	}
}

func ledgerOf(acked, missing int64) record.Ledger {
	return record.Ledger{
		Generated: acked, Acked: acked, Stored: acked - missing, Missing: missing,
		Foreign: ptr(int64(0)), Duplicates: ptr(int64(0)), Rows: ptr(acked - missing), Rewritten: ptr(int64(0)),
		Cells: []record.Cell{{Answer: "acked", Stored: true, Spans: acked - missing}, {Answer: "acked", Spans: missing}},
		Laws:  []record.Law{{Law: "the cells sum to generated", Holds: true, Seen: "fine"}},
	}
}

// latencyOf is a distribution of 100 values with this median, 99th percentile and maximum, in ms.
func latencyOf(p50, p99, most int64) *record.Latency {
	hist := record.NewLatencyHistogram()
	for i := range int64(100) {
		ms := p50
		switch {
		case i == 99:
			ms = most
		case i >= 50:
			ms = p50 + (p99-p50)*(i-49)/49
		}
		_ = hist.RecordValue(ms * 1000) // all are in its range
	}
	latency, _ := record.NewLatency(hist)
	return latency
}

func cassandraRun(acked, missing, inWindow int64) record.Run {
	arm := spec.Arm{Backend: spec.Backend{Engine: spec.Cassandra, Nodes: 2}, Collector: "v2", Client: "otlp-grpc", Profile: spec.T2, Replication: 1}
	run := record.Run{
		Arm: arm.Name(), Spec: arm, Round: 1, Runtime: spec.Docker, Profile: spec.T2, Folder: "cassandra-2-v2-otlp-grpc-round-1", Started: started,
		Engine: record.Engine{Name: "Apache Cassandra", Version: "5.0.6", Nodes: 2, Replication: "{'class': 'SimpleStrategy', 'replication_factor': '1'}",
			Evidence: []string{"system.local release_version 5.0.6"}},
		Collector: record.Collector{Name: "v2", Program: record.Program{Name: "jaeger", Version: "2.13.0", Source: "jaegertracing/jaeger:2.13.0"},
			Settings: map[string]string{"config.yaml": "receivers:\n  otlp:\n    protocols: {grpc: {}}\n", "queue": "2000 spans, 50 consumers"}},
		Client: "otlp-grpc", LimitsInForce: true, WindowS: 60.0,
		Window: record.Window{Start: started.UnixNano(), End: started.UnixNano() + 60*second},
		Sent:   record.Sent{Requests: acked / 11, Bytes: 1 << 20, CPUSeconds: 12.25, RetryRule: "OTLP's retryable codes, 5 attempts"},
		Ledger: ledgerOf(acked, missing), StoredInWindow: ptr(inWindow), StoredInWindowSource: "write time",
		SavedInWindowCounter: ptr(inWindow + 120), SavedInWindowSource: "jaeger_storage_inserts", StoredAfterDrain: ptr(acked - missing),
		DrainS: ptr(3.21), StoredPerS: ptr(float64(inWindow) / 60), Latencies: record.Latencies{SendToStore: latencyOf(180, 1234, 2000), Request: latencyOf(110, 640, 900)},
		ReadBackS: ptr(2.5), Ranges: &record.Ranges{Asked: 256, Read: 256},
		StartToLoadS: 58.5, WriteStatementsPerSpan: ptr(17.0), Verdict: record.Whole,
		Counters: []record.Counter{{Name: "saved", Metric: "jaeger_storage_inserts", Value: ptr(float64(acked - missing))}, {Name: "dropped"}},
		Nodes: []record.Node{{Name: "cassandra-1", Host: spec.DatabaseHost, Asked: spec.Limits{CPUSet: []int{0, 1}, CPUShares: 512, MemoryBytes: 3 << 29}, Enforced: true,
			CPUSeconds: ptr(41.5), ThrottledS: ptr(0.0), MemoryBytes: ptr(int64(900 << 20)), MemoryPeakBytes: ptr(int64(1100 << 20)), OOMKills: ptr(int64(0)),
			Log: "cassandra-2-v2-otlp-grpc-round-1/logs/cassandra-1.log"}},
		Files: []record.File{{Path: "cassandra-2-v2-otlp-grpc-round-1/rows.csv.gz", SHA256: "00ff", Bytes: 1234567}},
	}
	if missing > 0 {
		run.Verdict, run.Reasons = record.Lossy, []string{"3 acknowledged spans are not stored"}
		run.Ledger.Examples = []record.Example{{Kind: "missing", IDs: []string{"01:01", "01:02", "01:03", "01:04"}}}
	}
	return run
}

func badgerRun() record.Run {
	arm := spec.Arm{Backend: spec.Backend{Engine: spec.Badger}, Collector: "v2", Client: "otlp-grpc", Profile: spec.T2, Replication: 1}
	run := cassandraRun(120_010, 0, 0)
	run.Arm, run.Spec, run.Engine = arm.Name(), arm, record.Engine{Name: "badger"}
	run.StoredInWindow, run.StoredInWindowSource, run.StoredPerS, run.SendToStore, run.WriteStatementsPerSpan = nil, "", nil, nil, nil
	run.SavedInWindowCounter = ptr(int64(119_900))
	run.Ledger.Foreign, run.Ledger.Duplicates, run.Ledger.Rows, run.Ledger.Rewritten = nil, nil, nil, nil
	run.Nodes, run.Files = nil, nil
	return run
}

// wholeRecord compares a store that has write times with one that has none.
func wholeRecord() record.Record {
	s := baseSpec(spec.Backend{Engine: spec.Cassandra, Nodes: 2}, spec.Backend{Engine: spec.Badger})
	r := baseRecord(s, cassandraRun(44_000, 0, 43_500), badgerRun())
	r.LeftOut = []record.LeftOut{{Arm: "scylla:3 v2 otlp-grpc", Reason: "image scylladb/scylla:6.2.3 is not present and there is no registry"}}
	return r
}

// lossyRecord has three rounds of one arm: one lossy, one without an end.
func lossyRecord() record.Record {
	s := baseSpec(spec.Backend{Engine: spec.Cassandra, Nodes: 2})
	s.Rounds = 3
	first, second, third := cassandraRun(44_000, 0, 43_500), cassandraRun(46_002, 3, 45_100), cassandraRun(0, 0, 0)
	second.Round, third.Round = 2, 3
	second.Warnings = []string{"throttled: the collector waited 12.0 s for its CPU quota"}
	third = record.Run{Arm: third.Arm, Spec: third.Spec, Round: 3, Runtime: spec.Docker, Profile: spec.T2, Nodes: third.Nodes,
		Error: "node cassandra-2 ended in the load: exit status 137, killed for want of memory (OOM)\nlog:\n  INFO one\n  ERROR two"}
	third.Nodes[0].Exit = "exit status 137 (OOM)"
	r := baseRecord(s, first, second, third)
	r.Complete, r.Incomplete = false, third.Error
	return r
}

// unknownRecord could not read every range, on a machine that is too small and enforces nothing.
func unknownRecord() record.Record {
	s := baseSpec(spec.Backend{Engine: spec.Cassandra, Nodes: 2})
	s.Runtime = spec.Process
	run := cassandraRun(44_000, 1_100, 0)
	run.Runtime, run.Overcommitted, run.LimitsInForce = spec.Process, true, false
	run.Verdict, run.Reasons = record.Unknown, []string{"read-back incomplete: 250 of 256 ranges"}
	run.StoredInWindow, run.StoredInWindowSource, run.StoredPerS, run.SendToStore, run.StoredAfterDrain, run.DrainS = nil, "", nil, nil, nil, nil
	run.Ranges.Read = 250
	run.SavedInWindowCounter = nil
	run.Ledger.Examples = nil
	run.Warnings = []string{"stored in the window and send-to-store latency are unknown: only 250 of 256 ranges were read back"}
	run.WarmupLedger = ptr(ledgerOf(1_100, 0))
	run.Nodes[0].Enforced, run.Nodes[0].ThrottledS = false, nil
	r := baseRecord(s, run)
	r.Host.CPUs = 2
	r.Warnings = []string{"another measured run waited for this one"}
	return r
}

// hostileRecord holds a stand-in, and foreign text that tries to be markup, a column or a colour.
func hostileRecord() record.Record {
	const evil = "a|b\n| c | <script>alert(1)</script> ![x](http://example.test/p.png) `code` **bold** \x1b[31mred\u202eback\x00\xff"
	s := baseSpec(spec.Backend{Engine: spec.Scylla, Nodes: 3}, spec.Backend{Engine: spec.Cassandra, Nodes: 2})
	s.Experiment = evil
	standIn, other := cassandraRun(30_800, 0, 30_000), cassandraRun(44_000, 0, 43_500)
	standIn.Spec.Backend = spec.Backend{Engine: spec.Scylla, Nodes: 3}
	standIn.Arm, standIn.Engine.StandIn, standIn.Engine.Nodes = standIn.Spec.Name(), true, 3
	other.Arm, other.Collector.Name = "cassandra:2 "+evil, evil
	other.Warnings = []string{evil, "# not a heading", "- not a list"}
	other.Engine.Version = evil
	other.Collector.Settings = map[string]string{"evil": evil, "fence": "```\n# out\n````\n"}
	other.Nodes[0].Name, other.Nodes[0].Log = evil, evil
	other.Counters = append(other.Counters, record.Counter{Name: evil, Metric: evil})
	other.Sent.RefusedReasons = []record.Reason{{Reason: evil, Spans: 12}}
	r := baseRecord(s, standIn, other)
	r.Complete, r.Incomplete = false, "# interrupted\n```\n"+evil
	return r
}

func records() map[string]record.Record {
	return map[string]record.Record{
		"whole": wholeRecord(), "lossy": lossyRecord(), "unknown": unknownRecord(), "hostile": hostileRecord(),
	}
}
