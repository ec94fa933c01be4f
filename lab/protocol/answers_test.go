package protocol_test

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/protocol/sink"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

const (
	children = 10
	width    = children + 1
)

// ledger collects what a client reports.
type ledger struct {
	mu       sync.Mutex
	outcomes []record.Outcome
}

func (l *ledger) report(o record.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes = append(l.outcomes, o)
}

func (l *ledger) spans(class record.Class) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.outcomes {
		if o.Class == class {
			n += int(o.Spans)
		}
	}
	return n
}

func open(t *testing.T, client, addr string, timeout time.Duration) (protocol.Client, *ledger) {
	t.Helper()
	return openLoad(t, client, addr, timeout, spec.Load{SpansCount: children, TagsCount: 3, Services: 1, TagValues: 1})
}

func openLoad(t *testing.T, client, addr string, timeout time.Duration, load spec.Load) (protocol.Client, *ledger) {
	t.Helper()
	p, err := protocol.Get(client)
	if err != nil {
		t.Fatal(err)
	}
	var l ledger
	c, err := p.Open(addr, protocol.Config{
		Numbering: trace.New(42, children), Load: load, Seed: 1, Worker: 2, Timeout: timeout, Report: l.report,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, &l
}

func start(t testing.TB, client string, s *sink.Sink) string {
	t.Helper()
	p, err := protocol.Get(client)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(p.Port); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.Addr()
}

// No client, not even one that makes its own batches, sends more spans together than LAB_MAX_REQUEST_SPANS.
func TestRequestsHoldNoMoreSpansThanAsked(t *testing.T) {
	const most = 3
	for _, client := range protocol.Names() {
		s := &sink.Sink{}
		c, l := openLoad(t, client, start(t, client, s), 5*time.Second,
			spec.Load{SpansCount: children, TagsCount: 3, Services: 1, TagValues: 1, MaxRequestSpans: most})
		c.Send(t.Context(), protocol.Work{StartUS: 1000})
		totals := c.Close(t.Context())
		if want := int64((width + most - 1) / most); totals.Requests != want {
			t.Errorf("%s: %d requests for %d spans, want %d", client, totals.Requests, width, want)
		}
		for _, o := range l.outcomes {
			if o.Spans > most {
				t.Errorf("%s: a request of %d spans", client, o.Spans)
			}
		}
	}
}

// once sends one trace and returns its only outcome.
func once(t *testing.T, client, addr string, timeout time.Duration) record.Outcome {
	t.Helper()
	c, l := open(t, client, addr, timeout)
	c.Send(t.Context(), protocol.Work{Seq: 0, StartUS: 1000})
	c.Close(t.Context())
	if len(l.outcomes) != 1 {
		t.Fatalf("outcomes %+v, want one", l.outcomes)
	}
	o := l.outcomes[0]
	if o.Worker != 2 || o.First != 0 || o.Spans != width || o.Sent == 0 || o.Intended != o.Sent {
		t.Errorf("outcome %+v is not of trace 0 of worker 2", o)
	}
	return o
}

// always answers every request alike; first only the first one, and takes the others.
func always(r sink.Reply) func(int64, []byte) sink.Reply {
	return func(int64, []byte) sink.Reply { return r }
}

func first(r sink.Reply) func(int64, []byte) sink.Reply {
	return func(n int64, _ []byte) sink.Reply {
		if n > 0 {
			return sink.Reply{}
		}
		return r
	}
}

// answerCase is one way to answer a request, and what the client must make of it.
type answerCase struct {
	name, client string
	answer       func(int64, []byte) sink.Reply
	class        record.Class
	attempts     uint16 // 0 = more than one
	heard        bool
	code         string
}

type reply = sink.Reply

func code(c codes.Code) uint32 { return uint32(c) }

func grpcAnswers() []answerCase {
	return []answerCase{
		{"taken", "otlp-grpc", nil, record.Acked, 1, true, ""},
		{"no answer in time", "otlp-grpc", always(reply{Delay: time.Hour}), record.Unanswered, 1, false, "DEADLINE_EXCEEDED"},
		{"late but in time", "otlp-grpc", always(reply{Delay: 50 * time.Millisecond}), record.Acked, 1, true, ""},
		{"not retryable", "otlp-grpc", always(reply{Code: code(codes.InvalidArgument), Message: "bad spans"}),
			record.Refused, 1, true, "INVALID_ARGUMENT: bad spans"},
		{"internal", "otlp-grpc", always(reply{Code: code(codes.Internal)}), record.Refused, 1, true, "INTERNAL"},
		{"queue full, then room", "otlp-grpc", first(reply{Code: code(codes.Unavailable)}), record.Acked, 2, true, ""},
		{"queue full for ever", "otlp-grpc", always(reply{Code: code(codes.Unavailable), Message: "queue is full"}),
			record.Refused, 0, true, "UNAVAILABLE: queue is full"},
		{"exhausted without RetryInfo", "otlp-grpc", first(reply{Code: code(codes.ResourceExhausted), Message: "m"}),
			record.Refused, 1, true, "RESOURCE_EXHAUSTED: m"},
		{"exhausted with RetryInfo", "otlp-grpc",
			first(reply{Code: code(codes.ResourceExhausted), RetryAfter: 20 * time.Millisecond}), record.Acked, 2, true, ""},
		{"receiver gave up in the middle", "otlp-grpc", always(reply{Code: code(codes.DeadlineExceeded), Message: "m"}),
			record.Unanswered, 0, true, "DEADLINE_EXCEEDED: m"},
		{"partial success", "otlp-grpc", always(reply{Rejected: 3, Message: "no"}), record.Unanswered, 1, true,
			"partial success: 3 of 11 spans rejected: no"},
		{"nothing of it", "otlp-grpc", always(reply{Rejected: width}), record.Refused, 1, true, "all spans rejected"},
		{"a warning", "otlp-grpc", always(reply{Message: "slow down"}), record.Acked, 1, true, ""},
		{"reply cut, sent again", "otlp-grpc", first(reply{Reset: true}), record.Acked, 2, true, ""},
		{"replies cut for ever", "otlp-grpc", always(reply{Reset: true}), record.Unanswered, 0, false, "connection lost"},
		{"reply cut, then refused", "otlp-grpc", then(reply{Reset: true}, reply{Code: code(codes.Internal)}),
			record.Unanswered, 2, true, "connection lost"},
	}
}

func httpAnswers() []answerCase {
	return []answerCase{
		{"taken", "thrift-http", nil, record.Acked, 1, true, ""},
		{"no answer in time", "thrift-http", always(reply{Delay: time.Hour}), record.Unanswered, 1, false, "no answer"},
		{"200", "thrift-http", always(reply{Status: 200}), record.Acked, 1, true, ""},
		{"redirect", "thrift-http", always(reply{Status: 302}), record.Refused, 1, true, "HTTP 302"},
		{"bad request", "thrift-http", always(reply{Status: 400, Message: "bad"}), record.Refused, 1, true, "HTTP 400: bad"},
		{"server error", "thrift-http", always(reply{Status: 500}), record.Refused, 1, true, "HTTP 500"},
		{"busy, then room", "thrift-http", first(reply{Status: 503}), record.Acked, 2, true, ""},
		{"busy for ever", "thrift-http", always(reply{Status: 503}), record.Refused, 0, true, "HTTP 503"},
		{"too many for longer than the deadline", "thrift-http", first(reply{Status: 429, RetryAfter: time.Hour}),
			record.Refused, 1, true, "HTTP 429"},
		{"gateway time-out", "thrift-http", then(reply{Status: 504}, reply{Status: 500}), record.Unanswered, 2, true,
			"HTTP 504"},
		{"reply cut, sent again", "thrift-http", first(reply{Reset: true}), record.Acked, 2, true, ""},
		{"replies cut for ever", "thrift-http", always(reply{Reset: true}), record.Unanswered, 0, false, "connection lost"},

		{"taken", "otlp-http", nil, record.Acked, 1, true, ""},
		{"no answer in time", "otlp-http", always(reply{Delay: time.Hour}), record.Unanswered, 1, false, "no answer"},
		{"partial success", "otlp-http", always(reply{Rejected: 3, Message: "no"}), record.Unanswered, 1, true,
			"partial success: 3 of 11 spans rejected: no"},
		{"nothing of it", "otlp-http", always(reply{Rejected: width}), record.Refused, 1, true, "all spans rejected"},
		{"bad request", "otlp-http", always(reply{Status: 400, Message: "bad spans"}), record.Refused, 1, true,
			"HTTP 400: bad spans"},
		{"busy, then room", "otlp-http", first(reply{Status: 503}), record.Acked, 2, true, ""},
		{"reply cut, sent again", "otlp-http", first(reply{Reset: true}), record.Acked, 2, true, ""},
		{"sent", "thrift-udp", nil, record.NoReply, 1, false, ""},

		{"taken", "jaeger-client", nil, record.Acked, 1, true, ""},
		{"no answer in time", "jaeger-client", always(reply{Delay: time.Hour}), record.Unanswered, 1, false, "no answer"},
		{"busy", "jaeger-client", first(reply{Status: 503}), record.Refused, 1, true, "HTTP 503"},
		{"redirect", "jaeger-client", always(reply{Status: 302}), record.Refused, 1, true, "HTTP 302"},
		{"reply cut", "jaeger-client", first(reply{Reset: true}), record.Unanswered, 1, false, "connection lost"},
	}
}

// Every answer has one class, and an error reply never counts as success (cases 7 and 55).
func TestAnswersAreClassified(t *testing.T) {
	const short = time.Second
	for _, test := range append(grpcAnswers(), httpAnswers()...) {
		t.Run(test.client+"/"+test.name, func(t *testing.T) {
			t.Parallel()
			o := once(t, test.client, start(t, test.client, &sink.Sink{Answer: test.answer}), short)
			if o.Class != test.class || !strings.HasPrefix(o.Code, test.code) {
				t.Errorf("class %v code %q, want %v %q", o.Class, o.Code, test.class, test.code)
			}
			if (test.code == "") != (o.Code == "") {
				t.Errorf("code %q", o.Code)
			}
			if test.attempts != 0 && o.Attempts != test.attempts || test.attempts == 0 && o.Attempts < 2 {
				t.Errorf("attempts %d, want %d", o.Attempts, test.attempts)
			}
			if heard := o.Answered != 0; heard != test.heard {
				t.Errorf("answered at %d, want an answer: %v", o.Answered, test.heard)
			}
		})
	}
}

func then(replies ...sink.Reply) func(int64, []byte) sink.Reply {
	return func(n int64, _ []byte) sink.Reply { return replies[min(int(n), len(replies)-1)] }
}

// Nobody listens: nothing was written, so the receiver can't have it.
func TestUnreachableIsRefused(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	for _, client := range protocol.Names() {
		if client == "thrift-udp" {
			continue // TestClosedPortShowsInTheNextPacket
		}
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			o := once(t, client, addr, 400*time.Millisecond)
			if o.Class != record.Refused || !strings.HasPrefix(o.Code, "unreachable: ") ||
				!strings.Contains(o.Code, "connection refused") || o.Answered != 0 {
				t.Errorf("outcome %+v, want refused as unreachable", o)
			}
			if client != "jaeger-client" && o.Attempts < 2 {
				t.Errorf("attempts %d, want more than one until the deadline", o.Attempts)
			}
		})
	}
}

// A run that is called off: what is on its way stays in doubt, what could not leave is unsent.
func TestCallingOffLeavesNoFalseRefusals(t *testing.T) {
	for _, client := range []string{"otlp-grpc", "otlp-http", "thrift-http"} {
		ctx, cancel := context.WithCancel(t.Context())
		addr := start(t, client, &sink.Sink{Answer: func(int64, []byte) sink.Reply {
			cancel()
			return sink.Reply{Delay: time.Hour}
		}})
		c, l := open(t, client, addr, time.Minute)
		c.Send(ctx, protocol.Work{Seq: 0, StartUS: 1000})
		c.Send(ctx, protocol.Work{Seq: 1, StartUS: 2000})
		c.Close(ctx)
		if len(l.outcomes) != 1 || l.spans(record.Unanswered) != width {
			t.Errorf("%s: outcomes %+v, want one unanswered", client, l.outcomes)
		}
	}
}

// A request whose bytes may still be on their way is never changed for the next one: each body
// that arrives, the resent ones included, holds the ids of one trace only.
func TestBytesOnTheirWayAreNotOverwritten(t *testing.T) {
	for _, client := range []string{"otlp-grpc", "otlp-http", "thrift-http"} {
		var mu sync.Mutex
		seen := map[string]int{}
		s := &sink.Sink{Keep: true, Answer: func(n int64, body []byte) sink.Reply {
			mu.Lock()
			defer mu.Unlock()
			seen[string(body)]++
			return sink.Reply{Reset: n%3 == 1}
		}}
		c, l := open(t, client, start(t, client, s), 5*time.Second)
		for seq := range uint64(6) {
			c.Send(t.Context(), protocol.Work{Seq: seq, StartUS: 1000})
		}
		totals := c.Close(t.Context())
		if l.spans(record.Acked) != 6*width || len(seen) != 6 {
			t.Errorf("%s: acked %d spans in %d different bodies, want %d in 6",
				client, l.spans(record.Acked), len(seen), 6*width)
		}
		if totals.Requests != 6 || totals.Retries != s.Requests()-6 || totals.Bytes != s.Bytes() {
			t.Errorf("%s: totals %+v, sink saw %d requests of %d bytes", client, totals, s.Requests(), s.Bytes())
		}
	}
}

func TestClientsLeaveNoGoroutines(t *testing.T) {
	for _, client := range protocol.Names() {
		s := &sink.Sink{}
		addr := start(t, client, s)
		before := runtime.NumGoroutine()
		c, _ := open(t, client, addr, time.Second)
		c.Send(t.Context(), protocol.Work{Seq: 0, StartUS: 1000})
		c.Close(t.Context())
		s.Close()
		deadline := time.Now().Add(5 * time.Second)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				buffer := make([]byte, 1<<16)
				t.Fatalf("%s: %d goroutines more than before\n%s", client, runtime.NumGoroutine()-before,
					buffer[:runtime.Stack(buffer, true)])
			}
			runtime.Gosched()
		}
	}
}

func TestNamesAndRefusals(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"otlp-grcp", "no such client"}, {"", "no such client"},
	} {
		_, err := protocol.Get(test.name)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "otlp-grpc") {
			t.Errorf("Get(%q): %v, want %q and the accepted names", test.name, err, test.want)
		}
	}
	for _, name := range protocol.Names() {
		p, err := protocol.Get(name)
		if err != nil || p.Name != name || p.Port == "" || len(p.ReceiverV2) != 1 || p.RetryRule == "" {
			t.Errorf("Get(%q): %+v, %v", name, p, err)
		}
	}
}

// A client that can't be asked for is none, and neither is a name without a client.
func TestEveryClientCanBeAskedFor(t *testing.T) {
	all := "a list of " + strings.Join(protocol.Names(), ", ")
	for _, s := range spec.Settings() {
		if s.Name == "LAB_CLIENT" && (s.Accepted != all || s.Default != protocol.Names()[0]) {
			t.Errorf("LAB_CLIENT accepts %s, by default %s; protocols() of this package has %s, the default first: "+
				"a client stands in both, the setting is in lab/spec/env.go", s.Accepted, s.Default, all)
		}
	}
}
