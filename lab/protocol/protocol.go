// Package protocol is how spans are sent: one file per client, which owns both ends, the bytes
// and their sender, and the collector's matching receiver. It is a tool of the load node (which
// sends) and of stack (which configures the receiver).
package protocol

import (
	"context"
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// Protocol describes one client; the registry in registry.go lists them all.
type Protocol struct {
	Name string // as LAB_CLIENT spells it
	Port string // name of the collector's port it sends to

	// ReceiverV2 is the fragment below "receivers:" in a Jaeger v2 configuration; it may use the
	// placeholders of package node (${ip}, ${port.NAME}).
	ReceiverV2 map[string]any

	// Open connects one worker to a collector at addr (host:port).
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
}

// Client sends the traces of one worker and phase, in order. It is used by one goroutine.
//
// Send generates the trace number seq (spans seq*Width ... ) with its root starting at startUS
// (microseconds since the epoch, one microsecond a span apart) and sends it, and reports what
// became of it, or of earlier ones, through report. Synchronous clients report each request
// before Send returns; clients with a queue of their own report when it is known.
type Client interface {
	Send(ctx context.Context, seq uint64, startUS int64, report func(record.Outcome))
	// Close flushes within ctx and reports whatever is still open. Spans that never left are
	// not reported: no outcome means unsent.
	Close(ctx context.Context, report func(record.Outcome)) Totals
}

// Totals is what a client counted over its life.
type Totals struct {
	Requests     int64
	Retries      int64
	Bytes        int64  // payload, first attempts and retries
	QueueDropped *int64 // spans its own queue dropped; nil = it has no queue
}
