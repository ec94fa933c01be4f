// Package sink is a black hole for spans: a gRPC server that takes OTLP exports, HTTP servers that
// take OTLP and Jaeger's thrift batches, and a UDP socket, all without decoding anything. Tests plant bad
// answers in it, benchmarks measure generators against it, and as a program it is a run's collector and
// store in one, where the generator's own ceiling is asked for.
package sink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

// Reply is how a request is answered; the zero value takes it.
type Reply struct {
	Delay      time.Duration // before the answer
	Reset      bool          // cut the connection instead of answering, after the request was read
	Code       uint32        // gRPC status; 0 = OK
	Status     int           // HTTP status; 0 = 202
	Message    string        // text of the status
	RetryAfter time.Duration // RetryInfo (gRPC) or Retry-After in full seconds (HTTP); 0 = none
	Rejected   int64         // OTLP partial success: spans rejected
}

// Sink is a black hole. Set the fields before Open.
type Sink struct {
	// Answer decides about request number n (0, 1, ...); nil takes everything. The body is the
	// caller's to keep when Keep is set, and valid until Answer returns otherwise.
	Answer func(n int64, body []byte) Reply
	Keep   bool   // give each request bytes of its own
	Count  bool   // count spans, by walking over lengths
	Listen string // host:port; "" = a free port of 127.0.0.1

	requests, bytes, spans atomic.Int64

	addr     string
	count    func([]byte) int64 // spans of a request
	life     context.Context
	end      context.CancelFunc
	server   closer
	listener *tracked
	done     chan struct{}
}

type closer interface{ Close() error }

// Open starts the sink as the receiver behind one of a collector's ports, by the port's name.
func (s *Sink) Open(port string) error {
	switch port {
	case "otlp-grpc":
		return s.openOTLP()
	case "otlp-http":
		return s.openOTLPHTTP()
	case "thrift-http":
		return s.openThriftHTTP()
	case "thrift-udp":
		return s.openUDP()
	}
	return fmt.Errorf("open a black hole for port %q: there is none; accepted: otlp-grpc, otlp-http, thrift-http, thrift-udp", port)
}

// Requests is how many requests were read in full.
func (s *Sink) Requests() int64 { return s.requests.Load() }

// Bytes is the sum of their bodies.
func (s *Sink) Bytes() int64 { return s.bytes.Load() }

// Spans is how many spans were in them; 0 unless Count is set.
func (s *Sink) Spans() int64 { return s.spans.Load() }

// Addr is host:port.
func (s *Sink) Addr() string { return s.addr }

// Close ends the sink and every connection, and waits for its goroutines.
func (s *Sink) Close() {
	s.end()
	_ = s.server.Close()
	<-s.done
}

func (s *Sink) listen() error {
	listener, err := net.Listen("tcp4", cmp.Or(s.Listen, "127.0.0.1:0"))
	if err != nil {
		return fmt.Errorf("open the sink: %w", err)
	}
	s.addr = listener.Addr().String()
	s.listener = &tracked{Listener: listener, open: map[string]*net.TCPConn{}}
	s.life, s.end = context.WithCancel(context.Background())
	s.done = make(chan struct{})
	return nil
}

// take counts a request and returns its reply once it is due; false = the sink is closing.
func (s *Sink) take(body []byte) (Reply, bool) {
	n := s.requests.Add(1) - 1
	s.bytes.Add(int64(len(body)))
	if s.Count {
		s.spans.Add(s.count(body))
	}
	if s.Answer == nil {
		return Reply{}, true
	}
	reply := s.Answer(n, body)
	if reply.Delay == 0 {
		return reply, true
	}
	timer := time.NewTimer(reply.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return reply, true
	case <-s.life.Done():
		return reply, false
	}
}

// tracked remembers open connections by the client's address, so that one can be reset.
type tracked struct {
	net.Listener
	mu   sync.Mutex
	open map[string]*net.TCPConn
}

// Accept implements net.Listener.
func (t *tracked) Accept() (net.Conn, error) {
	conn, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, errors.New("accept: not a TCP connection")
	}
	t.mu.Lock()
	t.open[conn.RemoteAddr().String()] = tcp
	t.mu.Unlock()
	return &trackedConn{TCPConn: tcp, forget: func() {
		t.mu.Lock()
		delete(t.open, conn.RemoteAddr().String())
		t.mu.Unlock()
	}}, nil
}

// reset sends RST to the client at this address.
func (t *tracked) reset(client string) {
	t.mu.Lock()
	conn := t.open[client]
	t.mu.Unlock()
	if conn != nil {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
}

type trackedConn struct {
	*net.TCPConn
	once   sync.Once
	forget func()
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	c.once.Do(c.forget)
	return c.TCPConn.Close()
}

type grpcCloser struct{ *grpc.Server }

func (g grpcCloser) Close() error { g.Stop(); return nil }

type httpCloser struct{ *http.Server }
