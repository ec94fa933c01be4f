package record

import "jaegerlab/lab/trace"

// Class is what became of a request, as its sender knows it.
type Class uint8

// The classes. A span that no outcome covers was generated but never left: unsent.
const (
	Unsent     Class = iota
	Acked            // the collector took it; not yet stored
	Refused          // the collector said no, or could never be reached: it does not have it
	Unanswered       // no answer within the deadline: it may have it
	NoReply          // sent by a protocol that has no answers (UDP)
)

var classNames = [...]string{"unsent", "acked", "refused", "unanswered", "no_reply"}

// String gives the class as records spell it.
func (c Class) String() string { return classNames[c] }

// Outcome is one request, or one run of spans that shared its fate: spans First ... First+Spans-1
// of a worker, in the numbering of package trace. Times are nanoseconds since the epoch.
type Outcome struct {
	Phase    trace.Phase
	Worker   uint32
	First    uint64
	Spans    uint32
	Intended int64 // when it should have left; equals Sent in a closed loop
	Sent     int64 // first attempt
	Answered int64 // last answer; 0 = none
	Attempts uint16
	Class    Class
	Code     string // status and reason of a refused or unanswered request
}

// Row is one row read back from a store.
type Row struct {
	ID        trace.ID
	Hash      int64 // span hash of the row key; 0 where the store has none
	WriteTime int64 // microseconds since the epoch; 0 where the store has none
}
