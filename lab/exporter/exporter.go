// Package exporter is the lab's own OpenTelemetry SpanExporter for Jaeger's thrift, over UDP and
// HTTP. It takes the memory for one full batch once and uses it again; it batches on one level
// only, since the SDK's batch processor does that already: a call of ExportSpans leaves as packets
// or requests of at most a maximum size when it returns. It stands beside the flow: it is an arm
// of the experiment exporters, and usable in any program.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Defaults of Options.
const (
	DefaultPacketBytes  = 65_000         // what Jaeger's UDP receivers read
	DefaultRequestBytes = 4<<20 - 16<<10 // below what receivers take by default
	DefaultProcesses    = 1000
)

// Options of an exporter; the zero value gives the defaults.
type Options struct {
	// MaxBytes of a packet or of a request's body; 0 = DefaultPacketBytes or DefaultRequestBytes.
	MaxBytes int
	// InOrder sends spans in the order they come: then a header with service and resource stands
	// before each run of spans of one resource. Otherwise spans are grouped by resource, and the
	// header stands once in each packet.
	InOrder bool
	// MaxProcesses is how many resources' headers are remembered from batch to batch, the newest;
	// 0 = DefaultProcesses. A batch of more resources is grouped all the same.
	MaxProcesses int
}

// Totals are what an exporter did since it was made.
type Totals struct {
	Spans    int64 // that left
	Packets  int64 // or requests
	Bytes    int64 // of them
	TooLarge int64 // spans that no packet holds
	Failed   int64 // spans whose packet or request was not sent, or was refused
}

// Exporter exports to one destination. It is safe for several goroutines, one at a time exports.
type Exporter struct {
	mu      sync.Mutex
	to      destination
	options Options
	compact bool
	closed  bool
	totals  Totals

	packet    packet
	processes map[attribute.Distinct]*process
	order     []attribute.Distinct // of the remembered processes, the oldest first
	spare     []*process           // forgotten ones, whose memory is used again
	groups    []group
	next      []int32 // the span after this one in its group
	batch     uint64
}

// destination sends one packet or request.
type destination interface {
	send(deadline time.Time, body []byte) error
	close() error
}

// process is a remembered resource: its header, encoded.
type process struct {
	header []byte
	batch  uint64 // in which group is valid
	group  int32
}

// group is a list of spans of one resource.
type group struct {
	process     *process
	first, last int32
}

// NewUDP returns an exporter that sends packets of compact thrift to addr (host:port), as Jaeger's
// receivers take on port 6831. UDP has no delivery guarantee: nobody says what arrived.
func NewUDP(addr string, o Options) (*Exporter, error) {
	to, err := dialUDP(addr)
	if err != nil {
		return nil, err
	}
	return newExporter(to, true, o), nil
}

// NewHTTP returns an exporter that posts binary thrift to Jaeger's HTTP receiver at addr
// (host:port, usually port 14268). It connects with the first export, and keeps the connection.
func NewHTTP(addr string, o Options) *Exporter { return newExporter(newPoster(addr), false, o) }

// NewDiscard returns an exporter that encodes packets and drops them, for benchmarks.
func NewDiscard(o Options) *Exporter { return newExporter(discard{}, true, o) }

type discard struct{}

func (discard) send(time.Time, []byte) error { return nil }
func (discard) close() error                 { return nil }

func newExporter(to destination, compact bool, o Options) *Exporter {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultRequestBytes
		if compact {
			o.MaxBytes = DefaultPacketBytes
		}
	}
	if o.MaxProcesses <= 0 {
		o.MaxProcesses = DefaultProcesses
	}
	return &Exporter{to: to, options: o, compact: compact, processes: map[attribute.Distinct]*process{},
		packet: packet{encoder: encoder{compact: compact}, most: o.MaxBytes}}
}

// Totals tells what was done so far.
func (e *Exporter) Totals() Totals {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.totals
}

// ExportSpans sends all spans before it returns. Its error names spans that are too large, with
// the size of the first, and the first packet or request that failed; the others are sent.
func (e *Exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errors.New("export spans to Jaeger: the exporter is shut down")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("export spans to Jaeger: %w", err)
	}
	deadline, _ := ctx.Deadline()
	e.batch++
	e.divide(spans)
	job := sending{exporter: e, deadline: deadline}
	for _, g := range e.groups {
		e.packet.begin(g.process.header)
		for i := g.first; i >= 0; i = e.next[i] {
			job.add(spans[i])
		}
		job.flush()
	}
	e.forget()
	return job.result()
}

// divide puts the spans into groups, without moving them.
func (e *Exporter) divide(spans []sdktrace.ReadOnlySpan) {
	e.groups = e.groups[:0]
	if cap(e.next) < len(spans) {
		e.next = make([]int32, len(spans))
	}
	e.next = e.next[:len(spans)]
	var last *resource.Resource
	current := int32(-1)
	for i, span := range spans {
		e.next[i] = -1
		if of := span.Resource(); current < 0 || of != last {
			last, current = of, e.groupOf(of)
		}
		g := &e.groups[current]
		if g.first < 0 {
			g.first = int32(i)
		} else {
			e.next[g.last] = int32(i)
		}
		g.last = int32(i)
	}
}

// groupOf finds or makes the group of a resource.
func (e *Exporter) groupOf(of *resource.Resource) int32 {
	key := of.Equivalent()
	p := e.processes[key]
	if p == nil {
		p = e.remember(key, of)
	}
	if p.batch == e.batch && (!e.options.InOrder || int(p.group) == len(e.groups)-1) {
		return p.group
	}
	e.groups = append(e.groups, group{process: p, first: -1, last: -1})
	p.batch, p.group = e.batch, int32(len(e.groups)-1)
	return p.group
}

// remember encodes a resource's header. Nothing is forgotten before the batch is sent: its spans of
// one resource would be torn into packets of their own.
func (e *Exporter) remember(key attribute.Distinct, of *resource.Resource) *process {
	p := &process{}
	if last := len(e.spare) - 1; last >= 0 {
		p, e.spare = e.spare[last], e.spare[:last]
	}
	header := encoder{compact: e.compact, bytes: p.header[:0]}
	header.process(of)
	*p = process{header: header.bytes}
	e.processes[key] = p
	e.order = append(e.order, key)
	return p
}

// forget drops the oldest processes above the cap, and keeps their memory for the next batch's.
func (e *Exporter) forget() {
	over := len(e.order) - e.options.MaxProcesses
	if over <= 0 {
		return
	}
	for _, key := range e.order[:over] {
		if len(e.spare) < e.options.MaxProcesses {
			e.spare = append(e.spare, e.processes[key])
		}
		delete(e.processes, key)
	}
	e.order = e.order[:copy(e.order, e.order[over:])]
}

// sending is one call of ExportSpans.
type sending struct {
	exporter *Exporter
	deadline time.Time
	tooLarge int
	size     int   // of the first span that is too large
	lost     int   // spans of packets that failed
	failed   error // the first one's
}

// add puts a span into the packet, and sends the packet before it grows too large.
func (s *sending) add(span sdktrace.ReadOnlySpan) {
	p := &s.exporter.packet
	before := len(p.bytes)
	p.span(span)
	if p.spans++; p.size() <= p.most {
		return
	}
	p.takeLast(before)
	s.flush()
	p.putLast()
	if size := p.size(); size > p.most {
		if s.tooLarge++; s.size == 0 {
			s.size = size
		}
		p.reset()
	}
}

// flush sends the packet's spans, if there are any.
func (s *sending) flush() {
	e := s.exporter
	p := &e.packet
	if p.spans == 0 {
		return
	}
	body := p.finish()
	if err := e.to.send(s.deadline, body); err != nil {
		s.lost += p.spans
		if s.failed == nil {
			s.failed = err
		}
	} else {
		e.totals.Spans += int64(p.spans)
		e.totals.Packets++
		e.totals.Bytes += int64(len(body))
	}
	p.reset()
}

func (s *sending) result() error {
	totals := &s.exporter.totals
	totals.TooLarge += int64(s.tooLarge)
	totals.Failed += int64(s.lost)
	var problems []error
	if s.tooLarge > 0 {
		problems = append(problems, fmt.Errorf("export spans to Jaeger: %d spans are larger than %d bytes, the first "+
			"makes %d; raise Options.MaxBytes, as far as the receiver takes it, or put less into spans",
			s.tooLarge, s.exporter.options.MaxBytes, s.size))
	}
	if s.failed != nil {
		problems = append(problems, fmt.Errorf("export spans to Jaeger: %d spans were not sent: %w", s.lost, s.failed))
	}
	return errors.Join(problems...)
}

// Shutdown closes the connection; nothing is waiting to be sent.
func (e *Exporter) Shutdown(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	return e.to.close()
}
