package exporter

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"jaegerlab/lab/internal/need"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/solo"
)

const (
	realTraces = 100
	realWidth  = 20
)

// realSpans are finished spans of three services with every kind of content.
func realSpans() (spans []sdktrace.ReadOnlySpan) {
	resources := testResources(3)
	start := time.Now().Truncate(time.Microsecond)
	for i := range realTraces * realWidth {
		var id trace.TraceID
		binary.BigEndian.PutUint64(id[:8], 0x4000000000000001)
		binary.BigEndian.PutUint64(id[8:], uint64(i/realWidth)+1)
		span := func(n int) (s trace.SpanID) { binary.BigEndian.PutUint64(s[:], uint64(n)+1); return s }
		stub := tracetest.SpanStub{
			Name: fmt.Sprint("operation-", i%7), Resource: resources[i/realWidth%3], SpanKind: trace.SpanKind(i % 6),
			SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: id, SpanID: span(i), TraceFlags: trace.FlagsSampled}),
			StartTime: start.Add(time.Duration(i) * time.Microsecond),
			EndTime:   start.Add(time.Duration(i+1+i%9) * time.Microsecond),
			Attributes: []attribute.KeyValue{attribute.String("text", fmt.Sprint("v", i)), attribute.Int("number", i),
				attribute.Bool("flag", i%2 == 0), attribute.Float64("part", float64(i)/4)},
		}
		if first := i / realWidth * realWidth; i > first {
			stub.Parent = trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span(first)})
		}
		if i%5 == 0 {
			stub.Status = sdktrace.Status{Code: codes.Error}
		}
		if i%3 == 0 {
			stub.Events = []sdktrace.Event{{Name: "happened", Time: stub.StartTime,
				Attributes: []attribute.KeyValue{attribute.String("why", "w")}}}
		}
		spans = append(spans, stub.Snapshot())
	}
	return spans
}

// Goal: what the exporter sends is what a real Jaeger v2 has stored: over HTTP every span with
// equal content, over UDP every span that arrived, and what did not is in the kernel's counters.
func TestIntegrationJaegerStoresWhatIsExported(t *testing.T) {
	program := need.Built(t, solo.Program)
	spans := realSpans()
	for _, transport := range []string{"http", "udp"} {
		t.Run(transport, func(t *testing.T) {
			p, err := protocol.Get("thrift-" + transport)
			if err != nil {
				t.Fatal(err)
			}
			jaeger, err := solo.Start(t.Context(), program, p)
			if err != nil {
				t.Fatal(err)
			}
			defer jaeger.Close()
			e := NewHTTP(jaeger.Target, Options{})
			if transport == "udp" {
				if e, err = NewUDP(jaeger.Target, Options{MaxBytes: 20_000}); err != nil {
					t.Fatal(err)
				}
			}
			before, counted := protocol.ReadUDPErrors()
			if err := e.ExportSpans(t.Context(), spans); err != nil {
				t.Fatal(err)
			}
			stored := countStored(t, jaeger, spans, p.UDP)
			after, err := protocol.ReadUDPErrors()
			lost := after.Since(before)
			switch {
			case !p.UDP && stored != len(spans):
				t.Errorf("%d of %d spans are stored: lossy", stored, len(spans))
			case stored < len(spans) && counted == nil && err == nil && lost.InErrors == 0:
				t.Errorf("%d of %d spans are stored, and the kernel lost no packet", stored, len(spans))
			}
			t.Logf("%s: %d of %d spans stored; the kernel lost %d packets; %+v",
				transport, stored, len(spans), lost.InErrors, e.Totals())
			if err := e.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// countStored compares what is stored with what was exported. Nobody says when a packet was taken
// in, so over UDP what lacks is asked for again for some seconds.
func countStored(t *testing.T, jaeger *solo.Jaeger, spans []sdktrace.ReadOnlySpan, wait bool) (stored int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for seq := range realTraces {
		want := spans[seq*realWidth : (seq+1)*realWidth]
		id := want[0].SpanContext().TraceID()
		got := readTrace(t, jaeger, id)
		for wait && len(got) < realWidth && time.Now().Before(deadline) {
			got = readTrace(t, jaeger, id)
		}
		for _, s := range want {
			if text, ok := got[s.SpanContext().SpanID().String()]; ok {
				stored++
				if wanted := exportedFacts(s); text != wanted {
					t.Fatalf("stored   %s\nexported %s", text, wanted)
				}
			}
		}
	}
	return stored
}

// facts are what is compared of a span, as one line.
func facts(service, operation string, startUS, durationUS int64, tags map[string]string, events string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, key+"="+tags[key])
	}
	return fmt.Sprint(service, " ", operation, " ", startUS, " ", durationUS, " ", all, " ", events)
}

func exportedFacts(s sdktrace.ReadOnlySpan) string {
	tags := map[string]string{}
	for _, kv := range s.Attributes() {
		tags[string(kv.Key)] = kv.Value.Emit()
	}
	if kind := kindOf(s.SpanKind()); kind != "" {
		tags["span.kind"] = kind
	}
	if s.Status().Code == codes.Error {
		tags["error"] = "true"
	}
	service, _ := s.Resource().Set().Value("service.name")
	events := ""
	for _, event := range s.Events() {
		events = fmt.Sprint(event.Time.UnixMicro(), "event=happened why=w")
	}
	return facts(service.AsString(), s.Name(), s.StartTime().UnixMicro(), s.EndTime().Sub(s.StartTime()).Microseconds(),
		tags, events)
}

// readTrace gives the facts of a trace's stored spans by span id.
func readTrace(t *testing.T, jaeger *solo.Jaeger, id trace.TraceID) map[string]string {
	t.Helper()
	stored, err := jaeger.Trace(t.Context(), binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, s := range stored {
		tags := map[string]string{}
		for _, one := range s.Tags {
			if one.Key != "otel.status_code" { // Jaeger's own word for error=true
				tags[one.Key] = one.Value
			}
		}
		events := ""
		for _, log := range s.Logs {
			events = fmt.Sprint(log.TimeUS)
			var fields []string
			for _, one := range log.Fields {
				fields = append(fields, one.Key+"="+one.Value)
			}
			slices.Sort(fields)
			events += strings.Join(fields, " ")
		}
		all[fmt.Sprintf("%016x", s.ID.Span)] = facts(s.Service, s.Operation, s.StartUS, s.DurationUS, tags, events)
	}
	return all
}
