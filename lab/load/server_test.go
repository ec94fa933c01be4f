package load

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/protocol/sink"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// serving starts a load node on loopback and returns the lab's side of it.
func serving(t *testing.T) Remote {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener, io.Discard) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return Remote{Addr: listener.Addr().String()}
}

func blackHole(t *testing.T, client string, s *sink.Sink) string {
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

// Goal: one load node serves several rounds with every client, and what it says agrees with what
// arrived: case 2, sent counts what was acknowledged.
func TestRoundsOverHTTPWithEveryClient(t *testing.T) {
	remote := serving(t)
	if err := remote.Healthy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err := remote.Progress(t.Context()); err != nil || p.State != Idle {
		t.Fatalf("progress %+v, %v before the first job", p, err)
	}
	if _, err := remote.Result(t.Context()); err == nil || !strings.Contains(err.Error(), "no job") {
		t.Fatalf("result before the first job: %v", err)
	}
	for _, client := range []string{"otlp-grpc", "thrift-http", "jaeger-client"} {
		s := &sink.Sink{Answer: func(int64, []byte) sink.Reply { return sink.Reply{Delay: time.Millisecond} }}
		job := testJob(3, 0, 1)
		job.Client, job.Target = client, blackHole(t, client, s)
		if err := remote.Start(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if err := remote.Start(t.Context(), job); err == nil || !strings.Contains(err.Error(), "a job is running") {
			t.Errorf("a second job: %v", err)
		}
		seen := 0
		p, err := remote.Wait(t.Context(), 20*time.Millisecond, func(Progress) { seen++ })
		if err != nil || !p.Complete || seen < 3 {
			t.Fatalf("progress %+v after %d looks, %v", p, seen, err)
		}
		result, err := remote.Result(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checkAgainstSink(t, client, result, p, s)
	}
}

func checkAgainstSink(t *testing.T, client string, result Result, p Progress, s *sink.Sink) {
	t.Helper()
	var acked, generated int64
	for _, o := range result.Outcomes {
		if o.Class != record.Acked {
			t.Errorf("%s: outcome %+v, everything was answered well", client, o)
		}
		acked += int64(o.Spans)
	}
	for _, worker := range result.Generated[trace.Measured] {
		generated += int64(worker)
	}
	if generated == 0 || p.Generated != generated || p.Acked != acked {
		t.Errorf("%s: generated %d, acked %d, progress %+v", client, generated, acked, p)
	}
	if result.Sent.Requests != s.Requests() || result.Sent.Bytes != s.Bytes() {
		t.Errorf("%s: sent %+v, the sink saw %d requests of %d bytes", client, result.Sent, s.Requests(), s.Bytes())
	}
	if result.Sent.CPUSeconds <= 0 || result.Request == nil || result.Request.N != s.Requests() {
		t.Errorf("%s: cpu %v s, latency %+v of %d requests", client, result.Sent.CPUSeconds, result.Request, s.Requests())
	}
	dropped := result.Sent.QueueDropped
	if client != "jaeger-client" {
		if dropped != nil || acked != generated {
			t.Errorf("%s: dropped %v, acked %d of %d", client, dropped, acked, generated)
		}
		return
	}
	if dropped == nil || acked+*dropped != generated || result.Queued == nil || *result.Queued != 0 {
		t.Errorf("%s: acked %d + dropped %v of %d, queued %v", client, acked, dropped, generated, result.Queued)
	}
}

// Goal: a refused job names every problem, and nothing runs afterwards.
func TestImpossibleJobsAreRefusedAtOnce(t *testing.T) {
	remote := serving(t)
	bad := testJob(0, 0, 0)
	bad.Client, bad.Target, bad.Numbering.Width = "otlp-grcp", "nowhere", 3
	err := remote.Start(t.Context(), bad)
	for _, want := range []string{
		"400", "no such client", "host:port", "concurrency is 0", "duration_s is 0", "numbering",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to name %q", err, want)
		}
	}
	large := testJob(1, 0, 1)
	large.Load.TagsCount = 300_000
	if err := remote.Start(t.Context(), large); err == nil || !strings.Contains(err.Error(), "TAGS_COUNT") {
		t.Errorf("a span of several MiB: %v", err)
	}
	if p, err := remote.Progress(t.Context()); err != nil || p.State != Idle {
		t.Errorf("progress %+v, %v", p, err)
	}
}

// Goal: what Prometheus scrapes agrees with the outcomes, and all series exist from the start.
func TestMetricsAgreeWithTheOutcomes(t *testing.T) {
	remote := serving(t)
	refuse := func(n int64, _ []byte) sink.Reply {
		if n%5 == 0 {
			return sink.Reply{Code: uint32(codes.InvalidArgument), Message: "no"}
		}
		return sink.Reply{Delay: 2 * time.Millisecond}
	}
	job := testJob(2, 0, 1)
	job.Target = blackHole(t, "otlp-grpc", &sink.Sink{Answer: refuse})
	if err := remote.Start(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	p, err := remote.Wait(t.Context(), 50*time.Millisecond, nil)
	if err != nil {
		t.Fatal(err)
	}
	page := metricsPage(t, remote)
	for name, spans := range map[string]int64{
		"generated": p.Generated, "acked": p.Acked, "refused": p.Refused, "unanswered": 0,
	} {
		line := regexp.MustCompile(`(?m)^jaegerlab_load_spans_` + name +
			`_total\{client="otlp-grpc",phase="measured"\} (\S+)$`)
		found := line.FindStringSubmatch(page)
		if found == nil {
			t.Errorf("%s: no such metric", name)
			continue
		}
		if value, err := strconv.ParseFloat(found[1], 64); err != nil || value != float64(spans) {
			t.Errorf("%s: %v, want %d", name, found[1], spans)
		}
	}
	if p.Refused == 0 || !strings.Contains(page, "jaegerlab_load_batch_latency_seconds_bucket") {
		t.Errorf("progress %+v, page:\n%s", p, page)
	}
	result, err := remote.Result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []record.Reason{{Reason: "INVALID_ARGUMENT: no", Spans: p.Refused}}
	if len(result.Sent.RefusedReasons) != 1 || result.Sent.RefusedReasons[0] != want[0] {
		t.Errorf("reasons %+v, want %+v", result.Sent.RefusedReasons, want)
	}
}

func metricsPage(t *testing.T, remote Remote) string {
	t.Helper()
	var page []byte
	err := remote.call(t.Context(), controlLimit, http.MethodGet, pathMetrics, nil, func(body io.Reader) (err error) {
		page, err = io.ReadAll(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// Goal: stopping in mid-run keeps what was measured; the node then takes the next job.
func TestStopOverHTTPKeepsTheOutcomes(t *testing.T) {
	remote := serving(t)
	job := testJob(2, 0, 600)
	job.Target = blackHole(t, "otlp-grpc", &sink.Sink{})
	if err := remote.Start(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	_, err := remote.Wait(t.Context(), 10*time.Millisecond, func(p Progress) {
		if p.Acked > 0 {
			if err := remote.Stop(t.Context(), 100*time.Millisecond); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := remote.Result(t.Context())
	if err != nil || result.Complete || len(result.Outcomes) == 0 {
		t.Fatalf("complete %v with %d outcomes, %v", result.Complete, len(result.Outcomes), err)
	}
	checkCovered(t, result)
	if err := remote.Start(t.Context(), job); err != nil {
		t.Errorf("the next job: %v", err)
	}
	if _, err := remote.Result(t.Context()); err != nil {
		t.Errorf("result so far: %v", err)
	}
}

// Goal: a load node that was started anew in mid-run is noticed, not waited for.
func TestWaitNoticesANodeThatLostItsJob(t *testing.T) {
	fresh := serving(t)
	_, err := fresh.Wait(t.Context(), time.Millisecond, nil)
	if err == nil || !strings.Contains(err.Error(), "started anew") || !strings.Contains(err.Error(), fresh.Addr) {
		t.Errorf("error %v, want one that names the node", err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Remote{Addr: strings.TrimPrefix(dead.URL, "http://")}.Wait(ctx, 5*time.Millisecond, nil)
	if err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("error %v", err)
	}
}

func TestClockOfTheSameMachineIsClose(t *testing.T) {
	ahead, within, err := serving(t).Clock(t.Context())
	if err != nil || ahead.Abs() > within+time.Millisecond || within <= 0 {
		t.Errorf("ahead %v within %v, %v", ahead, within, err)
	}
}

func TestServeRefusesATakenAddress(t *testing.T) {
	remote := serving(t)
	err := Serve(t.Context(), remote.Addr, io.Discard)
	if err == nil || !strings.Contains(err.Error(), remote.Addr) || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("error %v", err)
	}
}

// Goal: a node that is told to end in mid-load leaves no goroutine behind.
func TestEndingInMidLoadLeavesNoGoroutines(t *testing.T) {
	s := &sink.Sink{}
	if err := s.Open("otlp-grpc"); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener, io.Discard) }()
	job := testJob(3, 0, 600)
	job.Target = s.Addr()
	if err := (Remote{Addr: listener.Addr().String()}).Start(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.Close()
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			buffer := make([]byte, 1<<16)
			t.Fatalf("%d goroutines more than before\n%s", runtime.NumGoroutine()-before, buffer[:runtime.Stack(buffer, true)])
		}
		runtime.Gosched()
	}
}

func TestProgramIsTheLoadNode(t *testing.T) {
	p := Program(node.Binary{Command: []string{"lab", "load"}}, spec.Limits{CPUs: 1})
	if p.Name != "load" || p.Host != spec.LoadHost || p.Ports[0].Name != "control" || p.Limits.CPUs != 1 {
		t.Errorf("program %+v", p)
	}
}
