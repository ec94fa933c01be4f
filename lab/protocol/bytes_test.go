package protocol

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// The libraries are the judges of the bytes: what they decode must be what trace says, field by
// field, for every index, also when a template is used again and again for other spans.
func bytesAreWhatTraceSays(encode encoder, decode func([]byte) ([]trace.Span, error)) func(*rapid.T) {
	return func(t *rapid.T) {
		content := trace.Content{
			Seed:               rapid.Uint64().Draw(t, "seed"),
			Tags:               rapid.IntRange(0, 12).Draw(t, "tags"),
			Services:           rapid.IntRange(1, 4000).Draw(t, "services"),
			TagValues:          rapid.SampledFrom([]int{1, 2, 1000, 1_000_000}).Draw(t, "values"),
			ResourceAttributes: rapid.IntRange(0, 3).Draw(t, "resource"),
		}
		n := trace.New(rapid.Uint64Max(trace.MaxRun).Draw(t, "run"), rapid.IntRange(0, 30).Draw(t, "children"))
		parts, err := plan(encode, "test", content, n.Width)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			phase := trace.Phase(rapid.IntRange(0, 1).Draw(t, "phase"))
			worker := rapid.Uint32Max(trace.MaxWorkers-1).Draw(t, "worker")
			seq := rapid.Uint64Max(trace.MaxIndex/uint64(n.Width)-1).Draw(t, "seq")
			startUS := rapid.Int64Range(1, 1<<50).Draw(t, "start")
			var got, want []trace.Span
			for _, p := range parts {
				first := seq*uint64(n.Width) + uint64(p.position)
				p.fill(n, phase, worker, first, startUS+int64(p.position))
				spans, err := decode(p.bytes)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, spans...)
			}
			for index := seq * uint64(n.Width); index < (seq+1)*uint64(n.Width); index++ {
				ref := trace.Ref{Phase: phase, Worker: worker, Index: index}
				want = append(want, content.Span(n, ref, startUS))
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("spans differ (-trace +decoded):\n%s", diff)
			}
		}
	}
}

func TestOTLPBytesAreWhatTraceSays(t *testing.T) {
	rapid.Check(t, bytesAreWhatTraceSays(encodeOTLP, decodeOTLP))
}

func TestThriftBytesAreWhatTraceSays(t *testing.T) {
	rapid.Check(t, bytesAreWhatTraceSays(encodeThriftBinary, decodeThrift))
}

func FuzzOTLPBytes(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(bytesAreWhatTraceSays(encodeOTLP, decodeOTLP)))
}

func FuzzThriftBytes(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(bytesAreWhatTraceSays(encodeThriftBinary, decodeThrift)))
}

// Encoding once only pays when a send really marshals nothing.
func TestFillAllocatesNothing(t *testing.T) {
	n := trace.New(1, 10)
	for name, encode := range map[string]encoder{"otlp": encodeOTLP, "thrift": encodeThriftBinary} {
		parts, err := plan(encode, name, trace.Content{Tags: 10, TagValues: 100, Services: 5}, n.Width)
		if err != nil {
			t.Fatal(err)
		}
		if allocs := testing.AllocsPerRun(100, func() { parts[0].fill(n, trace.Measured, 1, 110, 5) }); allocs != 0 {
			t.Errorf("%s: fill allocates %v times", name, allocs)
		}
	}
}

// Requests stay below what receivers take, cover the trace without gap or overlap, and are equal
// but for the last.
func TestLargeTracesAreSplit(t *testing.T) {
	for _, test := range []struct{ width, tags, requests int }{
		{11, 10, 1}, {1000, 10, 1}, {1001, 10, 2}, {10_001, 10, 11}, {4000, 1000, 0},
	} {
		content := trace.Content{Tags: test.tags}
		for name, encode := range map[string]encoder{"otlp": encodeOTLP, "thrift": encodeThriftBinary} {
			parts, err := plan(encode, name, content, test.width)
			if err != nil {
				t.Fatal(err)
			}
			if test.requests > 0 && len(parts) != test.requests {
				t.Errorf("%s: %d spans of %d tags: %d requests, want %d", name, test.width, test.tags, len(parts), test.requests)
			}
			next := 0
			for _, p := range parts {
				if p.position != next {
					t.Errorf("%s: request begins at span %d, want %d", name, p.position, next)
				}
				if len(p.bytes) > MaxRequestBytes || len(p.marks) > MaxRequestSpans {
					t.Errorf("%s: request of %d spans, %d bytes is above the limits", name, len(p.marks), len(p.bytes))
				}
				next += len(p.marks)
			}
			if next != test.width {
				t.Errorf("%s: requests cover %d of %d spans", name, next, test.width)
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
	var spans []trace.Span
	for _, s := range batch.Spans {
		spans = append(spans, trace.Span{
			ID:     trace.ID{High: uint64(s.TraceIdHigh), Low: uint64(s.TraceIdLow), Span: uint64(s.SpanId)},
			Parent: uint64(s.ParentSpanId), Operation: s.OperationName, StartUS: s.StartTime, DurationUS: s.Duration,
			Service: batch.Process.ServiceName, Resource: thriftTags(batch.Process.Tags), Tags: thriftTags(s.Tags),
		})
	}
	return spans, nil
}

func thriftTags(tags []*jaeger.Tag) []trace.Tag {
	var out []trace.Tag
	for _, tag := range tags {
		out = append(out, trace.Tag{Key: tag.Key, Value: tag.GetVStr()})
	}
	return out
}
