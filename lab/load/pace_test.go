package load

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

func anyRate(t *rapid.T) spec.Rate {
	var rate spec.Rate
	for range rapid.IntRange(1, 5).Draw(t, "segments") {
		rate = append(rate, spec.Segment{From: rapid.Float64Range(0, 1e6).Draw(t, "from"),
			To: rapid.Float64Range(0, 1e6).Draw(t, "to"), OverS: rapid.Float64Range(0.1, 1000).Draw(t, "over")})
	}
	last := rapid.Float64Range(1, 1e6).Draw(t, "last")
	return append(rate, spec.Segment{From: last, To: last})
}

// The schedule is the integral of the rate: never backwards, and as many requests are due by any
// moment as the spans offered until then make.
func TestScheduleIsTheIntegralOfTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.IntRange(1, 2000).Draw(t, "spans")
		rate := anyRate(t)
		s := newSchedule(rate, spans)
		k := rapid.Uint64Max(1_000_000).Draw(t, "request")
		at, next := s.due(k), s.due(k+1)
		if at < 0 || next < at {
			t.Fatalf("request %d is due at %v, the next at %v", k, at, next)
		}
		want := float64(k+1) * float64(spans)
		if got := s.offered(at); math.Abs(got-want) > 1e-3+want*1e-6 {
			t.Fatalf("request %d is due at %v, when %.4f spans are offered, want %.4f", k, at, got, want)
		}
		if got := rate.Spans(at.Seconds()); math.Abs(got-want) > 1e-3+want*1e-6 { // what refuses a rate counts alike
			t.Fatalf("at %v the rate has offered %.4f spans, want %.4f", at, got, want)
		}
		if next > at+time.Microsecond {
			middle := at + (next-at)/2
			if n := s.requests(middle); n != int64(k)+1 {
				t.Fatalf("%d requests are due at %v, want %d", n, middle, k+1)
			}
		}
	})
}

func TestRampsAndSteps(t *testing.T) {
	rate, err := spec.ParseRate("0:1000:10,1000:1000:10,0:0:10,500")
	if err != nil {
		t.Fatal(err)
	}
	s := newSchedule(rate, 10)
	for at, want := range map[time.Duration]float64{
		0: 0, 5 * time.Second: 1250, 10 * time.Second: 5000, 20 * time.Second: 15_000, 29 * time.Second: 15_000,
		32 * time.Second: 16_000,
	} {
		if got := s.offered(at); math.Abs(got-want) > 1e-6 {
			t.Errorf("at %v: %v spans offered, want %v", at, got, want)
		}
	}
	if due := s.due(1500); due < 30*time.Second || due > 30*time.Second+20*time.Millisecond {
		t.Errorf("the first request after the pause is due at %v", due)
	}
	falling, _ := spec.ParseRate("10:0:1")
	if due := newSchedule(falling, 10).due(1); due != math.MaxInt64 {
		t.Errorf("a request that is never due is due at %v", due)
	}
}

func openJob(workers, durationS int, rate string) Job {
	job := testJob(workers, 0, durationS)
	job.Load.Rate = rate
	return job
}

// Goal: an open loop that is kept up with sends exactly what is due, when it is due.
func TestOpenLoopKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 100 requests/s
		result := runFake(t, openJob(4, 10, "1100"), newStarts(), constant(10*time.Millisecond), nil)
		p := result.Sent.Pace
		if p.Bound != record.RateReached || *p.OfferedSpans != 11_000 || p.BegunSpans < 10_989 || p.BegunSpans > 11_000 {
			t.Errorf("pace %+v", p)
		}
		if *p.LateSpans != 0 || result.Request.Max > 11 || p.Service.Max > 11 || *p.FreeSlots < 2.5 {
			t.Errorf("late %d, latency %+v, service %+v, free slots %v",
				*p.LateSpans, result.Request, p.Service, *p.FreeSlots)
		}
		checkCovered(t, result)
	})
}

// Goal: a target that stalls does not slow the clock down: nothing is skipped, and latency counts
// from when a request was due. Each request takes 10 ms, but for one second nobody is answered.
func TestStallsAreNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		stall := func(protocol.Config, uint64) time.Duration {
			if since := time.Since(began); since >= 4*time.Second && since < 5*time.Second {
				return 5*time.Second - since
			}
			return 10 * time.Millisecond
		}
		result := runFake(t, openJob(2, 10, "1100"), newStarts(), stall, nil)
		p := result.Sent.Pace
		if p.BegunSpans < 10_989 || p.Bound != record.RateReached {
			t.Errorf("begun %d of %d spans: %s", p.BegunSpans, *p.OfferedSpans, p.Bound)
		}
		if *p.LateSpans < 1_000 || *p.LateMaxMS < 900 || result.Request.P99 < 800 {
			t.Errorf("late %d spans, at most %v ms, latency %+v: the stall does not show",
				*p.LateSpans, *p.LateMaxMS, result.Request)
		}
		if p.Service.P99 > 11 {
			t.Errorf("service time %+v: only two requests were held up", p.Service)
		}
	})
}

// Goal: with all workers waiting for answers the target is named; what was not begun is unsent.
func TestTooFewWorkersAreTargetBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 20 of 1000 requests/s
		result := runFake(t, openJob(2, 10, "11000"), newStarts(), constant(100*time.Millisecond), nil)
		p := result.Sent.Pace
		if p.Bound != record.TargetBound || *p.OfferedSpans != 110_000 || p.BegunSpans > 2*101*testWidth ||
			*p.NoFreeSlot < 0.9 {
			t.Errorf("pace %+v", p)
		}
		checkCovered(t, result)
	})
}

// Goal: the warm-up has a schedule of its own, from its own start.
func TestWarmUpKeepsTheRateToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := openJob(3, 5, "0:2200:5")
		job.Load.WarmupS = 2
		result := runFake(t, job, newStarts(), constant(time.Millisecond), nil)
		var warm uint64
		for _, spans := range result.Generated[1] {
			warm += spans
		}
		if p := result.Sent.Pace; warm != 880/testWidth*testWidth || *p.OfferedSpans != 5500 || p.BegunSpans < 5489 {
			t.Errorf("warm-up %d spans, want 880; pace %+v", warm, p)
		}
	})
}

func TestWhoseLimit(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	n := func(v int64) *int64 { return &v }
	for _, test := range []struct {
		name string
		pace record.Pace
		want string
	}{
		{"closed loop", record.Pace{CPUShare: f(0.3), LagP99MS: f(1)}, record.TargetBound},
		{"closed loop on a machine without CPU to spare", record.Pace{CPUShare: f(0.15), LagP99MS: f(120)}, record.TargetBound},
		{"closed loop at full CPU", record.Pace{CPUs: 1, CPUShare: f(0.97)}, record.GeneratorBound},
		{"rate reached at full CPU", record.Pace{OfferedSpans: n(100), BegunSpans: 96, CPUShare: f(1)}, record.RateReached},
		{"case 44: one core, asked for too much", record.Pace{OfferedSpans: n(100), BegunSpans: 50, CPUShare: f(0.95),
			NoFreeSlot: f(1)}, record.GeneratorBound},
		{"no CPU when it wanted it", record.Pace{OfferedSpans: n(100), BegunSpans: 50, CPUShare: f(0.2), LagP99MS: f(80),
			NoFreeSlot: f(1)}, record.GeneratorBound},
		{"ports used up", record.Pace{OfferedSpans: n(100), BegunSpans: 50, SocketErrors: 2,
			NoFreeSlot: f(1)}, record.GeneratorBound},
		{"all wait", record.Pace{OfferedSpans: n(100), BegunSpans: 50, CPUShare: f(0.2), NoFreeSlot: f(0.9)},
			record.TargetBound},
		{"half of a ramp was too much", record.Pace{OfferedSpans: n(100), BegunSpans: 75, NoFreeSlot: f(0.5)},
			record.TargetBound},
		{"free slots", record.Pace{OfferedSpans: n(100), BegunSpans: 50, CPUShare: f(0.2), NoFreeSlot: f(0.1)},
			record.GeneratorBound},
		{"nothing was offered", record.Pace{OfferedSpans: n(0)}, record.RateReached},
	} {
		bound, why := judge(test.pace, protocol.Totals{Requests: 100}, protocol.Protocol{})
		if bound != test.want || why == "" {
			t.Errorf("%s: %s (%s), want %s", test.name, bound, why, test.want)
		}
	}
}

// Workers that wait for no answers are never held up by the target, whatever their slots say.
func TestWhoseLimitWithoutAnswers(t *testing.T) {
	one, offered, none := 1.0, int64(100), int64(0)
	asked := record.Pace{OfferedSpans: &offered, BegunSpans: 50, NoFreeSlot: &one}
	for _, test := range []struct {
		name    string
		pace    record.Pace
		dropped *int64
		client  protocol.Protocol
		want    string
	}{
		{"packets", asked, nil, protocol.Protocol{UDP: true}, record.GeneratorBound},
		{"packets back to back", record.Pace{}, nil, protocol.Protocol{UDP: true}, record.GeneratorBound},
		{"a queue with room", asked, &none, protocol.Protocol{Queue: true}, record.GeneratorBound},
		{"a full queue", asked, &offered, protocol.Protocol{Queue: true}, record.TargetBound},
		{"a full queue back to back", record.Pace{}, &offered, protocol.Protocol{Queue: true}, record.TargetBound},
	} {
		bound, why := judge(test.pace, protocol.Totals{Requests: 100, QueueDropped: test.dropped}, test.client)
		if bound != test.want || strings.Contains(why, "waited for") {
			t.Errorf("%s: %s (%s), want %s", test.name, bound, why, test.want)
		}
	}
}
