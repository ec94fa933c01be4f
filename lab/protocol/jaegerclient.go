package protocol

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/log"
	"github.com/uber/jaeger-client-go"
	jaegertransport "github.com/uber/jaeger-client-go/transport"

	"jaegerlab/lab/trace"
)

// jaegerClient is the real jaeger-client-go with its HTTP transport and its defaults: a queue of
// 100 spans that drops when it is full, batches of 100 spans, a flush every second, one attempt.
// Only what it must be told differs: span contexts from the lab's numbering, the same deadline as
// every other client, and a transport that notes which spans left and what the answer was.
func jaegerClient() Protocol {
	const name = "jaeger-client"
	return Protocol{
		Name:       name,
		Port:       "thrift-http",
		Queue:      true,
		ReceiverV2: jaegerReceiver(),
		RetryRule:  "never: jaeger-client-go sends a batch once",
		Open: func(addr string, config Config) (Client, error) {
			return openReporter(name, addr, config)
		},
	}
}

const jaegerClientBatch = 100 // the default of its HTTP transport

// reporterClient drives one tracer for each service, as a program has one tracer.
type reporterClient struct {
	config  Config
	content trace.Content
	url     string
	batch   int
	rounds  *http.Transport
	giveUp  context.Context // ends when the flush's deadline has come: nothing is sent any more
	end     context.CancelFunc
	tracers map[string]tracer

	generated                         int64
	reported, full, requests, payload atomic.Int64
}

type tracer struct {
	opentracing.Tracer
	io.Closer
}

func openReporter(name, addr string, config Config) (Client, error) {
	content := config.Content()
	w := wire{client: name, encode: encodeThriftBinary, maxBytes: MaxRequestBytes, maxSpans: MaxRequestSpans}
	if _, err := w.spansPerRequest(content, config.Numbering.Width, 1); err != nil {
		return nil, err
	}
	size := len(encodeThriftBinary(content, 2, 1, 1).bytes)
	most := min(jaegerClientBatch, max(MaxRequestBytes/size, 1), w.within(config).maxSpans)
	giveUp, end := context.WithCancel(context.Background())
	return &reporterClient{
		config: config, content: content, url: tracesURL(addr), rounds: newRounds(), giveUp: giveUp, end: end,
		batch: most, tracers: map[string]tracer{},
	}, nil
}

func (r *reporterClient) tracer(service string) tracer {
	if t, ok := r.tracers[service]; ok {
		return t
	}
	tap := &tap{client: r}
	const behind = time.Second // the library's own time-out, behind the tap's, which says what it was
	tap.inner = jaegertransport.NewHTTPTransport(r.url, jaegertransport.HTTPBatchSize(r.batch),
		jaegertransport.HTTPTimeout(r.config.Timeout+behind), jaegertransport.HTTPRoundTripper(tap))
	metrics := jaeger.NewNullMetrics()
	metrics.ReporterDropped = counter{&r.full}
	random := rand.New(rand.NewPCG(r.config.Seed, uint64(r.config.Worker)))
	options := []jaeger.TracerOption{jaeger.TracerOptions.RandomNumber(random.Uint64)}
	for _, tag := range r.content.Resource() {
		options = append(options, jaeger.TracerOptions.Tag(tag.Key, tag.Value))
	}
	reporter := jaeger.NewRemoteReporter(tap, jaeger.ReporterOptions.Metrics(metrics))
	made, closer := jaeger.NewTracer(service, everySpan{}, reporter, options...)
	r.tracers[service] = tracer{made, closer}
	return r.tracers[service]
}

// Send puts a batch of traces into the tracer's queue; the library makes its own batches of them.
func (r *reporterClient) Send(ctx context.Context, work Work) {
	if ctx.Err() != nil {
		return
	}
	width := uint64(r.config.Numbering.Width)
	for seq := work.Seq; seq < work.Seq+uint64(r.config.Traces()); seq++ {
		tracer := r.tracer(r.content.Service(r.config.Worker, seq))
		for index := seq * width; index < (seq+1)*width; index++ {
			ref := trace.Ref{Phase: r.config.Phase, Worker: r.config.Worker, Index: index}
			r.finish(tracer, r.content.Span(r.config.Numbering, ref, work.StartUS+int64((seq-work.Seq)*width)))
		}
		r.generated += int64(width)
	}
}

// finish hands one span to the tracer, under the identity that the numbering gives it.
func (r *reporterClient) finish(tracer tracer, s trace.Span) {
	self := jaeger.NewSpanContext(jaeger.TraceID{High: s.ID.High, Low: s.ID.Low},
		jaeger.SpanID(s.ID.Span), jaeger.SpanID(s.Parent), true, nil)
	start := time.UnixMicro(s.StartUS)
	span := tracer.StartSpan(s.Operation, jaeger.SelfRef(self), opentracing.StartTime(start))
	for _, tag := range s.Tags {
		span.SetTag(tag.Key, tag.Value)
	}
	if s.Error {
		span.SetTag("error", true)
	}
	duration := time.Duration(s.DurationUS) * time.Microsecond
	finish := opentracing.FinishOptions{FinishTime: start.Add(duration)}
	for _, event := range s.Events {
		finish.LogRecords = append(finish.LogRecords, opentracing.LogRecord{
			Timestamp: time.UnixMicro(event.TimeUS), Fields: []log.Field{log.String("event", event.Name)},
		})
	}
	span.FinishWithOptions(finish)
}

// Close flushes the queues until ctx ends; what is still queued then never leaves.
func (r *reporterClient) Close(ctx context.Context) Totals {
	var closing sync.WaitGroup
	for _, t := range r.tracers {
		closing.Go(func() { _ = t.Close() })
	}
	closed := make(chan struct{})
	go func() { closing.Wait(); close(closed) }()
	var queued int64
	select {
	case <-closed:
	case <-ctx.Done():
		queued = r.generated - r.full.Load() - r.reported.Load()
		r.end() // requests in flight fail at once, the rest of the queue is not sent
		<-closed
	}
	r.end()
	r.rounds.CloseIdleConnections()
	dropped := r.generated - r.reported.Load()
	return Totals{Requests: r.requests.Load(), Bytes: r.payload.Load(), QueueDropped: &dropped,
		Queued: &queued}
}

// everySpan samples everything and, unlike the library's constant sampler, adds no tags: it is
// asked for each span here, while a real program's children inherit the decision of their root.
type everySpan struct{}

func (everySpan) IsSampled(jaeger.TraceID, string) (bool, []jaeger.Tag) { return true, nil }
func (everySpan) Close()                                                {}
func (everySpan) Equal(jaeger.Sampler) bool                             { return false }

type counter struct{ n *atomic.Int64 }

func (c counter) Inc(delta int64) { c.n.Add(delta) }
