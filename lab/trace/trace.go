// Package trace is the lab's numbering: it turns an index into trace and span ids and back,
// and says what each generated span contains. It is the vocabulary that the load node (which
// generates), the ledger (which accounts) and the backends (which read back) share, so that
// "which span is missing" has an answer. It depends on the standard library only.
//
// Words: a worker generates traces one after another; the spans of a worker are numbered
// 0, 1, 2, ... in generation order, Width spans a trace, the root first. A span is therefore
// named by (phase, worker, index), and its trace by index/Width.
package trace

import "fmt"

// Phase tells load that counts from load that only warms up. Each has a ledger of its own.
type Phase uint8

// The two phases. The phase is a bit of the trace id, so warm-up spans are never foreign.
const (
	Measured Phase = 0
	Warmup   Phase = 1
)

// Field widths of the ids. Both words of a trace id and the span id begin with the bits 01: the
// two top bits differ, so every protocol (thrift's zigzag varint included) writes them in a
// fixed width, and no id is ever zero or negative.
const (
	topBits    = uint64(1) << 62
	runBits    = 44
	phaseBits  = 1
	workerBits = 17
	indexBits  = 45

	MaxRun     = 1<<runBits - 1
	MaxWorkers = 1 << workerBits
	MaxIndex   = 1<<indexBits - 1
)

// Numbering maps spans to ids for one run. The zero value is not valid: use New.
type Numbering struct {
	Run   uint64 `json:"run"`   // random per round, at most MaxRun: tells this round's spans from any other's
	Width int    `json:"width"` // spans a trace: the root and its children
}

// New returns the numbering of one run; it panics on a run or width that no validated spec gives.
func New(run uint64, children int) Numbering {
	if run > MaxRun || children < 0 {
		panic(fmt.Sprintf("trace: run %d or children %d out of range", run, children))
	}
	return Numbering{Run: run, Width: children + 1}
}

// Ref names one span: the phase, the worker that generated it and its index there.
type Ref struct {
	Phase  Phase
	Worker uint32
	Index  uint64
}

// ID is a span's identity on the wire and in a store: the trace id as two big-endian words, and
// the span id. It is comparable and usable as a map key.
type ID struct {
	High, Low uint64
	Span      uint64
}

// String gives the id as Jaeger prints it: trace id, a colon, span id, in hexadecimal.
func (id ID) String() string { return fmt.Sprintf("%016x%016x:%016x", id.High, id.Low, id.Span) }

// ID returns the identity of the span at ref.
func (n Numbering) ID(ref Ref) ID {
	high, low := n.TraceID(ref.Phase, ref.Worker, ref.Index/uint64(n.Width))
	return ID{High: high, Low: low, Span: n.SpanID(ref.Worker, ref.Index)}
}

// TraceID returns the two words of the id of a worker's trace number seq.
func (n Numbering) TraceID(phase Phase, worker uint32, seq uint64) (high, low uint64) {
	high = topBits | n.Run<<(phaseBits+workerBits) | uint64(phase)<<workerBits | uint64(worker)
	return high, topBits | seq
}

// SpanID returns the id of a worker's span number index. Span ids are unique in the whole phase.
func (n Numbering) SpanID(worker uint32, index uint64) uint64 {
	return topBits | uint64(worker)<<indexBits | index
}

// Locate returns the span that has this identity, or false when no span of this run can have
// it: the id is foreign. It is the inverse of ID.
func (n Numbering) Locate(id ID) (Ref, bool) {
	worker := uint32(id.High & (MaxWorkers - 1))
	ref := Ref{
		Phase:  Phase(id.High >> workerBits & 1),
		Worker: worker,
		Index:  id.Span & MaxIndex,
	}
	return ref, n.ID(ref) == id
}
