package observe

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/internal/testrun"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/stack"
	"jaegerlab/lab/trace"
)

var update = flag.Bool("update", false, "save the metrics pages of real collectors to testdata")

func realEnv(t *testing.T, programs ...string) stack.Env {
	t.Helper()
	runtime, binary := testrun.Up(t, spec.Process, programs...)
	return stack.Env{Runtime: runtime, Binary: binary, Say: t.Logf}
}

// rig is one collector on a store, and a client that sends traces of 4 spans to it.
type rig struct {
	t         *testing.T
	arm       spec.Arm
	store     backend.Store
	collector *stack.Collector
	run       uint64
}

func startRig(t *testing.T, env stack.Env, cluster backend.Cluster, arm spec.Arm, name string, run uint64) *rig {
	t.Helper()
	p, err := protocol.Get(arm.Client)
	if err != nil {
		t.Fatal(err)
	}
	store := cluster.Store("observe_" + strings.ReplaceAll(name, "-", "_"))
	ask := stack.Ask{Arm: arm, Store: store, Protocol: p, Name: "schema-" + name}
	if err := stack.CreateSchema(t.Context(), env, ask); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask.Name = name
	c, err := stack.StartCollector(t.Context(), env, ask)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, arm: arm, store: store, collector: c, run: run}
}

func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.collector.Node.Stop(ctx); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) send(traces uint64) (acked int64) {
	r.t.Helper()
	p, err := protocol.Get(r.arm.Client)
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := p.Open(r.collector.IngestAddr(false), protocol.Config{
		Numbering: trace.New(r.run, 3), Timeout: 30 * time.Second,
		Load: spec.Load{SpansCount: 3, TagsCount: 2, Services: 1, TagValues: 1},
		Report: func(o record.Outcome) {
			if o.Class == record.Acked {
				acked += int64(o.Spans)
			}
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	for seq := range traces {
		client.Send(r.t.Context(), protocol.Work{Seq: seq, StartUS: time.Now().UnixMicro()})
	}
	client.Close(r.t.Context())
	return acked
}

func (r *rig) scrape() Snapshot {
	r.t.Helper()
	s, err := Scrape(r.t.Context(), r.collector.MetricsAddr)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) drain() Drained {
	r.t.Helper()
	d, err := Drain(r.t.Context(), DrainAsk{
		WindowEnd: time.Now(), Bound: time.Minute, Collector: r.collector.Node, Rows: r.store.Rows,
		Counters: CollectorCounters(r.collector.MetricsAddr, r.arm.Client), Quiet: DrainQuiet,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if !d.Settled {
		r.t.Errorf("not settled: %+v", d)
	}
	return d
}

func cluster(t *testing.T, env stack.Env, arm spec.Arm) backend.Cluster {
	t.Helper()
	engine, err := backend.For(arm.Backend.Engine)
	if err != nil {
		t.Fatal(err)
	}
	c, err := engine.Start(t.Context(), backend.Env{Runtime: env.Runtime, Binary: env.Binary, Say: t.Logf}, arm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func armOf(engine spec.Engine, collector, client string) spec.Arm {
	a := spec.Arm{Backend: spec.Backend{Engine: engine}, Collector: collector, Client: client, Profile: spec.None}
	a.Replication = 1
	if !engine.Embedded() {
		a.Backend.Nodes = 1
	}
	return a
}

// savePage keeps what the lab reads of a real page for the unit tests.
func savePage(t *testing.T, name string, s Snapshot) {
	t.Helper()
	if !*update {
		return
	}
	var kept bytes.Buffer
	for line := range bytes.Lines(s.Raw) {
		text := strings.TrimPrefix(strings.TrimPrefix(string(line), "# HELP "), "# TYPE ")
		for _, prefix := range []string{"otelcol_receiver", "otelcol_exporter", "jaeger_collector_spans",
			"jaeger_collector_queue", "jaeger_collector_save", "jaeger_storage_", "jaeger_cassandra_",
			"jaeger_build_info", "target_info"} {
			if strings.HasPrefix(text, prefix) {
				kept.Write(line)
				break
			}
		}
	}
	if err := os.WriteFile(filepath.Join("testdata", name), kept.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Cases 4 and 5: the same 400 spans by both generations and clients, on a real Cassandra: the
// saved counter says 400 under either name, and what OTLP does not feed in v1 is nil and named.
func TestIntegrationCountersOnCassandra(t *testing.T) {
	env := realEnv(t, "jaeger", "jaeger-v1-collector", "cassandra")
	db := cluster(t, env, armOf(spec.Cassandra, "v2", "otlp-grpc"))
	for i, arm := range []spec.Arm{
		armOf(spec.Cassandra, "v2", "otlp-grpc"), armOf(spec.Cassandra, "v2", "thrift-http"),
		armOf(spec.Cassandra, "v1", "otlp-grpc"), armOf(spec.Cassandra, "v1", "thrift-http"),
	} {
		name := arm.Collector + "-" + arm.Client
		r := startRig(t, env, db, arm, name, uint64(i+1))
		first := r.scrape()
		if acked := r.send(100); acked != 400 {
			t.Errorf("%s: acked %d of 400", name, acked)
		}
		d := r.drain()
		last := r.scrape()
		savePage(t, fmt.Sprintf("jaeger-%s-cassandra-%s.txt", r.collector.Record.Program.Version, arm.Client), last)
		counters, warnings := Between(first, last, About{Arm: arm, Services: 1})
		t.Logf("%s: drained in %v s, rows %v\n%s\n%q", name, deref(d.DrainS), *d.Last.Rows, table(counters), warnings)
		want(t, counters, "saved", 400)
		if n, _, ok := last.SavedSince(first); !ok || n != 400 || *d.Last.Rows != 400 {
			t.Errorf("%s: saved %d, rows %d", name, n, *d.Last.Rows)
		}
		if perSpan := StatementsPerSpan(counters); perSpan == nil || *perSpan < 6 || *perSpan > 15 {
			t.Errorf("%s: statements per span %v", name, deref(perSpan))
		}
		v1OTLP := arm.Collector == "v1" && arm.Client == "otlp-grpc"
		if v1OTLP {
			want(t, counters, "received", nil)
			want(t, counters, "dropped", nil)
		} else {
			want(t, counters, "received", 400)
			want(t, counters, "queue_capacity", 2000)
		}
		if said := strings.Contains(strings.Join(warnings, ""), "not available for OTLP in this version"); said != v1OTLP {
			t.Errorf("%s: warnings %q", name, warnings)
		}
		r.stop()
	}
}

// Case 3: v1 answers success although its queue is full. The loss is in the drop counter, read
// directly before and after, and explains acked less stored exactly.
func TestIntegrationLossBehindSuccess(t *testing.T) {
	env := realEnv(t, "jaeger", "jaeger-v1-collector", "cassandra")
	small := filepath.Join(t.TempDir(), "small.yaml")
	text := "flavour: v1\nname: v1-small\nenv: [COLLECTOR_QUEUE_SIZE=10, COLLECTOR_NUM_WORKERS=1]\n"
	if err := os.WriteFile(small, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := env.Binary("jaeger-v1-collector")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(binary.Source)
	arm := armOf(spec.Cassandra, small, "thrift-http")
	db := cluster(t, env, arm)
	r := startRig(t, env, db, arm, "small", 9)
	first := r.scrape()
	if err := db.Nodes()[0].Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	acked := r.send(250)
	if err := db.Nodes()[0].Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := r.drain()
	counters, _ := Between(first, r.scrape(), About{Arm: arm})
	t.Logf("acked %d, rows %d\n%s", acked, *d.Last.Rows, table(counters))
	dropped, failed := find(counters, "dropped"), find(counters, "saved_errors")
	if acked != 1000 || dropped == nil || *dropped == 0 || failed == nil {
		t.Fatalf("acked %d, dropped %v, errors %v", acked, deref(dropped), deref(failed))
	}
	missing := float64(acked - *d.Last.Rows)
	if missing < *dropped || missing > *dropped+*failed {
		t.Errorf("missing %v, dropped %v, save errors %v", missing, *dropped, *failed)
	}
	r.stop()
}

// Case 9: a polite stop right after the last acknowledgement loses nothing; a kill does, and what
// is lost is acknowledged less stored.
func TestIntegrationStopAndKill(t *testing.T) {
	env := realEnv(t, "jaeger", "cassandra")
	arm := armOf(spec.Cassandra, "v2", "otlp-grpc")
	db := cluster(t, env, arm)
	polite := startRig(t, env, db, arm, "polite", 21)
	acked := polite.send(1250)
	polite.stop()
	if rows, err := polite.store.Rows(t.Context()); err != nil || rows != acked || acked != 5000 {
		t.Errorf("after SIGTERM: %d rows of %d acked, %v", rows, acked, err)
	}
	killed := startRig(t, env, db, arm, "killed", 22)
	acked = killed.send(1250)
	if err := killed.collector.Node.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-killed.collector.Node.Done()
	d := killed.drain()
	t.Logf("after SIGKILL: %d acked, %d rows, %v", acked, *d.Last.Rows, d.Warnings)
	if *d.Last.Rows >= acked || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "SIGKILL") {
		t.Errorf("after SIGKILL: %d rows of %d acked, %v", *d.Last.Rows, acked, d.Warnings)
	}
}

// Case 6: beyond v1's cap of services, and with names that fold into one label, totals stay
// right and a warning tells.
func TestIntegrationManyServices(t *testing.T) {
	env := realEnv(t, "jaeger-v1-all-in-one")
	arm := armOf(spec.Memory, "v1", "otlp-grpc")
	db := cluster(t, env, arm)
	var many []string
	for i := range 4100 {
		many = append(many, fmt.Sprintf("service%d", i))
	}
	for name, test := range map[string]struct {
		services []string
		warning  string
	}{
		"many":   {many, overflowService},
		"folded": {[]string{"Ride-A", "ride-a", "x/y", "x_y"}, "4 services under 2 labels"},
	} {
		r := startRig(t, env, db, arm, name, 1)
		first := r.scrape()
		postServices(t, r.collector.Node.Addr("otlp-http"), test.services)
		_, err := Drain(t.Context(), DrainAsk{WindowEnd: time.Now(), Bound: time.Minute, Quiet: DrainQuiet,
			Counters: CollectorCounters(r.collector.MetricsAddr, "otlp-http")})
		if err != nil {
			t.Fatal(err)
		}
		counters, warnings := Between(first, r.scrape(), About{Arm: arm, Services: len(test.services)})
		want(t, counters, "saved", len(test.services))
		if !strings.Contains(strings.Join(warnings, "\n"), test.warning) {
			t.Errorf("%s: warnings %q", name, warnings)
		}
		r.stop()
	}
}

// postServices sends one span for each service.
func postServices(t *testing.T, addr string, services []string) {
	t.Helper()
	var all []*tracepb.ResourceSpans
	for i, service := range services {
		id := []byte(fmt.Sprintf("%016d", i+1))
		all = append(all, &tracepb.ResourceSpans{
			Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", service)}},
			ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
				TraceId: id, SpanId: id[8:], Name: "op", StartTimeUnixNano: 1, EndTimeUnixNano: 2}}}},
		})
	}
	body, err := proto.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: all})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post("http://"+addr+"/v1/traces", "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("answered %s", response.Status)
	}
}
