package observe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jaegerlab/lab/node"
)

// Reading is one look at what may still move after the load. A nil field could not be known.
type Reading struct {
	At    time.Time
	Saved *int64 // by the collector's counter
	Queue *int64 // spans waiting in the collector
	Rows  *int64 // in the store; nil also when rows were not looked at this time
}

// Defaults of a drain. Where no metric says whether spans are still queued (v2-stock, v1 over
// OTLP), a pause of the database looks like the end, so the wait is longer.
const (
	DrainQuiet      = 3 * time.Second        // nothing moves for this long: settled
	DrainQuietBlind = 10 * time.Second       // the same where the queue is not known
	DrainEvery      = 500 * time.Millisecond // between looks
)

// DrainAsk says what to wait for after the load's end.
type DrainAsk struct {
	WindowEnd time.Time
	Bound     time.Duration // from now; at its end the wait is given up
	Quiet     time.Duration // 0 = DrainQuiet or DrainQuietBlind
	Every     time.Duration // 0 = DrainEvery
	Collector node.Node     // whose death ends its counters; nil = not watched

	// Counters reads Saved and Queue from the collector.
	Counters func(context.Context) (saved, queue *int64, err error)
	// Rows counts the store; nil, or a negative count, when it can't. It is asked only while the
	// counters stand still, since a count costs the store work.
	Rows func(context.Context) (int64, error)
	Say  func(format string, args ...any) // may be nil
}

// Drained is how a drain ended.
type Drained struct {
	Settled  bool      // nothing moved for the quiet time, and no queue is known to hold spans
	DrainS   *float64  // from the window's end to the last movement; nil when the bound was reached
	Last     Reading   // the last look of each kind
	LastMove time.Time // when something moved last; zero = nothing did
	Warnings []string
}

// Drain waits until nothing moves any more, at most for the bound. It judges by counters and
// rows alone; spans are accounted for by the ledger. An error means that ctx ended.
func Drain(ctx context.Context, ask DrainAsk) (Drained, error) {
	if ask.Every == 0 {
		ask.Every = DrainEvery
	}
	started := time.Now()
	d := drain{ask: ask, began: started}
	for {
		d.look(ctx)
		if ctx.Err() != nil {
			return d.result(false), fmt.Errorf("wait until the store stands still: %w; last seen: %s",
				context.Cause(ctx), d.describe())
		}
		now := time.Now()
		if d.settled(now) {
			return d.result(true), nil
		}
		if now.Sub(started) >= ask.Bound {
			return d.result(false), nil
		}
		if ask.Say != nil {
			ask.Say("draining: %s", d.describe())
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(ask.Every, ask.Bound-now.Sub(started))):
		}
	}
}

// drain is the state of a wait; its decisions are pure functions of readings and their times.
type drain struct {
	ask      DrainAsk
	began    time.Time
	last     Reading
	moved    time.Time // last movement, zero = none yet
	still    time.Time // since when nothing has moved, with every look successful
	rowsAt   time.Time // first look at the rows that gave what the last one gave
	lastErr  error
	died     string
	falls    []fall
	warnings []string
}

// fall is a count that went down, over all looks.
type fall struct {
	what, why string
	from, to  int64
}

// look reads the counters, and the rows when the counters stand still.
func (d *drain) look(ctx context.Context) {
	if n := d.ask.Collector; n != nil && d.died == "" {
		select {
		case <-n.Done():
			d.died = n.Exit()
			d.warnings = append(d.warnings, fmt.Sprintf("%s ended while its spans were drained: %s", n.Name(), d.died))
		default:
		}
	}
	next := Reading{}
	var err error
	if d.died == "" && d.ask.Counters != nil {
		next.Saved, next.Queue, err = d.ask.Counters(ctx)
	}
	standing := err == nil && same(d.last.Saved, next.Saved) && same(d.last.Queue, next.Queue)
	if standing && d.ask.Rows != nil {
		var rows int64
		if rows, err = d.ask.Rows(ctx); err == nil && rows >= 0 {
			next.Rows = &rows
		}
	}
	next.At = time.Now()
	d.see(next, err)
}

// see takes one reading into account. A look that failed proves nothing: quiet starts anew.
func (d *drain) see(next Reading, err error) {
	d.lastErr = err
	if err != nil {
		d.still = time.Time{}
		return
	}
	first := d.last.At.IsZero()
	// A counter that appears has just had its first event; rows are only looked at now and then.
	moved := !first && d.last.Saved == nil && next.Saved != nil
	moved = d.moves("saved counter", d.last.Saved, next.Saved, "the collector was started again") || moved
	moved = d.moves("queue", d.last.Queue, next.Queue, "") || moved
	moved = d.moves("row count", d.last.Rows, next.Rows,
		"rows expired (TTL) or were deleted while they were counted") || moved
	if next.Rows != nil && !same(d.last.Rows, next.Rows) {
		d.rowsAt = next.At
	}
	keep(&next.Saved, d.last.Saved)
	keep(&next.Queue, d.last.Queue)
	keep(&next.Rows, d.last.Rows)
	d.last = next
	if moved && !first {
		d.moved = next.At
	}
	if moved || d.still.IsZero() {
		d.still = next.At
	}
}

// moves compares two values of one thing and remembers a fall that has no good reason.
func (d *drain) moves(what string, before, now *int64, why string) bool {
	if before == nil || now == nil {
		return false
	}
	if *now < *before && why != "" {
		d.fell(fall{what: what, why: why, from: *before, to: *now})
	}
	return *now != *before
}

func (d *drain) fell(f fall) {
	for i := range d.falls {
		if d.falls[i].what == f.what {
			d.falls[i].to = f.to
			return
		}
	}
	d.falls = append(d.falls, f)
}

// quiet is how long nothing must move.
func (d *drain) quiet() time.Duration {
	switch {
	case d.ask.Quiet > 0:
		return d.ask.Quiet
	case d.last.Queue == nil && d.died == "":
		return DrainQuietBlind
	default:
		return DrainQuiet
	}
}

// settled: nothing moved for the quiet time, the rows were looked at over all of it, and the
// queue, where it is known, is empty.
func (d *drain) settled(now time.Time) bool {
	if d.still.IsZero() || now.Sub(d.still) < d.quiet() {
		return false
	}
	if d.last.Queue != nil && *d.last.Queue > 0 && d.died == "" {
		return false
	}
	return d.last.Rows == nil || now.Sub(d.rowsAt) >= d.quiet()
}

func (d *drain) result(settled bool) Drained {
	r := Drained{Settled: settled, Last: d.last, LastMove: d.moved, Warnings: d.warnings}
	for _, f := range d.falls {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the %s fell from %d to %d: %s", f.what, f.from, f.to, f.why))
	}
	if settled {
		seconds := 0.0
		if d.moved.After(d.ask.WindowEnd) {
			seconds = d.moved.Sub(d.ask.WindowEnd).Seconds()
		}
		r.DrainS = &seconds
		return r
	}
	r.Warnings = append(r.Warnings, fmt.Sprintf("the drain was given up after %s: %s", d.ask.Bound, d.why()))
	return r
}

// why says what kept a drain from settling.
func (d *drain) why() string {
	switch {
	case d.lastErr != nil:
		return fmt.Sprintf("the last look failed: %v; before it: %s", d.lastErr, d.describe())
	case d.last.Queue != nil && *d.last.Queue > 0 && d.last.At.Sub(d.still) >= d.quiet():
		return fmt.Sprintf("nothing moves, but %d spans are still queued in the collector: its writes are stuck",
			*d.last.Queue)
	default:
		return "still moving: " + d.describe()
	}
}

func (d *drain) describe() string {
	return fmt.Sprintf("saved %s, queued %s, rows %s", show(d.last.Saved), show(d.last.Queue), show(d.last.Rows))
}

func same(a, b *int64) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func keep(next **int64, before *int64) {
	if *next == nil {
		*next = before
	}
}

func show(v *int64) string {
	if v == nil {
		return "not known"
	}
	return fmt.Sprint(*v)
}

// CollectorCounters reads a collector's saved counter and queue for Drain; addr is host:port of
// its metrics, client how spans are sent: v1 shows a queue that OTLP does not go through.
func CollectorCounters(addr, client string) func(context.Context) (saved, queue *int64, err error) {
	return func(ctx context.Context) (saved, queue *int64, err error) {
		s, err := Scrape(ctx, addr)
		if err != nil {
			return nil, nil, err
		}
		saved, queue = s.counters(client)
		return saved, queue, nil
	}
}

func (s Snapshot) counters(client string) (saved, queue *int64) {
	if n, _, ok := s.Saved(); ok {
		saved = &n
	}
	if n, ok := s.QueueSize(); ok && !(s.generation() == v1 && strings.HasPrefix(client, "otlp")) {
		queue = &n
	}
	return saved, queue
}
