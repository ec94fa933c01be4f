package lab

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jaegerlab/lab/load"
	"jaegerlab/lab/node"
	"jaegerlab/lab/observe"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/stack"
)

// What is left is what the plan says, corrected by how the finished rounds kept to it.
func TestRemainingTimeLearnsFromFinishedRounds(t *testing.T) {
	now := time.Now()
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	s := schedule{rounds: 4, left: 400 * time.Second}
	s.begin(100*time.Second, at(0))
	for _, step := range []struct {
		at   int
		want string
	}{{0, "[1 of 4, about 7 min left] "}, {90, "[1 of 4, about 5 min left] "}, {500, "[1 of 4, about 5 min left] "}} {
		if got := s.at(at(step.at)); got != step.want {
			t.Errorf("at %d s: %q, want %q", step.at, got, step.want)
		}
	}
	if s.last() {
		t.Error("the first of four rounds is the last")
	}
	s.end(at(50)) // twice as fast as planned
	s.begin(100*time.Second, at(50))
	if got := s.remaining(at(50)); got != 150*time.Second {
		t.Errorf("three rounds of 50 s are left; got %s", got)
	}
	s.end(at(100))
	s.begin(100*time.Second, at(100))
	s.end(at(150))
	s.begin(100*time.Second, at(150))
	if !s.last() {
		t.Error("the fourth of four rounds is not the last")
	}
	if got := s.at(at(170)); got != "[4 of 4, less than a minute left] " {
		t.Errorf("at the end: %q", got)
	}
	if one := (&schedule{rounds: 1}).at(now); one != "" {
		t.Errorf("a single round says %q", one)
	}
}

// busyNode is a node that uses so many CPUs from the test's start on.
type busyNode struct {
	node.Node
	program node.Program
	uses    float64
	begin   time.Time
}

func (n *busyNode) Name() string          { return n.program.Name }
func (n *busyNode) Program() node.Program { return n.program }
func (n *busyNode) Done() <-chan struct{} { return nil }

func (n *busyNode) Read(context.Context) (node.Usage, error) {
	seconds := n.uses * time.Since(n.begin).Seconds()
	return node.Usage{At: time.Now(), CPUSeconds: &seconds}, nil
}

type twoCPUs struct{ node.Runtime }

func (twoCPUs) Host() record.Host { return record.Host{CPUs: 2} }

// The live line says what is stored so far, and names each thing that is used up at the moment, and
// nothing that is not.
func TestLiveLineNamesWhatIsUsedUp(t *testing.T) {
	const begun = "cassandra:1 v2 otlp-grpc, round 1: window 2 of 10 s: 300 generated, 200 acked, 40 stored, 1 refused, 2 unanswered"
	for name, test := range map[string]struct {
		queue, writingPerS, collectorCPUs, loadCPUs float64
		want                                        string
	}{
		"nothing":       {1000, 20, 0.5, 1, begun},
		"nearly":        {1790, 37, 0.85, 1.7, begun},
		"queue":         {1991, 20, 0.5, 1, begun + "; at its limit: queue (1991 of 2000)"},
		"all writers":   {1000, 49, 0.5, 1, begun + "; at its limit: writes in flight (49.0 of 50)"},
		"quota of CPU":  {1000, 20, 1, 1, begun + "; at its limit: collector CPU (1.0 of 1.0)"},
		"machine's CPU": {1000, 20, 0.5, 1.9, begun + "; at its limit: load CPU (1.9 of 2.0)"},
		"queue and writers and CPU": {2000, 50, 0.95, 1, begun +
			"; at its limit: queue (2000 of 2000), writes in flight (50.0 of 50), collector CPU (0.9 of 1.0)"},
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			collector := &busyNode{uses: test.collectorCPUs, begin: begin, program: node.Program{Name: "collector", Limits: spec.Limits{CPUs: 1}}}
			sender := &busyNode{uses: test.loadCPUs, begin: begin, program: node.Program{Name: "load"}}
			r := liveRound(t, collector, sender)
			var err error
			r.sampler, err = observe.StartSampler(t.Context(), observe.SamplerAsk{Dir: dir, Nodes: r.nodes(),
				Counters: func(context.Context) ([]observe.Point, error) {
					at := func(metric string, value float64) observe.Point {
						return observe.Point{At: time.Now(), Node: "collector", Metric: metric, Value: value}
					}
					return []observe.Point{at("saved", 50), at("queue_size", test.queue),
						at("write_latency_sum", 7+test.writingPerS*time.Since(begin).Seconds())}, nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2500 * time.Millisecond) // the bubble's clock, no real time
			got := r.line(load.Progress{State: load.InWindow, ElapsedS: 2, PlannedS: 10, Generated: 300, Acked: 200, Refused: 1, Unanswered: 2})
			if got != test.want {
				t.Errorf("%s:\n%s, want\n%s", name, got, test.want)
			}
			if _, _, err := r.sampler.Close(begin); err != nil {
				t.Error(err)
			}
		})
	}
}

// A collector that can't be read as the window begins makes what it saved in the window unknown: read from
// the warm-up's start, its spans would be among them.
func TestWhatWasSavedInTheWindowNeedsItsStart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n := &busyNode{begin: time.Now(), program: node.Program{Name: "collector"}}
		r := liveRound(t, n, n)
		r.Collector.MetricsAddr = "nobody there"
		r.Console = NewConsole(io.Discard, false)
		r.atStart = r.atFirst
		r.atEnd, r.atLast = r.atFirst, r.atFirst
		var err error
		if r.sampler, err = observe.StartSampler(t.Context(), observe.SamplerAsk{Dir: dir, Nodes: r.nodes()}); err != nil {
			t.Fatal(err)
		}
		r.follow(t.Context(), load.Progress{State: load.InWindow}, load.WarmingUp)
		r.savedInWindow()
		if r.run.SavedInWindowCounter != nil || len(r.run.Warnings) != 1 || !strings.Contains(r.run.Warnings[0], "window's start") {
			t.Errorf("saved in window %v, warnings %q", r.run.SavedInWindowCounter, r.run.Warnings)
		}
		if _, _, err := r.sampler.Close(time.Now()); err != nil {
			t.Error(err)
		}
	})
}

// liveRound is a round in its window, at whose start the collector had saved ten spans, six of a warm-up.
func liveRound(t *testing.T, collector, sender node.Node) *round {
	t.Helper()
	saved := func(n int) observe.Snapshot {
		page, err := observe.Parse(fmt.Appendf(nil, "otelcol_exporter_queue_capacity 2000\njaeger_storage_inserts{table=\"traces\"} %d\n", n), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	return &round{
		comparison: &comparison{schedule: schedule{rounds: 1}},
		Stack:      Stack{Runtime: twoCPUs{}, Collector: &stack.Collector{Node: collector}, Load: sender},
		arm:        spec.Arm{Backend: spec.Backend{Engine: spec.Cassandra, Nodes: 1}, Collector: "v2", Client: "otlp-grpc"},
		run: record.Run{Round: 1, Client: "otlp-grpc", Collector: record.Collector{Settings: map[string]string{
			"config.exporters.jaeger_storage_exporter.trace_storage":       "store",
			"config.exporters.jaeger_storage_exporter.queue.enabled":       "true",
			"config.exporters.jaeger_storage_exporter.queue.num_consumers": "50",
		}}},
		window: window{atFirst: saved(4), atStart: saved(10)},
	}
}
