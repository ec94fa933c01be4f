package load

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

const testWidth = 11

func testJob(workers, warmupS, durationS int) Job {
	return Job{
		Numbering: trace.New(7, testWidth-1), Client: "otlp-grpc", Target: "127.0.0.1:4317", Seed: 1,
		Load: spec.Load{Concurrency: workers, SpansCount: testWidth - 1, TagsCount: 10, DurationS: durationS,
			WarmupS: warmupS, Services: 1, TagValues: 1, RequestTimeoutS: 30},
	}
}

// fake is a client without a network: each request takes a time of its own.
type fake struct {
	config protocol.Config
	takes  func(c protocol.Config, seq uint64) time.Duration // negative = never answers
	starts *starts
	sent   int64
}

// starts remembers when traces started, by the clock and as their start times say.
type starts struct {
	mu   sync.Mutex
	us   map[int64]bool
	last map[trace.Phase]time.Time
}

func fakeProtocol(s *starts, takes func(protocol.Config, uint64) time.Duration) protocol.Protocol {
	open := func(_ string, c protocol.Config) (protocol.Client, error) {
		return &fake{config: c, takes: takes, starts: s}, nil
	}
	return protocol.Protocol{Name: "fake", RetryRule: "never", Open: open}
}

func (f *fake) Send(ctx context.Context, work protocol.Work) {
	seq, startUS := work.Seq, work.StartUS
	f.starts.mu.Lock()
	for us := startUS; us < startUS+testWidth; us++ {
		if f.starts.us[us] {
			panic("two spans start in the same microsecond")
		}
		f.starts.us[us] = true
	}
	f.starts.last[f.config.Phase] = time.Now()
	f.starts.mu.Unlock()
	f.sent++
	now := time.Now().UnixNano()
	o := record.Outcome{Phase: f.config.Phase, Worker: f.config.Worker, First: seq * testWidth, Spans: testWidth,
		Intended: cmp.Or(work.Intended, now), Sent: now, Attempts: 1, Class: record.Acked}
	takes := f.takes(f.config, seq)
	if takes < 0 {
		<-ctx.Done()
		o.Class, o.Code = record.Unanswered, "no answer"
	} else {
		time.Sleep(takes) // a bubble's clock: no real time passes
		o.Answered = time.Now().UnixNano()
	}
	f.config.Report(o)
}

func (f *fake) Close(context.Context) protocol.Totals { return protocol.Totals{Requests: f.sent} }

// runFake runs a job in a bubble to its end and returns what the lab would read.
func runFake(t *testing.T, job Job, s *starts, takes func(protocol.Config, uint64) time.Duration,
	during func(*run)) Result {
	t.Helper()
	r, err := start(t.Context(), job, fakeProtocol(s, takes), newMetrics())
	if err != nil {
		t.Fatal(err)
	}
	if during != nil {
		during(r)
	}
	<-r.done
	return written(t, r)
}

// written is a run as the lab reads it from the stream.
func written(t *testing.T, r *run) Result {
	t.Helper()
	var stream bytes.Buffer
	if err := r.write(&stream); err != nil {
		t.Fatal(err)
	}
	result, err := readResult(&stream)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func newStarts() *starts { return &starts{us: map[int64]bool{}, last: map[trace.Phase]time.Time{}} }

func constant(d time.Duration) func(protocol.Config, uint64) time.Duration {
	return func(protocol.Config, uint64) time.Duration { return d }
}

// Goal: the closed loop is exact. 3 workers, a request takes 100 ms: 20 traces each in 2 s of
// warm-up, 50 in 5 s of window, and every one of them has an outcome.
func TestClosedLoopIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result := runFake(t, testJob(3, 2, 5), newStarts(), constant(100*time.Millisecond), nil)
		for phase, traces := range map[trace.Phase]uint64{trace.Warmup: 20, trace.Measured: 50} {
			for worker, generated := range result.Generated[phase] {
				if generated < (traces-1)*testWidth || generated > (traces+1)*testWidth { // ties at the edges
					t.Errorf("phase %d worker %d generated %d spans, want %d", phase, worker, generated, traces*testWidth)
				}
			}
			if n := len(result.Generated[phase]); n != 3 {
				t.Errorf("phase %d: %d workers", phase, n)
			}
		}
		checkCovered(t, result)
		if !result.Complete || result.State != Done {
			t.Errorf("state %q complete %v", result.State, result.Complete)
		}
		if d := time.Duration(result.Window.End - result.Window.Start); d != 5*time.Second {
			t.Errorf("window of %v", d)
		}
		if result.Warmup.End != result.Window.Start || result.Warmup.End-result.Warmup.Start != int64(2*time.Second) {
			t.Errorf("warm-up %+v, window %+v", result.Warmup, result.Window)
		}
		if result.Request == nil || result.Request.P50 < 99 || result.Request.P50 > 101 {
			t.Errorf("request latency %+v, want 100 ms", result.Request)
		}
		if result.Sent.Requests < 147 || result.Sent.Requests > 153 || result.Sent.RetryRule != "never" {
			t.Errorf("sent %+v", result.Sent)
		}
	})
}

// checkCovered proves that outcomes cover the generated spans once each.
func checkCovered(t *testing.T, result Result) {
	t.Helper()
	type key struct {
		phase  trace.Phase
		worker uint32
	}
	next := map[key]uint64{}
	for _, o := range result.Outcomes {
		k := key{o.Phase, o.Worker}
		if o.First != next[k] {
			t.Fatalf("outcome %+v begins at %d, want %d", o, o.First, next[k])
		}
		next[k] = o.First + uint64(o.Spans)
	}
	for phase, workers := range result.Generated {
		for worker, generated := range workers {
			if got := next[key{phase, uint32(worker)}]; got != generated {
				t.Errorf("phase %d worker %d: outcomes for %d of %d spans", phase, worker, got, generated)
			}
		}
	}
}

// Goal: at the window's end no new trace starts, and what is in flight finishes under its deadline.
func TestWindowEndStartsNothingAndLetsRequestsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarts()
		result := runFake(t, testJob(2, 0, 3), s, constant(20*time.Second), nil)
		if last := s.last[trace.Measured].UnixNano(); last > result.Window.End {
			t.Errorf("a trace started %v after the window", time.Duration(last-result.Window.End))
		}
		checkCovered(t, result)
		for _, o := range result.Outcomes {
			if o.Class != record.Acked || o.Answered < result.Window.End {
				t.Errorf("outcome %+v: want acked after the window", o)
			}
		}
		if result.Warmup != (record.Window{}) || len(result.Generated[trace.Warmup]) != 0 {
			t.Errorf("warm-up %+v without one", result.Warmup)
		}
	})
}

// Goal: a target that never answers can't hold the run: it ends at its bound, honestly.
func TestSilentTargetEndsAtTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := testJob(2, 0, 3)
		began := time.Now()
		result := runFake(t, job, newStarts(), constant(-1), nil)
		if took := time.Since(began); took > job.bound() {
			t.Errorf("took %v, bound %v", took, job.bound())
		}
		checkCovered(t, result)
		want := []record.Reason{{Reason: "no answer", Spans: 2 * testWidth}}
		if len(result.Sent.RefusedReasons) != 1 || result.Sent.RefusedReasons[0] != want[0] {
			t.Errorf("reasons %+v, want %+v", result.Sent.RefusedReasons, want)
		}
		if result.Request != nil {
			t.Errorf("latency %+v of requests without answers", result.Request)
		}
	})
}

// Goal: Ctrl-C: the load stops within the grace, and is marked as not complete.
func TestStopEndsEarlyWithinTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		result := runFake(t, testJob(2, 10, 60), newStarts(), constant(-1), func(r *run) {
			time.Sleep(5 * time.Second)
			if p := r.progress(); p.State != WarmingUp || p.PlannedS != 70 || p.WarmupGenerated != 2*testWidth {
				t.Errorf("progress %+v", p)
			}
			r.stop(2 * time.Second)
			r.stop(time.Second)
		})
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("took %v after a stop at 5 s with 2 s of grace", took)
		}
		if result.Complete {
			t.Error("an early end is marked as complete")
		}
		checkCovered(t, result)
	})
}

// Goal: partial results are consistent while the load runs: never an outcome of a span that was
// not generated.
func TestOutcomesSoFarAreConsistent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runFake(t, testJob(4, 1, 10), newStarts(), constant(7*time.Millisecond), func(r *run) {
			time.Sleep(5 * time.Second)
			result := written(t, r)
			if result.State != InWindow || result.Complete || len(result.Outcomes) == 0 {
				t.Errorf("state %q complete %v, %d outcomes", result.State, result.Complete, len(result.Outcomes))
			}
			for _, o := range result.Outcomes {
				if o.First+uint64(o.Spans) > result.Generated[o.Phase][o.Worker] {
					t.Fatalf("outcome %+v of spans that were not generated: %v", o, result.Generated)
				}
			}
		})
	})
}

// Goal: a stream that was cut anywhere is an error, never a smaller result.
func TestCutStreamIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proto := fakeProtocol(newStarts(), constant(50*time.Millisecond))
		r, err := start(t.Context(), testJob(2, 0, 1), proto, newMetrics())
		if err != nil {
			t.Fatal(err)
		}
		<-r.done
		var stream bytes.Buffer
		if err := r.write(&stream); err != nil {
			t.Fatal(err)
		}
		whole := stream.Bytes()
		for n := range whole {
			if _, err := readResult(bytes.NewReader(whole[:n])); err == nil {
				t.Fatalf("%d of %d bytes were read without an error", n, len(whole))
			}
		}
	})
}
