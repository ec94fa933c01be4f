package stack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/internal/testrun"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// realEnv runs real programs as plain processes, and skips where one is not built.
func realEnv(t *testing.T, programs ...string) Env {
	t.Helper()
	return realEnvOn(t, spec.Process, programs...)
}

func realEnvOn(t *testing.T, where spec.Runtime, programs ...string) Env {
	t.Helper()
	runtime, binary := testrun.Up(t, where, programs...)
	return Env{Runtime: runtime, Binary: binary, Say: t.Logf}
}

// sendTraces sends n traces of 4 spans and returns how many spans were acknowledged.
func sendTraces(t *testing.T, client, addr string, n uint64) (acked uint32) {
	t.Helper()
	p, err := protocol.Get(client)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := p.Open(addr, protocol.Config{
		Numbering: trace.New(7, 3), Load: spec.Load{SpansCount: 3, TagsCount: 2, Services: 1, TagValues: 1},
		Timeout: 30 * time.Second,
		Report: func(o record.Outcome) {
			if o.Class == record.Acked {
				acked += o.Spans
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for seq := range n {
		sender.Send(t.Context(), protocol.Work{Seq: seq, StartUS: time.Now().UnixMicro()})
	}
	sender.Close(t.Context())
	return acked
}

func clientProtocol(t *testing.T, name string) protocol.Protocol {
	t.Helper()
	p, err := protocol.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func embeddedStore(t *testing.T, a spec.Arm) backend.Store {
	t.Helper()
	engine, err := backend.For(a.Backend.Engine)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := engine.Start(t.Context(), backend.Env{}, a)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Store("stack")
}

// startOTLP starts the collector of an arm for OTLP.
func startOTLP(t *testing.T, env Env, a spec.Arm, store backend.Store, name string) (*Collector, error) {
	t.Helper()
	return StartCollector(t.Context(), env,
		Ask{Arm: a, Store: store, Protocol: clientProtocol(t, "otlp-grpc"), Name: name})
}

// Every collector takes spans of every client on both embedded stores, with the queue asked for.
func TestIntegrationCollectorsOnEmbeddedStores(t *testing.T) {
	env := realEnv(t, programV2, programV1AllInOne)
	for _, engine := range []spec.Engine{spec.Memory, spec.Badger} {
		for _, collector := range []string{"v2", "v2-stock", "v1"} {
			for _, client := range []string{"otlp-grpc", "thrift-http"} {
				t.Run(string(engine)+" "+collector+" "+client, func(t *testing.T) {
					a := arm(engine, collector)
					a.Client = client
					name := strings.Join([]string{string(engine), collector, client}, "-")
					c, err := StartCollector(t.Context(), env, Ask{
						Arm: a, Store: embeddedStore(t, a), Protocol: clientProtocol(t, client), Name: name,
					})
					if err != nil {
						t.Fatal(err)
					}
					defer stop(c.Node)
					if err := c.CheckQueue(t.Context()); err != nil {
						t.Error(err)
					}
					if acked := sendTraces(t, client, c.IngestAddr(false), 100); acked != 400 {
						t.Errorf("acked %d of 400 spans", acked)
					}
					if c.QueryAddr == "" || c.Record.Program.Version == "" || len(c.Record.Settings) == 0 {
						t.Errorf("incomplete: %+v", c)
					}
				})
			}
		}
	}
}

// A user's own binary and configuration is a collector like any other.
func TestIntegrationOwnCollector(t *testing.T) {
	env := realEnv(t, programV2)
	binary, err := env.Binary(programV2)
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("testdata/collector-own.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "own.yaml")
	text := strings.Replace(string(example), "# binary: ./jaeger ", "binary: "+binary.Command[0], 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := arm(spec.Memory, path)
	c, err := startOTLP(t, env, a, embeddedStore(t, a), "own")
	if err != nil {
		t.Fatal(err)
	}
	defer stop(c.Node)
	if acked := sendTraces(t, "otlp-grpc", c.IngestAddr(false), 10); acked != 40 {
		t.Errorf("acked %d of 40 spans", acked)
	}
	size := c.Record.Settings["config.exporters.jaeger_storage_exporter.queue.queue_size"]
	if c.Record.Name != "small-queue" || size != "500" {
		t.Errorf("record %+v", c.Record)
	}
	// Planted: the collector has a queue of 500 while the lab believes it asked for its own.
	c.queueAsked = true
	err = c.CheckQueue(t.Context())
	if err == nil || !strings.Contains(err.Error(), "2000") || !strings.Contains(err.Error(), "500") {
		t.Errorf("another queue passed: %v", err)
	}
}

// Real Prometheus and node-exporter: targets up before load, a last scrape, raw samples; and a
// target that nobody serves stops the run with its error (cases 39, 41, 42).
func TestIntegrationMonitor(t *testing.T) {
	for _, where := range []spec.Runtime{spec.Process, spec.Docker} {
		t.Run(string(where), func(t *testing.T) {
			env := realEnvOn(t, where, programV2, programPrometheus, programExporter)
			watchLoad(t, env)
			refuseBlindness(t, env)
		})
	}
}

func watchLoad(t *testing.T, env Env) {
	t.Helper()
	a := arm(spec.Memory, "v2")
	c, err := startOTLP(t, env, a, embeddedStore(t, a), "collector")
	if err != nil {
		t.Fatal(err)
	}
	m, err := StartMonitor(t.Context(), env, MonitorAsk{
		Name: "prometheus", Window: 5 * time.Second, Targets: []Target{{Job: "collector", Addr: c.Node.PeerAddr("metrics")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.WaitTargets(t.Context()); err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	if acked := sendTraces(t, "otlp-grpc", c.IngestAddr(false), 1); acked != 4 {
		t.Fatalf("acked %d", acked)
	}
	if err := m.LastScrape(t.Context(), time.Now()); err != nil { // the counter exists from its first event
		t.Fatal(err)
	}
	sendTraces(t, "otlp-grpc", c.IngestAddr(false), 250)
	if err := m.LastScrape(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	series, err := m.Raw(t.Context(), `otelcol_receiver_accepted_spans_total{job="collector"}`, from, time.Now())
	if err != nil || len(series) != 1 {
		t.Fatalf("%d series, %v", len(series), err)
	}
	if delta, note := series[0].Delta(); delta == nil || *delta != 1000 {
		t.Errorf("delta %v %s, want exactly 1000; samples %v", delta, note, series[0].Samples)
	}
	up, err := m.Raw(t.Context(), `up{job="node-exporter"}`, from, time.Now())
	if err != nil || len(up) != 1 || len(up[0].Samples) < 2 {
		t.Errorf("node-exporter: %v, %v", up, err)
	}
	if err := m.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	stop(c.Node)
}

func refuseBlindness(t *testing.T, env Env) {
	t.Helper()
	nobody := []Target{{Job: "load", Addr: "127.0.0.1:1"}}
	blind, err := StartMonitor(t.Context(), env, MonitorAsk{Name: "blind", Targets: nobody})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	if err := blind.WaitTargets(ctx); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a missing target passed: %v", err)
	}
}

// On a real Cassandra: the schema by one owner, every collector on it, the missing keyspace of
// case 13, and the polite stop of case 9 that writes out what is still queued.
func TestIntegrationCassandra(t *testing.T) {
	env := realEnv(t, programV2, programV1, "cassandra")
	a := arm(spec.Cassandra, "v2")
	a.Backend.Nodes = 1
	engine, err := backend.For(spec.Cassandra)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := engine.Start(t.Context(), backend.Env{Runtime: env.Runtime, Binary: env.Binary, Say: t.Logf}, a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	store := cluster.Store("jaegerlab_stack")

	for _, collector := range []string{"v2", "v1"} {
		a.Collector = collector
		started := time.Now()
		_, err := startOTLP(t, env, a, store, "early-"+collector)
		if err == nil || !strings.Contains(err.Error(), "keyspace jaegerlab_stack does not exist") {
			t.Errorf("%s without its keyspace: %v", collector, err)
		}
		if took := time.Since(started); took > 30*time.Second {
			t.Errorf("%s without its keyspace failed after %s", collector, took)
		}
	}
	if err := CreateSchema(t.Context(), env, Ask{Arm: a, Store: store, Name: "schema"}); err != nil {
		t.Fatal(err)
	}
	if replication, err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	} else {
		t.Log(replication)
	}
	want := int64(0)
	for _, collector := range []string{"v2", "v2-stock", "v1"} {
		a.Collector = collector
		c, err := startOTLP(t, env, a, store, collector)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CheckQueue(t.Context()); err != nil {
			t.Error(err)
		}
		// Ids repeat, so each collector writes its rows over those of the one before.
		acked := int64(sendTraces(t, "otlp-grpc", c.IngestAddr(false), 400))
		if collector == "v2" {
			want = acked
		}
		stop(c.Node)
		t.Logf("%s: acked %d, ended: %s", collector, acked, c.Node.Exit())
		rows, err := store.Rows(t.Context())
		if err != nil || rows < want {
			t.Errorf("after a polite stop of %s: %d rows of %d acked spans, %v", collector, rows, want, err)
		}
	}
	if err := store.Drop(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
