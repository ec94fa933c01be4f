package exporters

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/opentracing/opentracing-go"
	jaegerclient "github.com/uber/jaeger-client-go"
	jaegertransport "github.com/uber/jaeger-client-go/transport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/jaeger"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"jaegerlab/lab/exporter"
)

// session exports batches to one destination.
type session struct {
	batch func(context.Context) error // exports one batch and returns when everything has left
	close func(context.Context) error
}

// arm is one exporter with its transport.
type arm struct {
	name string
	hole string // kind; "" = a black hole in memory, at the end of the exporter's own transport
	open func(ctx context.Context, addr string, in *input) (session, error)
}

// input are the spans of a batch, as each library has them.
type input struct {
	spans  []sdktrace.ReadOnlySpan
	client []*jaegerclient.Span
}

const (
	tags      = 10
	width     = 11 // spans a trace
	operation = "child"
)

func traceID(high, low uint64) (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}

func spanID(span uint64) (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], span)
	return id
}

// newInput makes a batch of finished spans that take turns over the services.
func newInput(size, services int) (*input, error) {
	in := &input{}
	var resources []*resource.Resource
	for i := range services {
		name := attribute.String("service.name", fmt.Sprintf("jaegerlab-%06d", i))
		resources = append(resources, resource.NewSchemaless(name))
	}
	kept := jaegerclient.NewInMemoryReporter()
	tracer, closer := jaegerclient.NewTracer("jaegerlab-000000", jaegerclient.NewConstSampler(true), kept)
	defer closer.Close()
	start := time.Now().Truncate(time.Microsecond) // what Jaeger keeps
	for i := range size {
		first := i / width * width // the root of its trace
		high, low, self := uint64(1<<62|first), uint64(1<<62|first), uint64(1<<62|i)
		parent := uint64(0)
		if i > first {
			parent = uint64(1<<62 | first)
		}
		id, span, above := traceID(high, low), spanID(self), trace.SpanContext{}
		if parent != 0 {
			above = trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: spanID(parent)})
		}
		from, to := start.Add(time.Duration(i)*time.Microsecond), start.Add(time.Duration(i+1)*time.Microsecond)
		stub := tracetest.SpanStub{
			Name: operation, Resource: resources[i%services], StartTime: from, EndTime: to, Parent: above,
			SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled}),
		}
		own := jaegerclient.NewSpanContext(jaegerclient.TraceID{High: high, Low: low},
			jaegerclient.SpanID(self), jaegerclient.SpanID(parent), true, nil)
		old := tracer.StartSpan(operation, jaegerclient.SelfRef(own), opentracing.StartTime(from))
		for tag := range tags {
			key, value := fmt.Sprintf("tag-%d", tag), fmt.Sprintf("value-%d", tag)
			stub.Attributes = append(stub.Attributes, attribute.String(key, value))
			old.SetTag(key, value)
		}
		old.FinishWithOptions(opentracing.FinishOptions{FinishTime: to})
		in.spans = append(in.spans, stub.Snapshot())
	}
	for _, span := range kept.GetSpans() {
		one, ok := span.(*jaegerclient.Span)
		if !ok {
			return nil, fmt.Errorf("prepare spans: jaeger-client-go gave a %T", span)
		}
		in.client = append(in.client, one)
	}
	return in, nil
}

// arms lists all exporters, the lab's own last.
func arms() []arm {
	return []arm{
		{"otel-jaeger/memory", "", otelJaegerHTTP},
		{"otel-jaeger/udp", holeUDP, otelJaegerUDP},
		{"otel-jaeger/http", holeThrift, otelJaegerHTTP},
		{"jaeger-client-go/memory", "", clientHTTP},
		{"jaeger-client-go/udp", holeUDP, clientUDP},
		{"jaeger-client-go/http", holeThrift, clientHTTP},
		{"otlp/memory", "", otlpHTTP},
		{"otlp/grpc", holeOTLP, otlpGRPC},
		{"otlp/http", holeOTLPHTTP, otlpHTTP},
		{"lab/memory", "", lab(exporter.Options{}, false)},
		{"lab/udp", holeUDP, lab(exporter.Options{}, false)},
		{"lab/http", holeThrift, labHTTP},
		{"lab/udp/double-batching", holeUDP, lab(exporter.Options{}, true)},
	}
}

// variants are those of the question what headers cost: with several services.
func variants() []arm {
	return []arm{
		{"lab/udp/header=batch", holeUDP, lab(exporter.Options{}, false)},
		{"lab/udp/header=run", holeUDP, lab(exporter.Options{InOrder: true}, false)},
		{"lab/udp/header=batch/remembered=5", holeUDP, lab(exporter.Options{MaxProcesses: 5}, false)},
	}
}

// of makes a session of an exporter of the SDK.
func of(e sdktrace.SpanExporter, in *input) session {
	return session{batch: func(ctx context.Context) error { return e.ExportSpans(ctx, in.spans) }, close: e.Shutdown}
}

// discarding is the end of net/http's clients in memory: the body is read, the answer is 202.
type discarding struct{}

func (discarding) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody, Header: http.Header{}, Request: r}, err
}

// roundTripper is the way to addr; "" = into memory.
func roundTripper(addr string) http.RoundTripper {
	if addr == "" {
		return discarding{}
	}
	return &http.Transport{DisableCompression: true}
}

func orMemory(addr string) string {
	if addr == "" {
		return "memory.invalid:1"
	}
	return addr
}

func otelJaegerUDP(_ context.Context, addr string, in *input) (session, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return session{}, err
	}
	e, err := jaeger.New(jaeger.WithAgentEndpoint(jaeger.WithAgentHost(host), jaeger.WithAgentPort(port),
		jaeger.WithDisableAttemptReconnecting(), jaeger.WithLogger(log.New(io.Discard, "", 0))))
	if err != nil {
		return session{}, err
	}
	return of(e, in), nil
}

func otelJaegerHTTP(_ context.Context, addr string, in *input) (session, error) {
	e, err := jaeger.New(jaeger.WithCollectorEndpoint(jaeger.WithEndpoint("http://"+orMemory(addr)+"/api/traces"),
		jaeger.WithHTTPClient(&http.Client{Transport: roundTripper(addr)})))
	if err != nil {
		return session{}, err
	}
	return of(e, in), nil
}

func otlpGRPC(ctx context.Context, addr string, in *input) (session, error) {
	e, err := otlptracegrpc.New(ctx, otlptracegrpc.WithInsecure(), otlptracegrpc.WithEndpoint(addr))
	if err != nil {
		return session{}, err
	}
	return of(e, in), nil
}

func otlpHTTP(ctx context.Context, addr string, in *input) (session, error) {
	e, err := otlptracehttp.New(ctx, otlptracehttp.WithInsecure(), otlptracehttp.WithEndpoint(orMemory(addr)),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: roundTripper(addr)}))
	if err != nil {
		return session{}, err
	}
	return of(e, in), nil
}

// transport makes a session of one of jaeger-client-go's transports: what its reporter does.
func transport(t jaegerclient.Transport, in *input) session {
	return session{
		batch: func(context.Context) error {
			var problems []error
			for _, span := range in.client {
				if _, err := t.Append(span); err != nil {
					problems = append(problems, err)
				}
			}
			_, err := t.Flush()
			return errors.Join(append(problems, err)...)
		},
		close: func(context.Context) error { return t.Close() },
	}
}

func clientUDP(_ context.Context, addr string, in *input) (session, error) {
	t, err := jaegerclient.NewUDPTransport(addr, 0)
	if err != nil {
		return session{}, err
	}
	return transport(t, in), nil
}

func clientHTTP(_ context.Context, addr string, in *input) (session, error) {
	return transport(jaegertransport.NewHTTPTransport("http://"+orMemory(addr)+"/api/traces?format=jaeger.thrift",
		jaegertransport.HTTPBatchSize(len(in.client)), jaegertransport.HTTPRoundTripper(roundTripper(addr))), in), nil
}

// lab is the lab's exporter over UDP, or, without an address, into memory.
func lab(o exporter.Options, twice bool) func(context.Context, string, *input) (session, error) {
	return func(_ context.Context, addr string, in *input) (session, error) {
		e := exporter.NewDiscard(o)
		if addr != "" {
			var err error
			if e, err = exporter.NewUDP(addr, o); err != nil {
				return session{}, err
			}
		}
		if twice {
			return batchTwice(e, in), nil
		}
		return of(e, in), nil
	}
}

func labHTTP(_ context.Context, addr string, in *input) (session, error) {
	return of(exporter.NewHTTP(addr, exporter.Options{}), in), nil
}

// batchTwice puts a second level of batching behind the first, as the exporter of the seed had it:
// spans are copied into a queue, and another goroutine makes batches of 512 of them.
func batchTwice(e sdktrace.SpanExporter, in *input) session {
	const second = 512
	queue := make(chan sdktrace.ReadOnlySpan, 2048)
	flushed := make(chan error)
	go func() {
		defer close(flushed)
		var batch []sdktrace.ReadOnlySpan
		var problems []error
		send := func() {
			if len(batch) > 0 {
				problems = append(problems, e.ExportSpans(context.Background(), batch))
			}
			batch = nil // the exporter may keep it, as far as this level knows
		}
		for span := range queue {
			if span == nil { // flush
				send()
				flushed <- errors.Join(problems...)
				problems = nil
				continue
			}
			if batch = append(batch, span); len(batch) == second {
				send()
			}
		}
	}()
	return session{
		batch: func(context.Context) error {
			for _, span := range in.spans {
				queue <- span
			}
			queue <- nil
			return <-flushed
		},
		close: func(ctx context.Context) error {
			close(queue)
			for range flushed {
			}
			return e.Shutdown(ctx)
		},
	}
}

// udp reports whether an arm's transport gives no delivery guarantee.
func (a arm) udp() bool { return strings.HasPrefix(a.hole, holeUDP) }
