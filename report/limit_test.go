package report

import (
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

var eightCPUs = record.Host{CPUs: 8}

// idleRun is ten seconds of load on two database nodes, with nothing near its end.
func idleRun() record.Run {
	node := func(name string, host spec.Host, cpus, used float64) record.Node {
		l := spec.Limits{CPUs: cpus, MemoryBytes: 1 << 30}
		return record.Node{Name: name, Host: host, Asked: l, InForce: &l, Enforced: true, CPUSeconds: &used, ThrottledS: ptr(0.0), OOMKills: ptr(int64(0))}
	}
	return record.Run{
		Arm: "cassandra:2 v2 otlp-grpc", Client: "otlp-grpc", WindowS: 10, DrainS: ptr(0.0), Load: spec.Load{Concurrency: 10, TagsCount: 10},
		Spec: spec.Arm{Backend: spec.Backend{Engine: spec.Cassandra, Nodes: 2}},
		Nodes: []record.Node{
			node("cassandra-1", spec.DatabaseHost, 0.5, 2), node("cassandra-2", spec.DatabaseHost, 0.5, 2.2),
			node("collector", spec.CollectorHost, 1, 3), node("load", spec.LoadHost, 1, 1), node("prometheus", spec.MonitorHost, 1, 1),
		},
		Collector: record.Collector{Settings: map[string]string{
			"config.exporters.jaeger_storage_exporter.trace_storage":       "store",
			"config.exporters.jaeger_storage_exporter.queue.enabled":       "true",
			"config.exporters.jaeger_storage_exporter.queue.num_consumers": "50",
		}},
		WriteStatementsPerSpan: ptr(15.0),
		Counters: []record.Counter{
			{Name: "write_latency_sum", Value: ptr(60.0)}, {Name: "write_latency_count", Value: ptr(30_000.0)}, {Name: "queue_capacity", Value: ptr(2000.0)},
		},
	}
}

func nodeOf(run *record.Run, name string) *record.Node {
	for i := range run.Nodes {
		if run.Nodes[i].Name == name {
			return &run.Nodes[i]
		}
	}
	return nil
}

func setCounter(run *record.Run, name string, value float64) {
	for i := range run.Counters {
		if run.Counters[i].Name == name {
			run.Counters[i].Value = &value
		}
	}
}

func flat(value float64) (samples []Sample) {
	for at := range 11 {
		samples = append(samples, Sample{float64(at), value})
	}
	return samples
}

func rising(perS float64) (samples []Sample) {
	for at := range 11 {
		samples = append(samples, Sample{float64(at), perS * float64(at)})
	}
	return samples
}

// Every kind of limit, planted alone, is named with the node and a figure that shows it.
func TestEveryLimitIsNamed(t *testing.T) {
	stock := func(run *record.Run) {
		run.Collector.Settings = map[string]string{
			"config.exporters.jaeger_storage_exporter.trace_storage": "store", "config.service.pipelines.traces.processors": "batch,adaptive_sampling",
		}
	}
	fullQueue := Series{{"collector", "queue_size"}: flat(1990)}
	for name, test := range map[string]struct {
		plant    func(*record.Run)
		series   Series
		host     record.Host
		want     LimitKind
		node     string
		evidence string
	}{
		"nothing": {func(*record.Run) {}, nil, eightCPUs, LimitNotFound, "", "load used 0.10 of 1 CPUs"},
		"generator pinned": {func(run *record.Run) { nodeOf(run, "load").CPUSeconds = ptr(9.8) }, nil, eightCPUs, LimitGenerator, "",
			"load used 0.98 of 1 CPUs"},
		"generator pinned, after a warm-up": {func(run *record.Run) {
			run.Load.WarmupS, run.UsageOfWindow = 10, true
			nodeOf(run, "load").CPUSeconds = ptr(9.8)
		}, nil, eightCPUs, LimitGenerator, "", "load used 0.98 of 1 CPUs"},
		"generator pinned, CPU of warm-up and window together": {func(run *record.Run) {
			run.Load.WarmupS = 10
			nodeOf(run, "load").CPUSeconds = ptr(19.6)
		}, nil, eightCPUs, LimitGenerator, "", "load used 0.98 of 1 CPUs"},
		"generator without CPU when it wanted it": {func(run *record.Run) {
			run.Sent.Pace = &record.Pace{Bound: record.GeneratorBound, Why: "its timers ran 30 ms late"}
			nodeOf(run, "load").CPUSeconds = ptr(9.8)
		}, nil, eightCPUs, LimitGenerator, "", "30 ms late; load used 0.98 of 1 CPUs"},
		"rate reached": {func(run *record.Run) {
			run.Sent.Pace = &record.Pace{Bound: record.RateReached, Why: "99.9 % of the offered spans were begun"}
		}, nil, eightCPUs, LimitRate, "", "offered spans"},
		"rate reached, not stored at that rate": {func(run *record.Run) {
			run.Sent.Pace = &record.Pace{Bound: record.RateReached, Why: "99.9 % of the offered spans were begun"}
			run.Ledger.Acked, run.SavedInWindowCounter = 1000, ptr(int64(500))
			nodeOf(run, "cassandra-1").CPUSeconds = ptr(4.8)
		}, nil, eightCPUs, LimitNodeCPU, "cassandra-1", "0.48 of 0.5"},
		"rate reached and stored at that rate": {func(run *record.Run) {
			run.Sent.Pace = &record.Pace{Bound: record.RateReached, Why: "99.9 % of the offered spans were begun"}
			run.Ledger.Acked, run.SavedInWindowCounter = 1000, ptr(int64(980))
		}, nil, eightCPUs, LimitRate, "", "offered spans"},
		"rate reached, stored later, for no reason that is measured": {func(run *record.Run) {
			run.Sent.Pace = &record.Pace{Bound: record.RateReached, Why: "99.9 % of the offered spans were begun"}
			run.Ledger.Acked, run.SavedInWindowCounter = 1000, ptr(int64(500))
		}, nil, eightCPUs, LimitNotFound, "", "but only 500 of 1000 acknowledged spans were saved within the window"},
		"target bound": {func(run *record.Run) {
			run.Sent.Pace = &record.Pace{Bound: record.TargetBound, Why: "closed loop"}
		}, nil, eightCPUs, LimitNotFound, "", "closed loop"},
		"collector full": {func(run *record.Run) { nodeOf(run, "collector").CPUSeconds = ptr(9.5) }, nil, eightCPUs, LimitCollector, "", "0.95 of 1"},
		"collector throttled": {func(run *record.Run) { nodeOf(run, "collector").ThrottledS = ptr(48.0) }, nil, eightCPUs, LimitCollector, "",
			"throttled for 48.0 s in 10.0 s, the sum of 8 CPUs"},
		"collector throttled in a few bursts": {func(run *record.Run) { nodeOf(run, "collector").ThrottledS = ptr(3.0) }, nil, eightCPUs, LimitNotFound, "",
			"throttled for 3.0 s in 10.0 s"},
		"node throttled": {func(run *record.Run) {
			nodeOf(run, "cassandra-2").CPUSeconds, nodeOf(run, "cassandra-2").ThrottledS = ptr(4.9), ptr(7.0)
		}, nil, eightCPUs, LimitThrottling, "cassandra-2", "0.49 of 0.5 CPUs"},
		"node out of CPU": {func(run *record.Run) { nodeOf(run, "cassandra-1").CPUSeconds = ptr(4.8) }, nil, eightCPUs, LimitNodeCPU, "cassandra-1", "0.48 of 0.5"},
		"nodes share CPUs": {func(run *record.Run) {
			for _, name := range []string{"cassandra-1", "cassandra-2"} {
				nodeOf(run, name).InForce = &spec.Limits{CPUSet: []int{0, 1}, CPUShares: 512}
			}
			nodeOf(run, "cassandra-1").CPUSeconds, nodeOf(run, "cassandra-2").CPUSeconds = ptr(8.0), ptr(11.0)
		}, nil, eightCPUs, LimitNodeCPU, "cassandra-2", "1.90 of the 2 CPUs that they share"},
		"node paused": {func(*record.Run) {}, Series{{"cassandra-1", "cpu"}: rising(0.2), {"cassandra-2", "cpu"}: flat(3)}, eightCPUs, LimitStalled,
			"cassandra-2", "no CPU at all for 10 of 10 s"},
		"disk": {func(run *record.Run) { run.Disk = &record.Disk{Device: "sda", Busy: 0.97} }, nil, eightCPUs, LimitDisk, "sda",
			"sda had requests under way for 97 % of the time"},
		"idle disk": {func(run *record.Run) { run.Disk = &record.Disk{Device: "sda", Busy: 0.5} }, nil, eightCPUs, LimitNotFound, "",
			"sda had requests under way for 50 % of the time"},
		"memory":        {func(run *record.Run) { nodeOf(run, "collector").OOMKills = ptr(int64(2)) }, nil, eightCPUs, LimitMemory, "collector", "2 out-of-memory kills under a limit of 1024 MiB"},
		"overcommitted": {func(run *record.Run) { run.Overcommitted = true }, nil, record.Host{CPUs: 1}, LimitHost, "", "0.92 of the machine's 1 CPUs"},
		"one write in flight": {func(run *record.Run) { stock(run); setCounter(run, "write_latency_sum", 9.7) }, nil, eightCPUs, LimitWriters, "",
			"0.97 of at most 1 writes in flight on average, 0.3 ms each, 15.0 statements a span: at most 206 spans/s"},
		"one write in flight, not drained": {func(run *record.Run) { stock(run); run.DrainS = nil; setCounter(run, "write_latency_sum", 14.4) },
			Series{{"collector", "write_latency_sum"}: {{-1, 0}, {10, 9.6}, {15, 14.4}}}, eightCPUs, LimitWriters, "",
			"0.96 of at most 1 writes in flight on average"},
		"not drained, not sampled": {func(run *record.Run) { stock(run); run.DrainS = nil }, nil, eightCPUs, LimitNotFound, "", "load used 0.10"},
		"one write in flight, node throttled": {func(run *record.Run) {
			stock(run)
			setCounter(run, "write_latency_sum", 9.8)
			nodeOf(run, "cassandra-1").CPUSeconds, nodeOf(run, "cassandra-1").ThrottledS = ptr(5.0), ptr(9.0)
		}, nil, eightCPUs, LimitWriters, "", "also throttling: cassandra-1"},
		"many writers, quick": {func(run *record.Run) {
			setCounter(run, "write_latency_sum", 480)
			setCounter(run, "write_latency_count", 480_000)
		}, nil, eightCPUs, LimitWriters, "", "48.00 of at most 50"},
		"many writers, slow": {func(run *record.Run) { setCounter(run, "write_latency_sum", 480) }, fullQueue, eightCPUs, LimitLatency, "",
			"16.0 ms each"},
		"queue": {func(*record.Run) {}, fullQueue, eightCPUs, LimitQueue, "", "queue of 2000 spans was full in 11 of 11 samples"},
		"embedded": {func(run *record.Run) {
			run.Spec.Backend = spec.Backend{Engine: spec.Badger}
			run.Counters = run.Counters[2:]
		}, fullQueue, eightCPUs, LimitLatency, "", "badger in it took writes no faster"},
		"no usage": {func(run *record.Run) { run.Nodes = nil }, nil, eightCPUs, LimitNotKnown, "", "no usage"},
	} {
		run := idleRun()
		test.plant(&run)
		got := LimitOf(test.host, run, test.series)
		if evidence := strings.Join(got.Evidence, "; "); got.Kind != test.want || got.Node != test.node || !strings.Contains(evidence, test.evidence) {
			t.Errorf("%s: %s (%s), want %s of %q and %q", name, got.Text(), evidence, test.want, test.node, test.evidence)
		}
	}
}

// What is named first stands nearest to the generator; the rest is still said.
func TestOtherLimitsAreMentioned(t *testing.T) {
	run := idleRun()
	nodeOf(&run, "load").CPUSeconds, nodeOf(&run, "cassandra-1").CPUSeconds = ptr(9.9), ptr(4.9)
	got := LimitOf(eightCPUs, run, nil)
	if got.Kind != LimitGenerator || !strings.Contains(strings.Join(got.Evidence, "\n"), "also node CPU: cassandra-1") {
		t.Errorf("%s: %q", got.Text(), got.Evidence)
	}
}

func TestWriteAmplificationIsPredicted(t *testing.T) {
	run := idleRun()
	if got := predictedStatements(run); got == nil || *got != 15 {
		t.Errorf("10 tags: %v, want 15: one insert a tag and five", got)
	}
	run.Load.ResourceAttributes, run.Collector.Settings = 2, map[string]string{"env.COLLECTOR_NUM_WORKERS": "50"}
	if got := predictedStatements(run); got == nil || *got != 17 {
		t.Errorf("v1 over OTLP with two resource attributes: %v, want 17", got)
	}
	run.Client = "thrift-http"
	if got := predictedByTable(run)["tag_index"]; got != 13 {
		t.Errorf("v1 from thrift: %v inserts into tag_index, want 13: a tag of its own", got)
	}
	run.Load.Events, run.Load.ErrorPercent = 3, 50
	if got := predictedByTable(run)["tag_index"]; got != 16.5 {
		t.Errorf("v1 from thrift, three events, half of the spans errors: %v, want 16.5", got)
	}
	run.Client = "otlp-http"
	if got := predictedByTable(run)["tag_index"]; got != 16 {
		t.Errorf("the same over OTLP: %v, want 16: an error has two tags", got)
	}
	run.Load.TagLength = 256
	if got := predictedByTable(run)["tag_index"]; got != 6 {
		t.Errorf("values of 256 bytes: %v, want 6: Jaeger indexes shorter ones", got)
	}
	run.Client = "jaeger-client"
	if got := predictedStatements(run); got != nil {
		t.Errorf("a client with tags of its own: %v", *got)
	}
}

// Spans of the window are divided by CPU seconds of the window: what a warm-up used has no part in them.
func TestAWarmUpHasNoPartInSpansPerCPUSecond(t *testing.T) {
	run := idleRun()
	run.StoredInWindow = ptr(int64(4200))
	perCPU := func(run record.Run) *float64 {
		for _, q := range Quantities(byWriteTime) {
			if q.Name == "per_database_cpu" {
				return q.Value(run)
			}
		}
		return nil
	}
	if got := perCPU(run); got == nil || *got != 1000 {
		t.Errorf("4,200 spans in 4.2 CPU seconds: %v", got)
	}
	run.Load.WarmupS = 10
	if got := perCPU(run); got != nil {
		t.Errorf("an older record has the warm-up's CPU seconds too: %v, want not known", *got)
	}
	run.UsageOfWindow = true
	if got := perCPU(run); got == nil || *got != 1000 {
		t.Errorf("after a warm-up: %v", got)
	}
}

func TestUnevenNodesAreNoted(t *testing.T) {
	run := idleRun()
	if text := imbalance(run); text != "" {
		t.Errorf("2.0 and 2.2 s: %q", text)
	}
	nodeOf(&run, "cassandra-2").CPUSeconds = ptr(4.0)
	if text := imbalance(run); !strings.Contains(text, "cassandra-1 2.0, cassandra-2 4.0") {
		t.Errorf("2 and 4 s: %q", text)
	}
}

func TestSeriesDecode(t *testing.T) {
	text := seriesHeader + "\n-0.500,collector,queue_size,spans,5\n0.500,collector,queue_size,spans,7\n"
	series, err := decodeSeries(strings.NewReader(text))
	if err != nil || len(series.within(SeriesKey{"collector", "queue_size"}, 1)) != 1 {
		t.Errorf("%v, %v", series, err)
	}
	for _, bad := range []string{"", "a,b\n", seriesHeader + "\nx,collector,cpu,s,1\n", seriesHeader + "\n1,collector,cpu,s\n"} {
		if _, err := decodeSeries(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken for a series", bad)
		}
	}
}

// Real runs on one Cassandra node under half a CPU: Jaeger as shipped writes one span at a time, and
// that is its limit; with fifty writers the node is.
func TestLimitsOfRecordedRuns(t *testing.T) {
	saved, err := ReadSaved("testdata/collectors")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, run := range saved.Record.Runs {
		if saved.Series[run.Folder] == nil {
			t.Errorf("%s has no series", run.Folder)
		}
		want := LimitThrottling
		if run.Spec.Collector == "v2-stock" {
			want = LimitWriters
		}
		if got := LimitOf(saved.Record.Host, run, saved.Series[run.Folder]); got.Kind != want {
			t.Errorf("%s, round %d: %s (%q), want %s", run.Arm, run.Round, got.Text(), got.Evidence, want)
		}
		if got := predictedStatements(run); got == nil || *run.WriteStatementsPerSpan < *got || *run.WriteStatementsPerSpan > *got*1.01 {
			t.Errorf("%s: %v statements a span predicted, %v measured", run.Arm, got, *run.WriteStatementsPerSpan)
		}
		seen[run.Spec.Collector]++
	}
	if seen["v2-stock"] == 0 || seen["v2"] == 0 {
		t.Errorf("recorded runs: %v", seen)
	}
}
