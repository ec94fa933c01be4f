package ledger

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// MaxClockOffset is how far the clocks of the load node and of the collector may differ: above,
// neither window edges nor send times can be compared with write times.
const MaxClockOffset = 50 * time.Millisecond

// timing fills the figures that compare write times with the load node's clock.
func (b *Book) timing(r *Result, f Facts, c cells) {
	if !f.HasWriteTime {
		return
	}
	read := b.readTimes(f)
	var doubts []string
	doubt := func(format string, args ...any) { doubts = append(doubts, fmt.Sprintf(format, args...)) }
	if f.ClockOffset == nil {
		doubt("the collector is on another machine, whose clock was not compared with the load node's")
	} else if f.ClockOffset.Abs() > MaxClockOffset {
		doubt("the clocks of collector and load node differ by %s, more than %s", *f.ClockOffset, MaxClockOffset)
	}
	if read.early > 0 {
		doubt("%d spans have a write time more than %s before they were sent: the clocks of collector and load node "+
			"differ", read.early, MaxClockOffset)
	}
	if !complete(f) {
		doubt("only %d of %d ranges were read back", f.Ranges.Read, f.Ranges.Asked)
	}
	if read.timeless > 0 {
		doubt("%d rows have no write time", read.timeless)
	}
	if f.AbsentUnknown && c[record.Acked][0]+c.absentUnanswered() > 0 {
		doubt("a node was gone at the read-back, so more may be stored than was read")
	}
	if f.Window.End <= f.Window.Start {
		doubt("the load node gave no window")
	}
	for _, text := range doubts {
		r.Warnings = append(r.Warnings, "stored in the window and send-to-store latency are unknown: "+text)
	}
	if len(doubts) > 0 {
		return
	}
	r.StoredInWindow, r.StoredInWindowSource, r.StoredEachS = &read.inWindow, WriteTime, read.eachS
	sendToStore, err := record.NewLatency(read.latency)
	if err != nil {
		r.Warnings = append(r.Warnings, "send-to-store latency is unknown: "+err.Error())
	}
	r.SendToStore = sendToStore
	r.Warnings = append(r.Warnings, read.warnings()...)
}

// times is what one visit of all measured spans gives.
type times struct {
	inWindow int64 // spans whose first row was written inside the window
	eachS    []int64
	early    int64 // spans written before they were sent
	timeless int64 // spans read back without a write time
	again    int64 // acknowledged and stored spans that were sent more than once
	over     int64 // latencies above the histogram's range
	latency  *hdrhistogram.Histogram
}

func (b *Book) readTimes(f Facts) times {
	t := times{latency: record.NewLatencyHistogram()}
	startUS, endUS := f.Window.Start/1000, f.Window.End/1000
	b.spans(trace.Measured, func(s span) bool {
		if s.slot == absent {
			return true
		}
		writeUS := b.writeUS(s.slot, s.ref)
		if writeUS == 0 {
			t.timeless++
			return true
		}
		if writeUS >= startUS && writeUS <= endUS {
			t.inWindow++
		}
		if !late(f, writeUS) {
			t.second(writeUS - startUS)
		}
		if s.sentNS > 0 {
			t.sent(s, writeUS-s.sentNS/1000)
		}
		return true
	})
	return t
}

// longest bounds the seconds that are counted one by one: a day of load and the longest drain.
const longest = 86_400 + 7_200

// second counts one write in its second.
func (t *times) second(afterUS int64) {
	at := afterUS / 1_000_000
	if afterUS < 0 || at >= longest {
		return
	}
	for int64(len(t.eachS)) <= at {
		t.eachS = append(t.eachS, 0)
	}
	t.eachS[at]++
}

// sent takes the time from a span's first attempt to its write. The write time is that of the
// collector's last attempt, so only what was sent once has a latency.
func (t *times) sent(s span, tookUS int64) {
	switch {
	case tookUS < -MaxClockOffset.Microseconds():
		t.early++
	case s.class != record.Acked:
	case !s.once:
		t.again++
	case t.latency.RecordValue(max(tookUS, 0)) != nil:
		t.over++
	}
}

func (t times) warnings() (all []string) {
	if t.again > 0 {
		all = append(all, fmt.Sprintf("send-to-store latency leaves out %d stored spans that were sent more than "+
			"once", t.again))
	}
	if t.over > 0 {
		all = append(all, fmt.Sprintf("send-to-store latency leaves out %d spans that took longer than its histogram "+
			"holds", t.over))
	}
	return all
}
