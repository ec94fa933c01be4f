package protocol

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
)

// thriftHTTP sends Jaeger's thrift batches as the original experiment's exporter did.
func thriftHTTP() Protocol {
	w := wire{client: "thrift-http", encode: encodeThriftBinary, maxBytes: MaxRequestBytes, maxSpans: MaxRequestSpans}
	return Protocol{
		Name:       w.client,
		Port:       "thrift-http",
		ReceiverV2: jaegerReceiver(),
		RetryRule:  RetryRule,
		Open: func(addr string, config Config) (Client, error) {
			return openSender(w, config, func() (transport, error) {
				return newHTTPTransport(tracesURL(addr), "application/x-thrift"), nil
			})
		},
	}
}

func jaegerReceiver() map[string]any {
	return map[string]any{"jaeger": map[string]any{"protocols": map[string]any{
		"thrift_http": map[string]any{"endpoint": "${ip}:${port.thrift-http}"},
	}}}
}

// tracesURL is where Jaeger's collectors take thrift batches.
func tracesURL(addr string) string { return "http://" + addr + "/api/traces?format=jaeger.thrift" }

// httpTransport posts requests over one kept-alive connection.
type httpTransport struct {
	url, contentType string
	rounds           *http.Transport
	judge            func(code int, header http.Header, body []byte, spans int) answer

	gzip   bool
	zip    *gzip.Writer
	packed *bytes.Buffer // nil: somebody may still be reading the last one
}

func newHTTPTransport(url, contentType string) *httpTransport {
	return &httpTransport{url: url, contentType: contentType, rounds: newRounds(), judge: judgeThriftHTTP}
}

// newRounds is a transport for one worker: no proxy, no compression, and its own connection.
func newRounds() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: maxBackoff}).DialContext,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     90 * time.Second,
	}
}

func (h *httpTransport) close() { h.rounds.CloseIdleConnections() }

func (h *httpTransport) attempt(ctx context.Context, body []byte, spans int) answer {
	if h.gzip {
		body = h.pack(body)
	}
	ctx, sent := watchHTTP(ctx)
	var readers atomic.Int32
	request, err := newPost(ctx, h.url, body, &readers)
	if err != nil {
		return answer{verdict: unreached, code: reason("unreachable", err.Error())}
	}
	request.Header.Set("Content-Type", h.contentType)
	if h.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := h.rounds.RoundTrip(request)
	if err != nil {
		h.packed = nil
		a := judgeNoAnswer(ctx, err, sent.Load())
		a.bytes = len(body)
		return a
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
	a := h.judge(response.StatusCode, response.Header, text, spans)
	a.bytes, a.busy = len(body), readers.Load() > 0
	if a.busy {
		h.packed = nil
	}
	return a
}

// maxAnswer is how much of an answer is read for its meaning.
const maxAnswer = 16 << 10

// pack compresses a body into the transport's own buffer, at the speed that collectors' clients use.
func (h *httpTransport) pack(body []byte) []byte {
	if h.packed == nil {
		h.packed = &bytes.Buffer{}
	}
	if h.zip == nil {
		h.zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a constant that exists
	}
	h.packed.Reset()
	h.zip.Reset(h.packed)
	_, _ = h.zip.Write(body) // a buffer takes everything
	_ = h.zip.Close()
	return h.packed.Bytes()
}

// newPost is a request whose body tells how many readers of it are open: net/http may go on
// reading after an early answer.
func newPost(ctx context.Context, url string, body []byte, readers *atomic.Int32) (*http.Request, error) {
	open := func() (io.ReadCloser, error) {
		readers.Add(1)
		return &countedReader{Reader: bytes.NewReader(body), close: sync.OnceFunc(func() { readers.Add(-1) })}, nil
	}
	reader, _ := open()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, reader)
	if err != nil {
		return nil, err
	}
	request.ContentLength, request.GetBody = int64(len(body)), open
	return request, nil
}

type countedReader struct {
	*bytes.Reader
	close func()
}

func (c *countedReader) Close() error {
	c.close()
	return nil
}

// watchHTTP notes whether the request got a connection: from then on it may have been written.
func watchHTTP(ctx context.Context) (context.Context, *atomic.Bool) {
	var sent atomic.Bool
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	}), &sent
}

// judgeNoAnswer judges an error of the connection.
func judgeNoAnswer(ctx context.Context, err error, sent bool) answer {
	switch {
	case !sent:
		return answer{verdict: unreached, retry: true, code: reason("unreachable", err.Error())}
	case ctx.Err() != nil:
		return answer{verdict: unknown, code: reason("no answer", ctx.Err().Error())}
	default:
		return answer{verdict: unknown, retry: true, code: reason("connection lost before the answer", err.Error())}
	}
}

// retryAfter reads seconds or a date; 0 = neither.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return max(time.Duration(seconds)*time.Second, time.Millisecond)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Until(at), time.Millisecond)
	}
	return 0
}
