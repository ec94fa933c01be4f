package trace

import (
	"math/bits"
	"strconv"
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
	ServiceDigits = 6
	ValueDigits   = 10
)

// Content says what every generated span contains, as a pure function of (seed, worker, index):
// no generated span has to be remembered to know what a store should hold. Ask it of one goroutine
// or of many; it has no state. The zero value means no tags, one service and constant values.
type Content struct {
	Seed               uint64
	Tags               int // tags a span: tag-0, tag-1, ...
	Services           int // distinct service names; a trace belongs to one of them
	TagValues          int // distinct values of each tag; 0 and 1 = one constant value, as the original
	ResourceAttributes int // attributes of the resource (Jaeger: the process) beside the service's name
}

// Tag is one string attribute.
type Tag struct{ Key, Value string }

// Span is one generated span in full; times are microseconds since the epoch.
type Span struct {
	ID         ID
	Parent     uint64 // span id of the trace's root; 0 = this is the root
	Service    string
	Operation  string
	StartUS    int64
	DurationUS int64
	Tags       []Tag
	Resource   []Tag
}

// Span returns the span at ref of a trace whose root starts at rootUS.
func (c Content) Span(n Numbering, ref Ref, rootUS int64) Span {
	width := uint64(n.Width)
	seq, position := ref.Index/width, int(ref.Index%width)
	span := Span{
		ID:        n.ID(ref),
		Service:   c.Service(ref.Worker, seq),
		Operation: Operation(position),
		Resource:  c.Resource(),
	}
	if position > 0 {
		span.Parent = n.SpanID(ref.Worker, seq*width)
	}
	offset, duration := Timing(position, n.Width)
	span.StartUS, span.DurationUS = rootUS+offset, duration
	for tag := range c.Tags {
		span.Tags = append(span.Tags, Tag{Key: TagKey(tag), Value: c.Value(ref.Worker, ref.Index, tag)})
	}
	return span
}

// Operation is the operation name of the span at this position of its trace.
func Operation(position int) string {
	if position == 0 {
		return RootOperation
	}
	return ChildOperation
}

// Timing places a span in its trace: starts are one microsecond apart, a child lasts one
// microsecond and the root as long as all its children, so every span ends after it starts.
func Timing(position, width int) (offsetUS, durationUS int64) {
	if position == 0 {
		return 0, int64(width)
	}
	return int64(position), 1
}

// TagKey is the key of a span's tag number i.
func TagKey(i int) string { return "tag-" + strconv.Itoa(i) }

// Value is the value of one tag of the span number index of a worker.
func (c Content) Value(worker uint32, index uint64, tag int) string {
	constant := "value-" + strconv.Itoa(tag)
	if !c.ValuesDiffer() {
		return constant
	}
	digits := make([]byte, ValueDigits)
	PutDigits(digits, c.ValueNumber(worker, index, tag))
	return constant + "-" + string(digits)
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
// each worker begins with another one, so a short run sees them all.
func (c Content) ServiceNumber(worker uint32, seq uint64) uint64 {
	services := uint64(max(c.Services, 1))
	return (c.Seed%services + uint64(worker)%services + seq%services) % services
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
