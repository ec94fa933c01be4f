package protocol

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/uber/jaeger-client-go"
	jaegertransport "github.com/uber/jaeger-client-go/transport"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// tap stands twice in the way of a batch: before the library's transport, where it sees which
// spans come out of the queue, and below its HTTP client, where it sees the answer. Only the
// reporter's goroutine uses it.
type tap struct {
	client  *reporterClient
	inner   *jaegertransport.HTTPTransport
	pending []uint64       // indexes of the spans in the transport's unfinished batch
	outcome record.Outcome // of the request that the batch's flush made
	asked   bool           // that request was made
}

// Append implements jaeger.Transport.
func (t *tap) Append(span *jaeger.Span) (int, error) {
	self := span.SpanContext()
	id := trace.ID{High: self.TraceID().High, Low: self.TraceID().Low, Span: uint64(self.SpanID())}
	ref, ok := t.client.config.Numbering.Locate(id)
	if !ok {
		return 0, errors.New("append span " + id.String() + " to the batch: it is not of this run's numbering")
	}
	t.pending = append(t.pending, ref.Index)
	flushed, err := t.inner.Append(span)
	t.settle(flushed)
	return flushed, err
}

// Flush implements jaeger.Transport.
func (t *tap) Flush() (int, error) {
	flushed, err := t.inner.Flush()
	t.settle(flushed)
	return flushed, err
}

// Close implements jaeger.Transport.
func (t *tap) Close() error { return t.inner.Close() }

// settle reports the fate of the batch that was just sent, one outcome for each run of
// consecutive spans: between the runs are those that the queue dropped.
func (t *tap) settle(flushed int) {
	if flushed == 0 {
		return
	}
	spans, asked := t.pending, t.asked
	t.pending, t.asked = t.pending[:0], false
	if !asked {
		return // no request was made: these spans never left
	}
	t.client.reported.Add(int64(len(spans)))
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && spans[n] == spans[0]+uint64(n) {
			n++
		}
		o := t.outcome
		o.First, o.Spans = spans[0], uint32(n)
		t.client.config.Report(o)
		spans = spans[n:]
	}
}

// RoundTrip implements http.RoundTripper.
func (t *tap) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPost {
		return nil, errors.New("follow a redirect of the collector: spans are only posted")
	}
	if err := t.client.giveUp.Err(); err != nil {
		request.Body.Close()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(request.Context(), t.client.config.Timeout)
	defer context.AfterFunc(t.client.giveUp, cancel)()
	ctx, sent := watchHTTP(ctx)
	t.client.requests.Add(1)
	t.client.payload.Add(request.ContentLength)
	config := t.client.config
	t.outcome = record.Outcome{Phase: config.Phase, Worker: config.Worker, Attempts: 1, Sent: time.Now().UnixNano()}
	t.outcome.Intended, t.asked = t.outcome.Sent, true

	response, err := t.client.rounds.RoundTrip(request.WithContext(ctx))
	var a answer
	if err != nil {
		a = judgeNoAnswer(ctx, err, sent.Load())
	} else {
		text := capture(response, cancel)
		a = judgeHTTP(response.StatusCode, response.Header, text)
	}
	if a.heard {
		t.outcome.Answered = time.Now().UnixNano()
	}
	var doubt string
	t.outcome.Class, t.outcome.Code = classify(a, &doubt)
	if t.asked = !(a.verdict == unreached && t.client.giveUp.Err() != nil); err != nil {
		cancel()
	}
	return response, err
}

// capture reads a short answer for the record and puts it back for the library.
func capture(response *http.Response, done context.CancelFunc) string {
	defer done()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	response.Body.Close()
	response.Body = io.NopCloser(strings.NewReader(string(text)))
	return string(text[:min(len(text), maxReason)])
}
