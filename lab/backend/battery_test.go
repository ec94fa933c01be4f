package backend_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/stack"
	"jaegerlab/lab/trace"
)

const batteryTraces = 300

// One battery for every backend, in every runtime it has here: what was stored is read back by
// identity, and what is planted between drain and read-back is named exactly.
func TestIntegrationBattery(t *testing.T) {
	for _, c := range []struct {
		runtime  spec.Runtime
		backend  string
		programs []string
	}{
		{spec.Process, "cassandra:2", []string{setup.Cassandra, setup.Jaeger}},
		{spec.Process, "badger", []string{setup.Jaeger}},
		{spec.Process, "memory", []string{setup.Jaeger}},
		{spec.Docker, "cassandra:2", []string{setup.Cassandra, setup.Jaeger}},
		{spec.Docker, "scylla:3", []string{setup.Scylla, setup.Jaeger}},
	} {
		t.Run(string(c.runtime)+"/"+c.backend, func(t *testing.T) {
			a := arm(t, c.backend)
			cluster, env, store := start(t, c.runtime, a, "battery", c.programs...)
			if a.Backend.Engine.Embedded() {
				embeddedBattery(t, store, env, a)
				return
			}
			cqlBattery(t, cluster, store, env, a)
		})
	}
}

func cqlBattery(t *testing.T, cluster backend.Cluster, store backend.Store, env backend.Env, a spec.Arm) {
	engine, err := cluster.Engine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("engine: %s %s, %d nodes, stand-in %v: %q", engine.Name, engine.Version, engine.Nodes, engine.StandIn,
		engine.Evidence)
	if engine.Nodes != a.Backend.Nodes {
		t.Errorf("%d nodes list each other; asked for %d", engine.Nodes, a.Backend.Nodes)
	}
	if a.Backend.Engine == spec.Scylla && engine.Name != "ScyllaDB" && !engine.StandIn {
		t.Errorf("%s is not labelled as a stand-in", engine.Name)
	}
	if _, err := cluster.Store("missing").Check(t.Context()); err == nil {
		t.Error("a keyspace that is not there passes the check")
	}
	table := filler{session: connect(t, cluster.Nodes()[0]), table: "battery.traces", numbering: trace.New(4711, 10)}
	before := movement(t, store)
	table.fill(t, batteryTraces)
	if after := movement(t, store); before >= 0 && after < before+batteryTraces*11 {
		t.Errorf("Rows() went from %d to %d while %d rows were written", before, after, batteryTraces*11)
	}
	if _, err := store.Check(t.Context()); err == nil {
		t.Error("a store with rows passes the check before load")
	}

	whole := read(t, store, backend.Ask{}, table.numbering)
	whole.expect(t, "as stored", batteryTraces*11, nil, nil, nil)
	if !whole.result.HasWriteTime || whole.undated > 0 || whole.result.Consistency != "ALL" {
		t.Errorf("%d rows without a write time; result %+v", whole.undated, whole.result)
	}

	lost := table.delete(t, 7)
	doubled := table.double(t, 5)
	foreign := table.foreign(t)
	planted := read(t, store, backend.Ask{}, table.numbering)
	planted.expect(t, "planted", batteryTraces*11-len(lost), lost, doubled, foreign)

	if err := store.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	table.expectNoSnapshots(t)
	if len(cluster.Nodes()) > 1 {
		lonely(t, cluster, env, a)
	}
}

// lonely kills the last node: what is read then is read at ONE, and absent is unknown.
func lonely(t *testing.T, cluster backend.Cluster, env backend.Env, a spec.Arm) {
	store := cluster.Store("lonely")
	if err := createSchema(t.Context(), store, env, a, "lonely"); err != nil {
		t.Fatal(err)
	}
	check(t, store)
	table := filler{session: connect(t, cluster.Nodes()[0]), table: "lonely.traces", numbering: trace.New(4712, 10)}
	table.fill(t, batteryTraces)
	last := cluster.Nodes()[len(cluster.Nodes())-1]
	if err := last.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-last.Done():
	case <-time.After(30 * time.Second):
		t.Fatalf("%s did not end", last.Name())
	}
	got := read(t, store, backend.Ask{}, table.numbering)
	if got.result.Consistency != "ONE" || !got.result.AbsentUnknown {
		t.Errorf("a node is gone: result %+v", got.result)
	}
	if len(got.foreign) > 0 || len(got.seen) == 0 || len(got.seen) == batteryTraces*11 {
		t.Errorf("%d of %d spans read without one of %d nodes", len(got.seen), batteryTraces*11, a.Backend.Nodes)
	}
	if ranges := got.result.Ranges; ranges.Read == ranges.Asked || len(got.result.Failed) == 0 {
		t.Errorf("with one copy, ranges of the node that is gone can't be read: %+v", got.result)
	}
	t.Logf("without %s: %d of %d ranges, %d spans; first failure: %.200s", last.Name(), got.result.Ranges.Read,
		got.result.Ranges.Asked, len(got.seen), got.result.Failed[0])
}

func movement(t *testing.T, store backend.Store) int64 {
	t.Helper()
	rows, err := store.Rows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// found is a read-back, sorted out by the numbering.
type found struct {
	result  backend.ReadResult
	seen    map[trace.ID]int
	foreign []trace.ID
	undated int
}

func read(t testing.TB, store backend.Store, ask backend.Ask, numbering trace.Numbering) found {
	t.Helper()
	f := found{seen: map[trace.ID]int{}}
	began := time.Now()
	var err error
	f.result, err = store.Read(t.Context(), ask, func(row record.Row) error {
		if _, ours := numbering.Locate(row.ID); !ours {
			f.foreign = append(f.foreign, row.ID)
			return nil
		}
		f.seen[row.ID]++
		if row.WriteTime == 0 {
			f.undated++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("read %d spans in %d of %d ranges in %s", len(f.seen), f.result.Ranges.Read, f.result.Ranges.Asked,
		time.Since(began).Round(time.Millisecond))
	return f
}

func (f found) expect(t *testing.T, when string, spans int, lost, doubled, foreign []trace.ID) {
	t.Helper()
	if f.result.Ranges.Read != f.result.Ranges.Asked || len(f.result.Failed) > 0 {
		t.Errorf("%s: %+v", when, f.result)
	}
	if len(f.seen) != spans {
		t.Errorf("%s: %d spans read; want %d", when, len(f.seen), spans)
	}
	for _, id := range lost {
		if f.seen[id] != 0 {
			t.Errorf("%s: %s was deleted and is read", when, id)
		}
	}
	var twice []trace.ID
	for id, n := range f.seen {
		if n == 2 {
			twice = append(twice, id)
		}
	}
	sameIDs(t, when+": duplicates", twice, doubled)
	sameIDs(t, when+": foreign", f.foreign, foreign)
}

func sameIDs(t *testing.T, what string, got, want []trace.ID) {
	t.Helper()
	texts := func(ids []trace.ID) []string {
		set := map[string]bool{}
		for _, id := range ids {
			set[id.String()] = true
		}
		return slices.Sorted(maps.Keys(set))
	}
	if g, w := texts(got), texts(want); !slices.Equal(g, w) {
		t.Errorf("%s: %q; want %q", what, g, w)
	}
}

// embeddedBattery sends traces to a collector and reads them back through its query API.
func embeddedBattery(t *testing.T, store backend.Store, env backend.Env, a spec.Arm) {
	ctx := t.Context()
	client, err := protocol.Get(a.Client)
	if err != nil {
		t.Fatal(err)
	}
	collector, err := stack.StartCollector(ctx, stack.Env{Runtime: env.Runtime, Binary: env.Binary, Say: env.Say},
		stack.Ask{Arm: a, Store: store, Protocol: client, Name: "collector"})
	if err != nil {
		t.Fatal(err)
	}
	numbering := trace.New(815, 10)
	send(t, collector.IngestAddr(false), numbering, batteryTraces)
	ask := backend.Ask{QueryAddr: collector.QueryAddr, Numbering: numbering,
		Traces: func(yield func(high, low uint64) bool) {
			for seq := range uint64(batteryTraces + 10) { // the last ten were never sent
				if high, low := numbering.TraceID(trace.Measured, 0, seq); !yield(high, low) {
					return
				}
			}
		}}
	var got found
	err = node.Wait(ctx, "all spans to be stored", time.Minute, collector.Node, func(context.Context) error {
		if got = read(t, store, ask, numbering); len(got.seen) < batteryTraces*11 {
			return fmt.Errorf("%d of %d spans are there", len(got.seen), batteryTraces*11)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got.expect(t, "as sent", batteryTraces*11, nil, nil, nil)
	if got.result.HasForeign || got.result.HasWriteTime {
		t.Errorf("result = %+v", got.result)
	}
	if !got.result.HasDuplicates {
		return
	}
	send(t, collector.IngestAddr(false), numbering, 1) // trace 0 once more
	var doubled []trace.ID
	for i := range uint64(11) {
		doubled = append(doubled, numbering.ID(trace.Ref{Phase: trace.Measured, Index: i}))
	}
	err = node.Wait(ctx, "the repeated trace to be stored", 30*time.Second, collector.Node, func(context.Context) error {
		if got = read(t, store, ask, numbering); got.seen[doubled[10]] < 2 {
			return fmt.Errorf("its last span is there %d times", got.seen[doubled[10]])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got.expect(t, "one trace sent twice", batteryTraces*11, nil, doubled, nil)
}

// send sends the first n traces of worker 0 in one OTLP request each.
func send(t *testing.T, addr string, numbering trace.Numbering, n uint64) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := collectorpb.NewTraceServiceClient(conn)
	for seq := range n {
		var spans []*tracepb.Span
		for i := range uint64(numbering.Width) {
			id := numbering.ID(trace.Ref{Phase: trace.Measured, Index: seq*uint64(numbering.Width) + i})
			now := uint64(time.Now().UnixNano())
			spans = append(spans, &tracepb.Span{TraceId: key(id), SpanId: binary.BigEndian.AppendUint64(nil, id.Span),
				Name: "operation", StartTimeUnixNano: now + 1000*i, EndTimeUnixNano: now + 1_000_000})
		}
		request := &collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
			Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{{Key: "service.name", Value: &commonpb.AnyValue{
				Value: &commonpb.AnyValue_StringValue{StringValue: "service"}}}}},
			ScopeSpans: []*tracepb.ScopeSpans{{Spans: spans}},
		}}}
		if _, err := client.Export(t.Context(), request); err != nil {
			t.Fatalf("send trace %d: %v", seq, err)
		}
	}
}
