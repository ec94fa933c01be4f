package protocol

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/agent"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jaegerlab/lab/protocol/sink"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// The libraries are the judges of the bytes: what they decode must be what trace says, field by
// field, for every index, also when a template is used again and again for other spans.
func bytesAreWhatTraceSays(w wire, decode func([]byte) ([]trace.Span, error)) func(*rapid.T) {
	return func(t *rapid.T) {
		content := trace.Content{
			Seed:               rapid.Uint64().Draw(t, "seed"),
			Tags:               rapid.IntRange(0, 6).Draw(t, "tags"),
			Services:           rapid.IntRange(1, 4000).Draw(t, "services"),
			TagValues:          rapid.SampledFrom([]int{1, 2, 1000, 1_000_000}).Draw(t, "values"),
			ResourceAttributes: rapid.IntRange(0, 3).Draw(t, "resource"),
			TagLength:          rapid.SampledFrom([]int{0, 40, 200}).Draw(t, "length"),
			Operations:         rapid.SampledFrom([]int{0, 1, 2, 5000}).Draw(t, "operations"),
			Shape:              rapid.SampledFrom(trace.Shapes()).Draw(t, "shape"),
			ErrorPercent:       rapid.SampledFrom([]int{0, 10, 25, 100}).Draw(t, "errors"),
			Events:             rapid.IntRange(0, 2).Draw(t, "events"),
			TracesPerService:   rapid.IntRange(1, 5).Draw(t, "traces"),
		}
		traces := uint64(content.TracesPerService)
		n := trace.New(rapid.Uint64Max(trace.MaxRun).Draw(t, "run"), rapid.IntRange(0, 12).Draw(t, "children"))
		pool, err := w.plan(content, n.Width, int(traces))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			phase := trace.Phase(rapid.IntRange(0, 1).Draw(t, "phase"))
			worker := rapid.Uint32Max(trace.MaxWorkers-1).Draw(t, "worker")
			number := rapid.Uint64Max(trace.MaxIndex/uint64(n.Width)/traces-1).Draw(t, "batch")
			startUS := rapid.Int64Range(1, 1<<50).Draw(t, "start")
			first, spans := number*traces*uint64(n.Width), traces*uint64(n.Width)
			var got, want []trace.Span
			for _, p := range pool[number%uint64(len(pool))] {
				p.fill(n, phase, worker, first+uint64(p.from), startUS+int64(p.from))
				if len(p.bytes) > w.maxBytes || p.count > w.maxSpans {
					t.Fatalf("request of %d spans, %d bytes is above the limits", p.count, len(p.bytes))
				}
				spans, err := decode(p.bytes)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, spans...)
			}
			for index := first; index < first+spans; index++ {
				ref := trace.Ref{Phase: phase, Worker: worker, Index: index}
				root := startUS + int64(index-first)/int64(n.Width)*int64(n.Width)
				want = append(want, content.Span(n, ref, root))
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("spans differ (-trace +decoded):\n%s", diff)
			}
		}
	}
}

// small limits let a property test meet every way to split a batch.
func small(encode encoder, bytes int) wire {
	return wire{client: "test", encode: encode, maxBytes: bytes, maxSpans: 16}
}

func TestOTLPBytesAreWhatTraceSays(t *testing.T) {
	rapid.Check(t, bytesAreWhatTraceSays(small(encodeOTLP, 64<<10), decodeOTLP))
}

func TestThriftBytesAreWhatTraceSays(t *testing.T) {
	rapid.Check(t, bytesAreWhatTraceSays(small(encodeThriftBinary, 64<<10), decodeThrift))
}

func TestPacketsAreWhatTraceSays(t *testing.T) {
	rapid.Check(t, bytesAreWhatTraceSays(small(encodeEmitBatch, 20_000), decodeEmitBatch))
}

func FuzzOTLPBytes(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(bytesAreWhatTraceSays(small(encodeOTLP, 64<<10), decodeOTLP)))
}

func FuzzThriftBytes(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(bytesAreWhatTraceSays(small(encodeThriftBinary, 64<<10), decodeThrift)))
}

func FuzzPackets(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(bytesAreWhatTraceSays(small(encodeEmitBatch, 20_000), decodeEmitBatch)))
}

// wires are those of the clients, with their true limits.
func wires() []wire {
	return []wire{
		{"otlp", encodeOTLP, MaxRequestBytes, MaxRequestSpans},
		{"thrift", encodeThriftBinary, MaxRequestBytes, MaxRequestSpans},
		{"packets", encodeEmitBatch, MaxPacketBytes, MaxRequestSpans},
	}
}

// Encoding once only pays when a send really marshals nothing.
func TestFillAllocatesNothing(t *testing.T) {
	n := trace.New(1, 10)
	content := trace.Content{Tags: 10, TagValues: 100, Services: 5, Operations: 9, Events: 2, ErrorPercent: 50,
		TracesPerService: 4}
	for _, w := range wires() {
		pool, err := w.plan(content, n.Width, 4)
		if err != nil {
			t.Fatal(err)
		}
		if allocs := testing.AllocsPerRun(100, func() { pool[0][0].fill(n, trace.Measured, 1, 44, 5) }); allocs != 0 {
			t.Errorf("%s: fill allocates %v times", w.client, allocs)
		}
	}
}

// Requests stay below what receivers take, cover the batch without gap or overlap, keep traces
// whole where one fits, and are as equal as possible.
func TestBatchesAreSplit(t *testing.T) {
	for _, test := range []struct{ width, traces, tags, requests int }{
		{11, 1, 10, 1}, {1000, 1, 10, 1}, {1001, 1, 10, 2}, {10_001, 1, 10, 11}, {4000, 1, 1000, 0},
		{11, 90, 10, 1}, {11, 100, 10, 2}, {600, 3, 0, 3}, {1001, 3, 0, 6},
	} {
		content := trace.Content{Tags: test.tags}
		for _, w := range wires() {
			pool, err := w.plan(content, test.width, test.traces)
			if err != nil {
				t.Fatal(err)
			}
			requests := pool[0]
			if w.maxBytes == MaxRequestBytes && test.requests > 0 && len(requests) != test.requests {
				t.Errorf("%s: %+v: %d requests", w.client, test, len(requests))
			}
			next := 0
			for _, p := range requests {
				if p.from != next {
					t.Errorf("%s: request begins at span %d, want %d", w.client, p.from, next)
				}
				if len(p.bytes) > w.maxBytes || p.count > w.maxSpans {
					t.Errorf("%s: request of %d spans, %d bytes is above the limits", w.client, p.count, len(p.bytes))
				}
				if whole := p.count%test.width == 0; test.requests > 0 && test.width < 1000 && p.count > test.width && !whole {
					t.Errorf("%s: %+v: a request of %d spans cuts a trace", w.client, test, p.count)
				}
				next += p.count
			}
			if next != test.width*test.traces {
				t.Errorf("%s: requests cover %d of %d spans", w.client, next, test.width*test.traces)
			}
		}
	}
}

// A span that no receiver takes is refused before anything is sent, by every client, with its size.
func TestTooLargeSpanIsRefusedByName(t *testing.T) {
	config := Config{Numbering: trace.New(1, 10), Load: spec.Load{SpansCount: 10, TagsCount: 200_000}}
	for _, name := range Names() {
		p, err := Get(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Open("127.0.0.1:1", config)
		if err == nil || !strings.Contains(err.Error(), "TAGS_COUNT") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names TAGS_COUNT and the client", name, err)
		}
	}
}

// More encoded requests than the load node has memory for are refused at the first worker.
func TestTooManyLargeRequestsAreRefused(t *testing.T) {
	config := Config{Numbering: trace.New(1, 10), Load: spec.Load{Concurrency: 10_000, TagsCount: 100, TagLength: 1000}}
	for _, name := range []string{"otlp-grpc", "otlp-http", "thrift-http"} {
		p, err := Get(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Open("127.0.0.1:1", config)
		for _, want := range []string{name, "10000 workers", "CONCURRENCY", "768 MiB"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one that names %q", name, err, want)
			}
		}
	}
}

func decodeOTLP(body []byte) ([]trace.Span, error) {
	var request collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	var spans []trace.Span
	for _, resource := range request.GetResourceSpans() {
		service, attributes := split(otlpTags(resource.GetResource().GetAttributes()))
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				span := trace.Span{
					ID: trace.ID{High: binary.BigEndian.Uint64(s.TraceId), Low: binary.BigEndian.Uint64(s.TraceId[8:]),
						Span: binary.BigEndian.Uint64(s.SpanId)},
					Service: service, Resource: attributes, Operation: s.Name, Tags: otlpTags(s.Attributes),
					StartUS:    int64(s.StartTimeUnixNano / 1000),
					DurationUS: int64(s.EndTimeUnixNano-s.StartTimeUnixNano) / 1000,
				}
				span.Error = s.Status.GetCode() == tracev1.Status_STATUS_CODE_ERROR
				for _, e := range s.Events {
					span.Events = append(span.Events, trace.Event{TimeUS: int64(e.TimeUnixNano / 1000), Name: e.Name})
				}
				if len(s.ParentSpanId) == 8 {
					span.Parent = binary.BigEndian.Uint64(s.ParentSpanId)
				}
				spans = append(spans, span)
			}
		}
	}
	return spans, nil
}

func otlpTags(attributes []*common.KeyValue) []trace.Tag {
	var tags []trace.Tag
	for _, a := range attributes {
		tags = append(tags, trace.Tag{Key: a.Key, Value: a.Value.GetStringValue()})
	}
	return tags
}

func split(tags []trace.Tag) (service string, rest []trace.Tag) {
	for _, tag := range tags {
		if tag.Key == "service.name" {
			service = tag.Value
			continue
		}
		rest = append(rest, tag)
	}
	return service, rest
}

func decodeThrift(body []byte) ([]trace.Span, error) {
	memory := thrift.NewTMemoryBuffer()
	memory.Write(body)
	batch := jaeger.NewBatch()
	if err := batch.Read(context.Background(), thrift.NewTBinaryProtocolConf(memory, nil)); err != nil {
		return nil, err
	}
	return batchSpans(batch), nil
}

func decodeEmitBatch(packet []byte) ([]trace.Span, error) {
	memory := thrift.NewTMemoryBuffer()
	memory.Write(packet)
	protocol := thrift.NewTCompactProtocolConf(memory, nil)
	ctx := context.Background()
	name, kind, _, err := protocol.ReadMessageBegin(ctx)
	if err != nil || name != "emitBatch" || kind != thrift.ONEWAY {
		return nil, fmt.Errorf("message %q of type %v: %w", name, kind, err)
	}
	args := agent.NewAgentEmitBatchArgs()
	if err := args.Read(ctx, protocol); err != nil {
		return nil, err
	}
	if memory.Len() > 0 {
		return nil, fmt.Errorf("%d bytes behind the message", memory.Len())
	}
	return batchSpans(args.Batch), nil
}

func batchSpans(batch *jaeger.Batch) (spans []trace.Span) {
	for _, s := range batch.Spans {
		span := trace.Span{
			ID:     trace.ID{High: uint64(s.TraceIdHigh), Low: uint64(s.TraceIdLow), Span: uint64(s.SpanId)},
			Parent: uint64(s.ParentSpanId), Operation: s.OperationName, StartUS: s.StartTime, DurationUS: s.Duration,
			Service: batch.Process.ServiceName, Resource: thriftTags(batch.Process.Tags),
		}
		for _, tag := range s.Tags {
			if tag.Key == "error" && tag.GetVBool() {
				span.Error = true
				continue
			}
			span.Tags = append(span.Tags, trace.Tag{Key: tag.Key, Value: tag.GetVStr()})
		}
		for _, log := range s.Logs {
			span.Events = append(span.Events, trace.Event{TimeUS: log.Timestamp, Name: log.Fields[0].GetVStr()})
		}
		spans = append(spans, span)
	}
	return spans
}

func thriftTags(tags []*jaeger.Tag) []trace.Tag {
	var out []trace.Tag
	for _, tag := range tags {
		out = append(out, trace.Tag{Key: tag.Key, Value: tag.GetVStr()})
	}
	return out
}

// The black holes count what a request holds without decoding it.
func TestSinksCountSpans(t *testing.T) {
	for _, p := range []Protocol{otlpGRPC(), otlpHTTP(), thriftHTTP(), thriftUDP()} {
		s := &sink.Sink{Count: true}
		if err := s.Open(p.Port); err != nil {
			t.Fatal(err)
		}
		c, err := p.Open(s.Addr(), Config{Numbering: trace.New(1, 10), Timeout: time.Minute, Report: func(record.Outcome) {},
			Load: spec.Load{TagsCount: 3, Services: 2, ResourceAttributes: 20, Events: 1, ErrorPercent: 10,
				TracesPerRequest: 4}})
		if err != nil {
			t.Fatal(err)
		}
		c.Send(t.Context(), Work{StartUS: 1 << 50})
		c.Close(t.Context())
		for deadline := time.Now().Add(5 * time.Second); s.Requests() == 0 && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		s.Close()
		if s.Spans() != 44 {
			t.Errorf("%s: %d spans counted, want 44", p.Name, s.Spans())
		}
	}
}
