package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// States of a run, in order.
const (
	Idle      = "idle"      // no job yet
	WarmingUp = "warm-up"   //
	InWindow  = "window"    //
	Finishing = "finishing" // the window is over, requests in flight finish
	Done      = "done"
)

// run is one job under way.
type run struct {
	job     Job
	proto   protocol.Protocol
	series  [phases]series
	clock   clock
	codes   *codebook
	shelf   shelf
	workers []*worker

	over    [phases]chan struct{} // closed when no new trace of the phase may start
	early   chan struct{}         // closed by stop
	done    chan struct{}
	stopped sync.Once
	cancel  context.CancelFunc // calls off what is in flight
	counts  [phases]counts

	mu       sync.Mutex
	state    string
	windows  [phases]record.Window
	starts   [phases]time.Time // of the windows, by the clock that never steps
	began    time.Time
	cpu      float64
	complete bool
	reasons  map[string]int64 // spans refused or unanswered in the measured phase

	schedule  *schedule             // nil: closed loop
	arrivals  [phases]atomic.Uint64 // batches taken by workers, due or not
	watch     *watch
	latencies [latencyShards]latencies
}

// latencyShards bounds the histograms; workers share them, so that they seldom wait for each other.
const latencyShards = 8

// latencies are those of some workers, in microseconds; all shards are merged in the end.
type latencies struct {
	mu       sync.Mutex
	response *hdrhistogram.Histogram // from when a request was due
	service  *hdrhistogram.Histogram // from when it was sent
}

func (l *latencies) add(o record.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.response == nil {
		l.response, l.service = record.NewLatencyHistogram(), record.NewLatencyHistogram()
	}
	record.CountLatency(l.response, o.Answered-o.Intended)
	record.CountLatency(l.service, o.Answered-o.Sent)
}

// counts are spans.
type counts struct{ generated, acked, refused, unanswered atomic.Int64 }

// start opens every worker's clients and lets them go. An error means that this job can't be sent.
func start(ctx context.Context, job Job, proto protocol.Protocol, m *metrics) (*run, error) {
	r := &run{
		job: job, proto: proto, series: m.of(proto.Name), codes: newCodebook(),
		early: make(chan struct{}), done: make(chan struct{}),
		state: WarmingUp, began: time.Now(), reasons: map[string]int64{}, watch: newWatch(),
	}
	rate, err := spec.ParseRate(job.Load.Rate)
	if err != nil {
		return nil, fmt.Errorf("start load: %w", err)
	}
	r.schedule = newSchedule(rate, job.Numbering.Width*job.traces())
	for phase := range r.over {
		r.over[phase] = make(chan struct{})
	}
	ctx, r.cancel = context.WithCancel(ctx)
	if err := r.open(ctx); err != nil {
		r.cancel()
		return nil, err
	}
	var working sync.WaitGroup
	if job.Load.WarmupS > 0 {
		r.starts[trace.Warmup] = time.Now()
		r.windows[trace.Warmup].Start = r.starts[trace.Warmup].UnixNano()
	} else {
		close(r.over[trace.Warmup])
		r.before()
		r.openWindow()
	}
	for _, w := range r.workers {
		working.Go(func() { w.work(ctx) })
	}
	go r.conduct(ctx, &working)
	return r, nil
}

func (r *run) open(ctx context.Context) error {
	for number := range r.job.Load.Concurrency {
		w := &worker{run: r, number: uint32(number)}
		r.workers = append(r.workers, w)
		for _, phase := range []trace.Phase{trace.Warmup, trace.Measured} {
			if phase == trace.Warmup && r.job.Load.WarmupS == 0 {
				continue
			}
			client, err := r.proto.Open(r.job.Target, protocol.Config{
				Numbering: r.job.Numbering, Load: r.job.Load, Seed: r.job.Seed, Phase: phase,
				Worker: w.number, Timeout: r.job.timeout(), Report: w.report,
			})
			if err != nil {
				r.closeAll(ctx)
				return fmt.Errorf("start load: open client %s of worker %d to %s: %w", r.proto.Name, number, r.job.Target, err)
			}
			w.clients[phase] = client
		}
	}
	return nil
}

func (r *run) closeAll(ctx context.Context) {
	for _, w := range r.workers {
		for _, client := range w.clients {
			if client != nil {
				client.Close(ctx)
			}
		}
	}
}

// conduct ends each phase when its time is over, and the run when all workers have finished. It
// bounds that: a request in flight at the window's end has its deadline, and nothing has more.
func (r *run) conduct(ctx context.Context, working *sync.WaitGroup) {
	defer close(r.done)
	defer r.cancel()
	complete := true
	if r.job.Load.WarmupS > 0 {
		complete = r.wait(ctx, r.job.warmup())
		r.before()
		end := r.openWindow()
		r.mu.Lock()
		r.windows[trace.Warmup].End = end
		r.mu.Unlock()
		close(r.over[trace.Warmup])
	}
	go r.watch.sample(ctx, r.over[trace.Measured])
	complete = complete && r.wait(ctx, r.job.window())
	r.closeWindow()
	bound := time.AfterFunc(r.job.timeout()+slack, r.cancel)
	defer bound.Stop()
	working.Wait()
	<-r.watch.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch.udpAfter = r.readUDP()
	r.cpu, r.complete, r.state = cpuSeconds()-r.watch.cpuBefore, complete, Done
}

// before reads what is compared over the window.
func (r *run) before() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch.cpuBefore, r.watch.udpBefore = cpuSeconds(), r.readUDP()
}

// wait returns false when it was stopped early.
func (r *run) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.early:
		return false
	case <-ctx.Done():
		return false
	}
}

// started is when a phase began; workers only ask once it has.
func (r *run) started(phase trace.Phase) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starts[phase]
}

// openWindow stamps the window's start before any worker may begin with it.
func (r *run) openWindow() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts[trace.Measured] = time.Now()
	r.windows[trace.Measured].Start, r.state = r.starts[trace.Measured].UnixNano(), InWindow
	return r.windows[trace.Measured].Start
}

// closeWindow stamps the window's end after the last trace may have begun.
func (r *run) closeWindow() {
	close(r.over[trace.Measured])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows[trace.Measured].End, r.state = time.Now().UnixNano(), Finishing
	r.watch.cpuAfter = cpuSeconds()
}

// stop ends the load early; requests in flight have this long.
func (r *run) stop(grace time.Duration) {
	r.stopped.Do(func() {
		close(r.early)
		time.AfterFunc(grace, r.cancel)
	})
}

// busy reports whether the run is not yet Done, as progress would say it.
func (r *run) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state != Done
}

func (r *run) generated(phase trace.Phase, spans int) {
	r.counts[phase].generated.Add(int64(spans))
	r.series[phase].made.Add(float64(spans))
}

// observe counts an outcome whose code is in the codebook; counted says that it is the first one of its request.
func (r *run) observe(o record.Outcome, counted bool) {
	c := &r.counts[o.Phase]
	switch o.Class {
	case record.Acked:
		c.acked.Add(int64(o.Spans))
	case record.Refused:
		c.refused.Add(int64(o.Spans))
	default:
		c.unanswered.Add(int64(o.Spans))
	}
	if o.Class != record.Acked && o.Phase == trace.Measured {
		r.mu.Lock()
		r.reasons[o.Code] += int64(o.Spans)
		r.mu.Unlock()
	}
	answered := counted && o.Answered != 0 && o.Class != record.Unanswered
	if answered && o.Phase == trace.Measured {
		r.latencies[o.Worker%latencyShards].add(o)
	}
	r.series[o.Phase].outcome(o, answered)
}
