package protocol

import (
	"encoding/binary"
	"slices"

	"jaegerlab/lab/trace"
)

// A template is one encoded request of consecutive spans of a worker. Everything that differs
// from send to send stands in it in a fixed width, so a send overwrites some bytes and marshals
// nothing. The formats (otlp.go, thrift.go) append the bytes and note the places.
type template struct {
	format  format
	content trace.Content
	bytes   []byte
	count   int         // spans
	marks   []spanMarks // of all spans, or of the first ones of several alike
	stride  int         // bytes from those to the next ones alike
	service int         // place of the service's digits; none when there is one service
	high    uint64      // upper word of the trace ids that stand in it: the same for all of a worker's
}

// spanMarks are what is known of one span of a template, and the places of its changing fields.
// They are read for every span that is sent, so they are small.
type spanMarks struct {
	root     bool  // a trace begins with it
	back     int32 // so many spans before it is its parent
	duration int32

	traceHigh, traceLow, span, parent int32
	start, end                        int32
	varying                           *varying // nil: nothing else changes
}

// varying are the places of what only some contents have.
type varying struct {
	operation      int32   // of the operation's digits
	values, events []int32 // of each tag's digits, of each event's time
}

const none = -1

// marksOf begins the marks of the span number index.
func marksOf(content trace.Content, width int, index uint64) spanMarks {
	position := int(index % uint64(width))
	m := spanMarks{root: position == 0, parent: none, end: none}
	if position > 0 {
		m.back = int32(position - content.Shape.Parent(position))
	}
	_, duration := content.Shape.Timing(position, width)
	m.duration = int32(duration)
	if content.OperationsDiffer() || content.ValuesDiffer() && content.Tags > 0 || content.Events > 0 {
		m.varying = &varying{operation: none}
	}
	return m
}

// places are those of all changing fields, always in the same order.
func (m *spanMarks) places() []*int32 {
	places := []*int32{&m.traceHigh, &m.traceLow, &m.span, &m.parent, &m.start, &m.end}
	if v := m.varying; v != nil {
		places = append(places, &v.operation)
		for i := range v.values {
			places = append(places, &v.values[i])
		}
		for i := range v.events {
			places = append(places, &v.events[i])
		}
	}
	return places
}

// shift moves the places, after something was put in front.
func (m *spanMarks) shift(by int) {
	for _, at := range m.places() {
		if *at != none {
			*at += int32(by)
		}
	}
}

// format is how a wire format writes ids and times, always in the same number of bytes.
type format uint8

const (
	otlpFormat    format = iota // ids big-endian, times fixed64 of nanoseconds
	binaryFormat                // both i64 big-endian
	compactFormat               // both varints
)

func (f format) putID(dst []byte, id uint64) {
	if f == compactFormat {
		putCompactID(dst, id)
		return
	}
	binary.BigEndian.PutUint64(dst, id)
}

func (f format) putTime(dst []byte, us int64) {
	switch f {
	case otlpFormat:
		binary.LittleEndian.PutUint64(dst, uint64(us)*1000)
	case binaryFormat:
		binary.BigEndian.PutUint64(dst, uint64(us))
	default:
		putCompactTime(dst, us)
	}
}

// fill makes the template the request of the spans first, first+1, ... of a worker; startUS is
// the start of the span first, and each next span starts a microsecond later. first stands in its
// trace where the span stood that the template was encoded for. It allocates nothing.
func (t *template) fill(n trace.Numbering, phase trace.Phase, worker uint32, first uint64, startUS int64) {
	seq := first / uint64(n.Width)
	if t.service != none {
		trace.PutDigits(t.bytes[t.service:t.service+trace.ServiceDigits], t.content.ServiceNumber(worker, seq))
	}
	f := t.format
	high, low := n.TraceID(phase, worker, seq)
	if high != t.high {
		t.high = high
		for from := 0; from < t.count; from += len(t.marks) {
			bytes := t.bytes[from/len(t.marks)*t.stride:]
			for i := range t.marks {
				f.putID(bytes[t.marks[i].traceHigh:], high)
			}
		}
	}
	span := n.SpanID(worker, first) // the spans of a worker have consecutive ids
	for from := 0; from < t.count; from += len(t.marks) {
		bytes := t.bytes[from/len(t.marks)*t.stride:]
		for i := range t.marks {
			m := &t.marks[i]
			if m.root && from+i > 0 {
				seq++
				_, low = n.TraceID(phase, worker, seq)
			}
			f.putID(bytes[m.traceLow:], low)
			f.putID(bytes[m.span:], span)
			if m.parent != none {
				f.putID(bytes[m.parent:], span-uint64(m.back))
			}
			f.putTime(bytes[m.start:], startUS)
			if m.end != none {
				f.putTime(bytes[m.end:], startUS+int64(m.duration))
			}
			if m.varying != nil {
				t.vary(m.varying, bytes, worker, first+uint64(from+i), startUS)
			}
			span++
			startUS++
		}
	}
}

// fold keeps the marks of the first trace only, when all traces of the request look the same: then
// patching reads next to nothing but what it overwrites.
func (t *template) fold(width int) {
	t.count = len(t.marks)
	if t.count <= width || t.count%width != 0 {
		return
	}
	stride := t.marks[width].traceLow - t.marks[0].traceLow
	for i := width; i < t.count; i++ {
		if !t.marks[i].same(t.marks[i-width], stride) {
			return
		}
	}
	t.marks, t.stride = slices.Clone(t.marks[:width]), int(stride)
}

// same reports whether m is other, so many bytes later.
func (m spanMarks) same(other spanMarks, later int32) bool {
	a, b := m.places(), other.places()
	if m.root != other.root || m.back != other.back || m.duration != other.duration || len(a) != len(b) {
		return false
	}
	for i := range a {
		if want := *b[i]; *a[i] != want+later && !(*a[i] == none && want == none) {
			return false
		}
	}
	return true
}

// vary overwrites what only some contents have.
func (t *template) vary(v *varying, bytes []byte, worker uint32, index uint64, start int64) {
	if v.operation != none {
		at := bytes[v.operation : v.operation+trace.OperationDigits]
		trace.PutDigits(at, t.content.OperationNumber(worker, index))
	}
	for tag, at := range v.values {
		trace.PutDigits(bytes[at:at+trace.ValueDigits], t.content.ValueNumber(worker, index, tag))
	}
	for _, at := range v.events {
		t.format.putTime(bytes[at:], start)
	}
}

// renew gives the template bytes of its own, when somebody else may still be reading the old ones.
func (t *template) renew() { t.bytes = append([]byte(nil), t.bytes...) }
