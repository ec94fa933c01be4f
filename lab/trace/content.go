package trace

import (
	"math/bits"
	"strconv"
	"strings"
)

// Names that generated spans carry. The original experiment had one service, a root operation
// and one operation for all children, and constant tags.
const (
	ServiceName    = "jaegerlab"
	RootOperation  = "root"
	ChildOperation = "child"
)

// Numbers inside names and values are written in a fixed width, so that a sender can overwrite
// them in an encoded request.
const (
	ServiceDigits   = 6
	OperationDigits = 6
	ValueDigits     = 10
)

// Content says what every generated span contains, as a pure function of (seed, worker, index):
// no generated span has to be remembered to know what a store should hold. Ask it of one goroutine
// or of many; it has no state. The zero value means no tags, one service and constant values.
type Content struct {
	Seed               uint64
	Tags               int // tags a span: tag-0, tag-1, ...
	Services           int // distinct service names; a trace belongs to one of them
	TracesPerService   int // consecutive traces of one service, so that a request has one; 0 = 1
	TagValues          int // distinct values of each tag; 0 and 1 = one constant value, as the original
	TagLength          int // bytes that a tag's value is filled up to; 0 = as long as it is
	ResourceAttributes int // attributes of the resource (Jaeger: the process) beside the service's name
	Operations         int // distinct operation names; 0 and 1 = root and child, as the original
	Shape              Shape
	ErrorPercent       int // of the spans, exactly and evenly spread
	Events             int // events (Jaeger: logs) a span
}

// Tag is one string attribute.
type Tag struct{ Key, Value string }

// Event is something that happened in a span: an event of OTLP, a log with the field "event" of Jaeger.
type Event struct {
	TimeUS int64
	Name   string
}

// Span is one generated span in full; times are microseconds since the epoch.
type Span struct {
	ID         ID
	Parent     uint64 // span id of the parent; 0 = this is the root
	Service    string
	Operation  string
	StartUS    int64
	DurationUS int64
	Tags       []Tag
	Resource   []Tag
	Error      bool // OTLP: status ERROR; Jaeger: tag error=true
	Events     []Event
}

// Span returns the span at ref of a trace whose root starts at rootUS.
func (c Content) Span(n Numbering, ref Ref, rootUS int64) Span {
	width := uint64(n.Width)
	seq, position := ref.Index/width, int(ref.Index%width)
	span := Span{
		ID:        n.ID(ref),
		Service:   c.Service(ref.Worker, seq),
		Operation: c.Operation(ref.Worker, ref.Index, position),
		Resource:  c.Resource(),
		Error:     c.IsError(ref.Index),
	}
	if position > 0 {
		span.Parent = n.SpanID(ref.Worker, seq*width+uint64(c.Shape.Parent(position)))
	}
	offset, duration := c.Shape.Timing(position, n.Width)
	span.StartUS, span.DurationUS = rootUS+offset, duration
	for tag := range c.Tags {
		span.Tags = append(span.Tags, Tag{Key: TagKey(tag), Value: c.Value(ref.Worker, ref.Index, tag)})
	}
	for event := range c.Events {
		span.Events = append(span.Events, Event{TimeUS: span.StartUS, Name: EventName(event)})
	}
	return span
}

// OperationsDiffer reports whether operation names end in OperationDigits digits.
func (c Content) OperationsDiffer() bool { return c.Operations > 1 }

// OperationNumber tells which of its Operations operations a span is: spread evenly.
func (c Content) OperationNumber(worker uint32, index uint64) uint64 {
	number, _ := bits.Mul64(mix(mix(^c.Seed+uint64(worker))+index), uint64(c.Operations))
	return number
}

// Operation is the operation name of the span number index, at this position of its trace.
func (c Content) Operation(worker uint32, index uint64, position int) string {
	if c.OperationsDiffer() {
		digits := make([]byte, OperationDigits)
		PutDigits(digits, c.OperationNumber(worker, index))
		return "operation-" + string(digits)
	}
	if position == 0 {
		return RootOperation
	}
	return ChildOperation
}

// ErrorPeriod is after how many spans the pattern of errors repeats: at most 100.
func (c Content) ErrorPeriod() int {
	period := 100
	for d := period; d > 1; d-- {
		if c.ErrorPercent%d == 0 && 100%d == 0 {
			return period / d
		}
	}
	return period
}

// IsError tells whether the span number index of a worker ends with an error: of any 100
// consecutive spans exactly ErrorPercent do, as evenly as whole spans can.
func (c Content) IsError(index uint64) bool {
	at := (index + c.Seed%100) % 100
	percent := uint64(c.ErrorPercent)
	return (at+1)*percent/100 > at*percent/100
}

// EventName is the name of a span's event number i.
func EventName(i int) string { return "event-" + strconv.Itoa(i) }

// TagKey is the key of a span's tag number i.
func TagKey(i int) string { return "tag-" + strconv.Itoa(i) }

// Value is the value of one tag of the span number index of a worker.
func (c Content) Value(worker uint32, index uint64, tag int) string {
	value := "value-" + strconv.Itoa(tag)
	if !c.ValuesDiffer() {
		return c.filled(value, 0)
	}
	digits := make([]byte, ValueDigits)
	PutDigits(digits, c.ValueNumber(worker, index, tag))
	return c.filled(value+"-", ValueDigits) + string(digits)
}

// filled makes a value with so many bytes still to come as long as TagLength wants it.
func (c Content) filled(value string, more int) string {
	return value + strings.Repeat("x", max(c.TagLength-len(value)-more, 0))
}

// ValuesDiffer reports whether a tag has more than one value: then values end in ValueDigits digits.
func (c Content) ValuesDiffer() bool { return c.TagValues > 1 }

// ValueNumber tells which of its TagValues values a tag has: 0 ... TagValues-1, spread evenly.
func (c Content) ValueNumber(worker uint32, index uint64, tag int) uint64 {
	hash := mix(mix(mix(c.Seed+uint64(worker))+index) + uint64(tag))
	number, _ := bits.Mul64(hash, uint64(c.TagValues))
	return number
}

// Service is the service that a worker's trace number seq belongs to.
func (c Content) Service(worker uint32, seq uint64) string {
	if !c.ServicesDiffer() {
		return ServiceName
	}
	digits := make([]byte, ServiceDigits)
	PutDigits(digits, c.ServiceNumber(worker, seq))
	return ServiceName + "-" + string(digits)
}

// ServicesDiffer reports whether there is more than one service: then names end in ServiceDigits digits.
func (c Content) ServicesDiffer() bool { return c.Services > 1 }

// ServiceNumber tells which service a worker's trace belongs to: the services take turns, and
// each worker begins with another one, so a short run sees them all. With TracesPerService a turn
// is so many traces long.
func (c Content) ServiceNumber(worker uint32, seq uint64) uint64 {
	services := uint64(max(c.Services, 1))
	turn := seq / uint64(max(c.TracesPerService, 1))
	return (c.Seed%services + uint64(worker)%services + turn%services) % services
}

// Resource are the constant attributes of the resource beside the service's name.
func (c Content) Resource() []Tag {
	var tags []Tag
	for i := range c.ResourceAttributes {
		tags = append(tags, Tag{Key: "resource-" + strconv.Itoa(i), Value: "value-" + strconv.Itoa(i)})
	}
	return tags
}

// PutDigits fills dst with the last len(dst) decimal digits of number, zeros in front.
func PutDigits(dst []byte, number uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = '0' + byte(number%10)
		number /= 10
	}
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
