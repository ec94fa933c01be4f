package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	// outageBeats is how many beats in a row a node has to miss: one late answer is a busy machine. A beat
	// waits two seconds, so an outage below five may go unnamed.
	outageBeats = 2
	// recoverWithin is what a driver gets to use a node again that answers again. Its own
	// reconnects come within seconds; bug reports are of drivers that never do.
	recoverWithin = 5 * time.Second
	// lookBack is the end of the window in which writes must not fail any more.
	lookBack = 3 * time.Second
)

// Pulse asks every database node once a second, beside the load, whether it still answers, and
// keeps what it saw: a node may go away and come back without dying. Then it tells whether the
// collector's driver came back to it. The zero Pulse of a store without nodes sees nothing.
type Pulse struct {
	// Nodes are the names of the nodes, in the order of Answers.
	Nodes []string
	// Answers asks each node a question that costs it nothing; nil for a node that answered.
	Answers func(ctx context.Context) []error

	mu       sync.Mutex
	beats    []beat
	failures []failure
}

// beat is what one look saw.
type beat struct {
	at     time.Time
	silent []bool // by node
}

// failure is how many statements of the collector had failed at one moment.
type failure struct {
	at         time.Time
	statements int64
}

// Outage is the time in which a node did not answer.
type Outage struct {
	Node     string
	From, To time.Time // To is the first answer again; zero: none came
}

// Beat looks once. It is a source of the series: answers is 1 or 0 a node. Its error names the
// nodes that are silent.
func (p *Pulse) Beat(ctx context.Context) ([]Point, error) {
	at := time.Now()
	answers := p.Answers(ctx)
	b := beat{at: at, silent: make([]bool, len(answers))}
	points := make([]Point, len(answers))
	for i, err := range answers {
		b.silent[i] = err != nil
		points[i] = Point{At: at, Node: p.Nodes[i], Metric: "answers", Value: 1}
		if err != nil {
			points[i].Value = 0
		}
	}
	if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		p.mu.Lock()
		p.beats = append(p.beats, b)
		p.mu.Unlock()
	}
	return points, errors.Join(answers...)
}

// Counters reads the collector called name at addr for a Sampler: spans saved and queued, and seconds
// that CQL statements took together, whose gain a second is how many are in flight. The same page says
// how many statements failed: a measured collector is not asked twice. A nil Pulse only reads.
func (p *Pulse) Counters(name, addr, client string) func(context.Context) ([]Point, error) {
	return func(ctx context.Context) ([]Point, error) {
		s, err := Scrape(ctx, addr)
		if err != nil {
			return nil, err
		}
		if n, ok := s.WriteErrors(); ok && p != nil {
			p.failed(s.At, n)
		}
		var points []Point
		spans := func(metric string, value *int64) {
			if value != nil {
				points = append(points, Point{At: s.At, Node: name, Metric: metric, Unit: "spans", Value: float64(*value)})
			}
		}
		saved, queue := s.counters(client)
		spans("saved", saved)
		spans("queue_size", queue)
		if seconds, ok := s.WriteSeconds(); ok {
			points = append(points, Point{At: s.At, Node: name, Metric: "write_latency_sum", Unit: "s", Value: seconds})
		}
		return points, nil
	}
}

func (p *Pulse) failed(at time.Time, statements int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, failure{at, statements})
}

// Outages lists every time in which a node missed two beats or more, by node and time.
func (p *Pulse) Outages() []Outage {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Outage
	for i, name := range p.Nodes {
		missed, from := 0, time.Time{}
		for _, b := range p.beats {
			if b.silent[i] {
				if missed++; missed == 1 {
					from = b.at
				}
				continue
			}
			if missed >= outageBeats {
				all = append(all, Outage{Node: name, From: from, To: b.at})
			}
			missed = 0
		}
		if missed >= outageBeats {
			all = append(all, Outage{Node: name, From: from})
		}
	}
	return all
}

// Warnings says each outage with seconds from the window's start.
func (p *Pulse) Warnings(windowStart time.Time) []string {
	var lines []string
	for _, o := range p.Outages() {
		line := fmt.Sprintf("%s gave no answer from second %.0f", o.Node, o.From.Sub(windowStart).Seconds())
		if o.To.IsZero() {
			line += " to the end of the load"
		} else {
			line += fmt.Sprintf(" to second %.0f", o.To.Sub(windowStart).Seconds())
		}
		lines = append(lines, line)
	}
	return lines
}

// NotRecovered says why a run can't judge its store although every node is back: writes went on
// failing until the window's end. It is "" when there was no outage, when the driver recovered,
// when the window ended too early to tell, and when writes failed as often before the outage.
func (p *Pulse) NotRecovered(windowEnd time.Time) string {
	outages := p.Outages()
	if len(outages) == 0 {
		return ""
	}
	first, last := outages[0].From, time.Time{}
	var nodes []string
	for _, o := range outages {
		if o.To.IsZero() {
			return "" // it never came back: that is the outage's own story
		}
		if o.From.Before(first) {
			first = o.From
		}
		if o.To.After(last) {
			last = o.To
		}
		nodes = append(nodes, o.Node)
	}
	if windowEnd.Sub(last) < recoverWithin+lookBack {
		return ""
	}
	before, known := p.failuresPerS(time.Time{}, first)
	after, seen := p.failuresPerS(windowEnd.Add(-lookBack), windowEnd)
	if !seen || after == 0 || known && before >= after {
		return ""
	}
	return fmt.Sprintf("driver did not recover: %s answered again %.0f s before the window's end, and %.0f statements a second "+
		"still failed in its last %.0f s; the collector's log says why", strings.Join(nodes, " and "),
		windowEnd.Sub(last).Seconds(), after, lookBack.Seconds())
}

// failuresPerS is the mean rate of failed statements between two moments; false when fewer than
// two reads of the counter fall between them.
func (p *Pulse) failuresPerS(from, to time.Time) (perS float64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first, last *failure
	for i := range p.failures {
		f := &p.failures[i]
		if f.at.Before(from) || f.at.After(to) {
			continue
		}
		if first == nil {
			first = f
		}
		last = f
	}
	if first == last {
		return 0, false
	}
	return float64(last.statements-first.statements) / last.at.Sub(first.at).Seconds(), true
}
