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

	// Report is told what became of each request, once; clients with a queue of their own call it
	// from another goroutine.
	Report func(record.Outcome)
}

// Content is what the spans of this load contain.
func (c Config) Content() trace.Content {
	return trace.Content{
		Seed: c.Seed, Tags: c.Load.TagsCount, Services: c.Load.Services,
		TagValues: c.Load.TagValues, ResourceAttributes: c.Load.ResourceAttributes,
	}
}

// Client sends the traces of one worker and phase, in order. It is used by one goroutine.
type Client interface {
	// Send generates the trace number seq (spans seq*Width ... ) with its root starting at startUS
	// (microseconds since the epoch, one microsecond a span apart) and sends it. Synchronous
	// clients report each of its requests before Send returns; clients with a queue of their own
	// report when it is known. When ctx ends, what was sent and has no answer is unanswered, and
	// what was not sent is not reported.
	Send(ctx context.Context, seq uint64, startUS int64)
	// Close flushes until ctx ends, reports whatever is still open, and leaves no goroutine
	// behind. Spans that never left are not reported: no outcome means unsent.
	Close(ctx context.Context) Totals
}

// Totals is what a client counted over its life.
type Totals struct {
	Requests     int64
	Retries      int64
	Bytes        int64  // payload, first attempts and retries
	QueueDropped *int64 // spans that never left its queue, full or given up; nil = it has no queue
	Queued       *int64 // of these: still queued when the flush's deadline came; nil = it has no queue
}

// Add returns the sum of two clients' totals.
func (t Totals) Add(o Totals) Totals {
	return Totals{
		Requests: t.Requests + o.Requests, Retries: t.Retries + o.Retries, Bytes: t.Bytes + o.Bytes,
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

// Names of clients that are planned, with the reason why they are refused.
var planned = map[string]string{
	"otlp-http":  "not there yet",
	"thrift-udp": "not there yet",
}

func protocols() []Protocol { return []Protocol{otlpGRPC(), thriftHTTP(), jaegerClient()} }

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
	if reason, ok := planned[name]; ok {
		return Protocol{}, fmt.Errorf("choose client %q: %s; LAB_CLIENT accepts %s", name, reason, accepted)
	}
	return Protocol{}, fmt.Errorf("choose client %q: no such client; LAB_CLIENT accepts %s", name, accepted)
}
