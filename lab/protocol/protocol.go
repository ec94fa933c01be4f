// Package protocol is how spans are sent: one file per client, which owns both ends, the bytes
// and their sender, and the collector's matching receiver. It is a tool of the load node (which
// sends) and of stack (which configures the receiver).
//
// The lab's own clients encode a request once for each worker and afterwards only overwrite ids
// and times in it (template.go); what is sent, retried and how an answer is judged is the same
// for all of them (sender.go, retry.go). jaeger-client is the real library and does it its own way.
package protocol

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// Protocol describes one client.
type Protocol struct {
	Name string // as LAB_CLIENT spells it
	Port string // name of the collector's port it sends to
	UDP  bool   // that port takes packets, and nobody answers

	// Queue is set for a client whose workers put spans into a queue of its own, and wait for nobody.
	Queue bool

	// ReceiverV2 is the fragment below "receivers:" in a Jaeger v2 configuration, one receiver by
	// name; it uses the placeholders of package node (${ip}, ${port.NAME}).
	ReceiverV2 map[string]any

	// RetryRule says in one sentence when this client sends a request again.
	RetryRule string

	// Open connects one worker to a collector at addr (host:port). It doesn't wait for the
	// connection; an error means that this load can't be sent at all, whatever the collector.
	Open func(addr string, config Config) (Client, error)
}

// Config is what a client needs to know beside the address.
type Config struct {
	Numbering trace.Numbering
	Load      spec.Load
	Seed      uint64
	Phase     trace.Phase
	Worker    uint32
	Timeout   time.Duration // deadline of a request, retries included
	Frozen    bool          // send the same bytes again and again: the ceiling in benchmarks, never a load

	// Report is told what became of each request, once; clients with a queue of their own call it
	// from another goroutine.
	Report func(record.Outcome)
}

// Traces is how many traces are sent together.
func (c Config) Traces() int { return max(c.Load.TracesPerRequest, 1) }

// Content is what the spans of this load contain.
func (c Config) Content() trace.Content {
	l := c.Load
	return trace.Content{
		Seed: c.Seed, Tags: l.TagsCount, Services: l.Services, TracesPerService: c.Traces(),
		TagValues: l.TagValues, TagLength: l.TagLength, ResourceAttributes: l.ResourceAttributes,
		Operations: l.Operations, Shape: trace.Shape(l.Shape), ErrorPercent: l.ErrorPercent, Events: l.Events,
	}
}

// Work is one batch: the traces Seq, Seq+1, ..., as many as the load sends together. Seq is a
// multiple of that.
type Work struct {
	Seq      uint64
	StartUS  int64 // start of the first root, microseconds since the epoch; each span starts one later
	Intended int64 // when it should leave, nanoseconds since the epoch; 0 = when it does
}

// Client sends the traces of one worker and phase, in order. It is used by one goroutine.
type Client interface {
	// Send generates a batch of traces and sends it. Synchronous
	// clients report each of its requests before Send returns; clients with a queue of their own
	// report when it is known. When ctx ends, what was sent and has no answer is unanswered, and
	// what was not sent is not reported.
	Send(ctx context.Context, work Work)
	// Close flushes until ctx ends, reports whatever is still open, and leaves no goroutine
	// behind. Spans that never left are not reported: no outcome means unsent.
	Close(ctx context.Context) Totals
}

// Totals is what a client counted over its life.
type Totals struct {
	Requests     int64
	Retries      int64
	Bytes        int64  // payload, first attempts and retries
	SocketErrors int64  // attempts that this machine could not make: no port, no descriptor, no buffer
	QueueDropped *int64 // spans that never left its queue, full or given up; nil = it has no queue
	Queued       *int64 // of these: still queued when the flush's deadline came; nil = it has no queue
}

// Add returns the sum of two clients' totals.
func (t Totals) Add(o Totals) Totals {
	return Totals{
		Requests: t.Requests + o.Requests, Retries: t.Retries + o.Retries, Bytes: t.Bytes + o.Bytes,
		SocketErrors: t.SocketErrors + o.SocketErrors,
		QueueDropped: addKnown(t.QueueDropped, o.QueueDropped), Queued: addKnown(t.Queued, o.Queued),
	}
}

func addKnown(a, b *int64) *int64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := *a + *b
	return &sum
}

func protocols() []Protocol {
	return []Protocol{otlpGRPC(), otlpHTTP(), thriftHTTP(), thriftUDP(), jaegerClient()}
}

// Names lists the clients that exist, the default first.
func Names() []string {
	var names []string
	for _, p := range protocols() {
		names = append(names, p.Name)
	}
	return names
}

// Get returns the client of this name.
func Get(name string) (Protocol, error) {
	all := protocols()
	if i := slices.IndexFunc(all, func(p Protocol) bool { return p.Name == name }); i >= 0 {
		return all[i], nil
	}
	accepted := strings.Join(Names(), ", ")
	return Protocol{}, fmt.Errorf("choose client %q: no such client; LAB_CLIENT accepts %s", name, accepted)
}
