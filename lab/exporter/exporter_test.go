package exporter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/google/go-cmp/cmp"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/agent"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"
)

// kept is a destination that keeps copies.
type kept struct {
	bodies [][]byte
	fail   func(n int) error
}

func (k *kept) send(_ time.Time, body []byte) error {
	k.bodies = append(k.bodies, append([]byte(nil), body...))
	if k.fail != nil {
		return k.fail(len(k.bodies))
	}
	return nil
}

func (k *kept) close() error { return nil }

func decode(compact bool, body []byte) (*jaeger.Batch, error) {
	memory := thrift.NewTMemoryBuffer()
	memory.Write(body)
	ctx := context.Background()
	if !compact {
		batch := jaeger.NewBatch()
		err := batch.Read(ctx, thrift.NewTBinaryProtocolConf(memory, nil))
		return batch, errors.Join(err, rest(memory))
	}
	protocol := thrift.NewTCompactProtocolConf(memory, nil)
	if name, kind, _, err := protocol.ReadMessageBegin(ctx); err != nil || name != "emitBatch" || kind != thrift.ONEWAY {
		return nil, fmt.Errorf("message %q of type %v: %w", name, kind, err)
	}
	args := agent.NewAgentEmitBatchArgs()
	err := args.Read(ctx, protocol)
	return args.Batch, errors.Join(err, rest(memory))
}

func rest(memory *thrift.TMemoryBuffer) error {
	if memory.Len() > 0 {
		return fmt.Errorf("%d bytes behind the message", memory.Len())
	}
	return nil
}

// facts is a span as text, the same from both sides.
func sdkFacts(s sdktrace.ReadOnlySpan) string {
	service := "unknown_service"
	var process []string
	for _, kv := range s.Resource().Attributes() {
		if kv.Key == "service.name" {
			service = kv.Value.AsString()
			continue
		}
		process = append(process, kvText(kv))
	}
	var tags, links, logs []string
	for _, kv := range s.Attributes() {
		tags = append(tags, kvText(kv))
	}
	if k := s.SpanKind(); k > trace.SpanKindInternal {
		tags = append(tags, "span.kind="+k.String())
	}
	if name := s.InstrumentationScope().Name; name != "" {
		tags = append(tags, "otel.scope.name="+name)
	}
	if s.Status().Code == codes.Error {
		tags = append(tags, "otel.status_code=ERROR")
		if s.Status().Description != "" {
			tags = append(tags, "otel.status_description="+s.Status().Description)
		}
		tags = append(tags, "error=true")
	}
	for _, l := range s.Links() {
		links = append(links, l.SpanContext.TraceID().String()+l.SpanContext.SpanID().String())
	}
	for _, e := range s.Events() {
		text := fmt.Sprint(e.Time.UnixMicro(), " event=", e.Name)
		for _, kv := range e.Attributes {
			text += " " + kvText(kv)
		}
		logs = append(logs, text)
	}
	c := s.SpanContext()
	return fmt.Sprint(service, process, c.TraceID(), c.SpanID(), s.Parent().SpanID(), s.Name(), c.TraceFlags(),
		s.StartTime().UnixMicro(),
		s.EndTime().Sub(s.StartTime()).Microseconds(), tags, links, logs)
}

func kvText(kv attribute.KeyValue) string { return string(kv.Key) + "=" + kv.Value.Emit() }

func thriftFacts(p *jaeger.Process, s *jaeger.Span) string {
	var id trace.TraceID
	var span, parent trace.SpanID
	binary.BigEndian.PutUint64(id[:8], uint64(s.TraceIdHigh))
	binary.BigEndian.PutUint64(id[8:], uint64(s.TraceIdLow))
	binary.BigEndian.PutUint64(span[:], uint64(s.SpanId))
	binary.BigEndian.PutUint64(parent[:], uint64(s.ParentSpanId))
	var links, logs []string
	for _, r := range s.References {
		links = append(links, fmt.Sprintf("%016x%016x%016x", uint64(r.TraceIdHigh), uint64(r.TraceIdLow), uint64(r.SpanId)))
	}
	for _, l := range s.Logs {
		logs = append(logs, strings.Join(append([]string{fmt.Sprint(l.Timestamp)}, tagTexts(l.Fields)...), " "))
	}
	return fmt.Sprint(p.ServiceName, tagTexts(p.Tags), id, span, parent, s.OperationName, trace.TraceFlags(s.Flags),
		s.StartTime, s.Duration,
		tagTexts(s.Tags), links, logs)
}

func tagTexts(tags []*jaeger.Tag) (all []string) {
	for _, t := range tags {
		var value string
		switch t.VType {
		case jaeger.TagType_STRING:
			value = t.GetVStr()
		case jaeger.TagType_BOOL:
			value = fmt.Sprint(t.GetVBool())
		case jaeger.TagType_LONG:
			value = fmt.Sprint(t.GetVLong())
		case jaeger.TagType_DOUBLE:
			value = attribute.Float64Value(t.GetVDouble()).Emit()
		}
		all = append(all, t.Key+"="+value)
	}
	return all
}

func anySpan(t *rapid.T, resources []*resource.Resource) sdktrace.ReadOnlySpan {
	var id trace.TraceID
	var span, parent trace.SpanID
	binary.BigEndian.PutUint64(id[:8], rapid.Uint64Min(1).Draw(t, "high"))
	binary.BigEndian.PutUint64(id[8:], rapid.Uint64().Draw(t, "low"))
	binary.BigEndian.PutUint64(span[:], rapid.Uint64Min(1).Draw(t, "span"))
	binary.BigEndian.PutUint64(parent[:], rapid.Uint64().Draw(t, "parent"))
	context := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled})
	start := time.UnixMicro(rapid.Int64Range(0, 1<<51).Draw(t, "start"))
	stub := tracetest.SpanStub{
		Name: rapid.StringN(0, 10, 30).Draw(t, "name"), SpanContext: context,
		Parent:     trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: parent}),
		SpanKind:   trace.SpanKind(rapid.IntRange(0, 5).Draw(t, "kind")),
		StartTime:  start,
		EndTime:    start.Add(time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "duration")) * time.Microsecond),
		Attributes: anyAttributes(t), Resource: rapid.SampledFrom(resources).Draw(t, "resource"),
	}
	stub.InstrumentationScope.Name = rapid.SampledFrom([]string{"", "scope"}).Draw(t, "scope")
	if rapid.Bool().Draw(t, "failed") {
		stub.Status = sdktrace.Status{Code: codes.Error, Description: rapid.StringN(0, 5, 20).Draw(t, "description")}
	}
	for range rapid.IntRange(0, 2).Draw(t, "links") {
		stub.Links = append(stub.Links, sdktrace.Link{SpanContext: context})
	}
	for range rapid.IntRange(0, 2).Draw(t, "events") {
		stub.Events = append(stub.Events, sdktrace.Event{Name: "e", Time: start, Attributes: anyAttributes(t)})
	}
	return stub.Snapshot()
}

func anyAttributes(t *rapid.T) (all []attribute.KeyValue) {
	for i := range rapid.IntRange(0, 17).Draw(t, "attributes") {
		key := fmt.Sprint("k", i)
		if rapid.IntRange(0, 9).Draw(t, "long key") == 0 {
			key += strings.Repeat("k", rapid.IntRange(120, 140).Draw(t, "key length"))
		}
		switch rapid.IntRange(0, 5).Draw(t, "type") {
		case 5: // around the length from which a varint has two bytes
			all = append(all, attribute.String(key, strings.Repeat("x", rapid.IntRange(120, 300).Draw(t, "length"))))
		case 0:
			all = append(all, attribute.String(key, rapid.StringN(0, 20, 60).Draw(t, "text")))
		case 1:
			all = append(all, attribute.Bool(key, rapid.Bool().Draw(t, "bool")))
		case 2:
			all = append(all, attribute.Int64(key, rapid.Int64().Draw(t, "int")))
		case 3:
			all = append(all, attribute.Float64(key, rapid.Float64().Draw(t, "float")))
		default:
			all = append(all, attribute.StringSlice(key, []string{"a", "b"}))
		}
	}
	return all
}

func testResources(n int) (all []*resource.Resource) {
	for i := range n {
		all = append(all, resource.NewSchemaless(attribute.String("service.name", fmt.Sprint("service-", i)),
			attribute.Int("number", i), attribute.String("host", "h")))
	}
	return append(all, resource.NewSchemaless())
}

// Goal: Jaeger's own types read back every span as the SDK has it, once each, in packets within
// the limit, for both protocols, whatever the order of services, with a small memory of them, and
// when the exporter is used again.
func TestBytesAreWhatTheSDKSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		to := &kept{}
		e := newExporter(to, rapid.Bool().Draw(t, "compact"), Options{
			MaxBytes: rapid.IntRange(2500, 6000).Draw(t, "limit"), InOrder: rapid.Bool().Draw(t, "in order"),
			MaxProcesses: rapid.IntRange(1, 3).Draw(t, "remembered"),
		})
		resources := testResources(rapid.IntRange(1, 4).Draw(t, "services"))
		for range 2 {
			var spans []sdktrace.ReadOnlySpan
			want := map[string]int{}
			for range rapid.IntRange(0, 40).Draw(t, "spans") {
				spans = append(spans, anySpan(t, resources))
				want[sdkFacts(spans[len(spans)-1])]++
			}
			to.bodies = nil
			err := e.ExportSpans(context.Background(), spans)
			got, tooLarge := map[string]int{}, 0
			for _, body := range to.bodies {
				batch, err := decode(e.compact, body)
				if err != nil || len(body) > e.options.MaxBytes || len(batch.Spans) == 0 {
					t.Fatalf("packet of %d bytes: %v", len(body), err)
				}
				for _, s := range batch.Spans {
					got[thriftFacts(batch.Process, s)]++
				}
			}
			for text, n := range want {
				if got[text] != n {
					tooLarge += n
				}
				delete(got, text)
			}
			if (tooLarge > 0) != (err != nil) || len(got) > 0 {
				t.Fatalf("%d spans are missing, error %v; never exported: %v", tooLarge, err, got)
			}
			if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%d spans are larger than", tooLarge)) {
				t.Fatalf("%d spans are missing: %v", tooLarge, err)
			}
		}
	})
}

// bulk are spans as the experiments use them.
func bulk(n, services int) (spans []sdktrace.ReadOnlySpan) {
	resources := testResources(services)
	for i := range n {
		var id trace.TraceID
		binary.BigEndian.PutUint64(id[8:], uint64(i)+1)
		stub := tracetest.SpanStub{Name: "child", Resource: resources[i%services], StartTime: time.UnixMicro(1 << 50),
			SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID(id[8:])})}
		for tag := range 10 {
			stub.Attributes = append(stub.Attributes, attribute.String(fmt.Sprint("tag-", tag), fmt.Sprint("value-", tag)))
		}
		spans = append(spans, stub.Snapshot())
	}
	return spans
}

// Goal: after one batch the exporter has all the memory it needs.
func TestExportAllocatesNothing(t *testing.T) {
	spans := bulk(3000, 5)
	for _, o := range []Options{{}, {InOrder: true}} {
		e := NewDiscard(o)
		if err := e.ExportSpans(t.Context(), spans); err != nil {
			t.Fatal(err)
		}
		if allocs := testing.AllocsPerRun(10, func() { _ = e.ExportSpans(context.Background(), spans) }); allocs > 0 {
			t.Errorf("%+v: %v allocations for a batch of %d spans", o, allocs, len(spans))
		}
	}
}

// Goal: a header stands once in a packet when spans are grouped, and before each run otherwise.
func TestHeadersPerBatchOrPerRun(t *testing.T) {
	spans := bulk(60, 3)
	for _, test := range []struct {
		o       Options
		packets int
	}{{Options{}, 3}, {Options{InOrder: true}, 60}} {
		to := &kept{}
		e := newExporter(to, true, test.o)
		if err := e.ExportSpans(t.Context(), spans); err != nil || len(to.bodies) != test.packets {
			t.Errorf("%+v: %d packets, %v, want %d", test.o, len(to.bodies), err, test.packets)
		}
	}
}

// A cap on remembered services bounds what is kept, and tears no group of a batch apart.
func TestCapOnRememberedServices(t *testing.T) {
	to := &kept{}
	e := newExporter(to, true, Options{MaxProcesses: 2})
	for range 2 {
		to.bodies = nil
		if err := e.ExportSpans(t.Context(), bulk(60, 5)); err != nil || len(to.bodies) != 5 {
			t.Errorf("%d packets, %v, want one for each of 5 services", len(to.bodies), err)
		}
		if len(e.processes) != 2 || len(e.order) != 2 || len(e.spare) > 2 {
			t.Errorf("%d processes are remembered, %d are spare; want 2 at most", len(e.processes), len(e.spare))
		}
	}
}

// A packet that fails is counted with its spans, and the others leave.
func TestFailuresAreCounted(t *testing.T) {
	to := &kept{fail: func(n int) error {
		if n == 2 {
			return errors.New("no buffer space")
		}
		return nil
	}}
	e := newExporter(to, true, Options{MaxBytes: 5000})
	spans := bulk(100, 1)
	err := e.ExportSpans(t.Context(), spans)
	totals := e.Totals()
	if err == nil || !strings.Contains(err.Error(), "no buffer space") || totals.Failed == 0 ||
		totals.Spans+totals.Failed != 100 ||
		int(totals.Packets) != len(to.bodies)-1 {
		t.Errorf("%v, totals %+v of %d packets", err, totals, len(to.bodies))
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.ExportSpans(t.Context(), spans); err == nil || !strings.Contains(err.Error(), "shut down") {
		t.Errorf("after the shutdown: %v", err)
	}
	if diff := cmp.Diff(totals, e.Totals()); diff != "" {
		t.Error(diff)
	}
}
