package load

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// sampleEvery is how often the load node looks at itself.
const sampleEvery = 10 * time.Millisecond

// lateAfter is from when on a request counts as late.
const lateAfter = 10 * time.Millisecond

// watch is what the load node sees of itself within the window. The sampling goroutine writes
// the histogram and the sums; they are read when it has ended.
type watch struct {
	idle                atomic.Int64 // workers that wait for their next request to be due
	lateSpans, lateMax  atomic.Int64 // the latter in nanoseconds
	lag                 *hdrhistogram.Histogram
	samples, none       int64
	free                float64
	ended               chan struct{}
	cpuBefore, cpuAfter float64
	udpBefore, udpAfter *record.UDPErrors
}

func newWatch() *watch { return &watch{lag: record.NewLatencyHistogram(), ended: make(chan struct{})} }

// late notes how much later than due a request began.
func (w *watch) late(by time.Duration, spans int) {
	if by < lateAfter {
		return
	}
	w.lateSpans.Add(int64(spans))
	for {
		most := w.lateMax.Load()
		if int64(by) <= most || w.lateMax.CompareAndSwap(most, int64(by)) {
			return
		}
	}
}

// sample looks every 10 ms until over is closed or ctx ends.
func (w *watch) sample(ctx context.Context, over <-chan struct{}) {
	defer close(w.ended)
	timer := time.NewTimer(sampleEvery)
	defer timer.Stop()
	for {
		asked := time.Now()
		timer.Reset(sampleEvery)
		select {
		case <-timer.C:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
		late := time.Since(asked) - sampleEvery
		_ = w.lag.RecordValue(min(max(late.Microseconds(), 1), w.lag.HighestTrackableValue()))
		idle := w.idle.Load()
		w.samples++
		w.free += float64(idle)
		if idle == 0 {
			w.none++
		}
	}
}

// readUDP returns nil for clients that send no packets, and where the kernel does not tell.
func (r *run) readUDP() *record.UDPErrors {
	if !r.proto.UDP {
		return nil
	}
	if counters, err := protocol.ReadUDPErrors(); err == nil {
		return &counters
	}
	return nil
}

// pace is what the watch came to; nil before the window has ended. r.mu is held.
func (r *run) pace(totals protocol.Totals, service *record.Latency) *record.Pace {
	window := r.windows[trace.Measured]
	select {
	case <-r.watch.ended:
	default:
		return nil
	}
	if window.End == 0 {
		return nil
	}
	w, length := r.watch, time.Duration(window.End-window.Start)
	p := &record.Pace{
		Rate: r.job.Load.Rate, BegunSpans: r.counts[trace.Measured].generated.Load(), Service: service,
		CPUs: runtime.GOMAXPROCS(0), Slots: len(r.workers), SocketErrors: totals.SocketErrors,
	}
	if length > 0 {
		p.AchievedPerS = float64(p.BegunSpans) / length.Seconds()
		if w.cpuAfter > 0 {
			p.CPUShare = new((w.cpuAfter - w.cpuBefore) / length.Seconds() / float64(p.CPUs))
		}
	}
	if w.samples > 0 {
		p.LagP99MS = new(float64(w.lag.ValueAtQuantile(99)) / 1000)
		p.LagMaxMS = new(float64(w.lag.Max()) / 1000)
	}
	if r.schedule != nil {
		p.OfferedSpans = new(r.schedule.requests(length) * int64(r.schedule.spans))
		p.LateSpans = new(w.lateSpans.Load())
		p.LateMaxMS = new(float64(w.lateMax.Load()) / 1e6)
		if w.samples > 0 {
			p.FreeSlots = new(w.free / float64(w.samples))
			p.NoFreeSlot = new(float64(w.none) / float64(w.samples))
		}
	}
	if w.udpBefore != nil && w.udpAfter != nil {
		p.UDP = new(w.udpAfter.Since(*w.udpBefore))
	}
	p.Bound, p.Why = judge(*p, totals, r.proto)
	return p
}
