package protocol

import (
	"encoding/binary"

	"jaegerlab/lab/trace"
)

// A template is one encoded request of consecutive spans of a worker. Everything that differs
// from send to send stands in it in a fixed width, so a send overwrites some bytes and marshals
// nothing. The formats (otlp.go, thrift.go) append the bytes and note the places.
type template struct {
	format  format
	content trace.Content
	bytes   []byte
	marks   []spanMarks
	service int // place of the service's digits; none when there is one service
}

// spanMarks are what is known of one span of a template, and the places of its changing fields.
type spanMarks struct {
	root     bool   // a trace begins with it
	back     uint64 // so many spans before it is its parent
	duration int64

	traceHigh, traceLow, span, parent int
	start, end                        int
	operation                         int   // of the operation's digits
	values, events                    []int // of each tag's digits, of each event's time
}

const none = -1

// marksOf begins the marks of the span number index.
func marksOf(content trace.Content, width int, index uint64) spanMarks {
	position := int(index % uint64(width))
	m := spanMarks{root: position == 0, parent: none, end: none, operation: none}
	if position > 0 {
		m.back = uint64(position - content.Shape.Parent(position))
	}
	_, m.duration = content.Shape.Timing(position, width)
	return m
}

// shifted moves the places, after something was put in front.
func (m spanMarks) shifted(by int) spanMarks {
	for _, at := range []*int{&m.traceHigh, &m.traceLow, &m.span, &m.parent, &m.start, &m.end, &m.operation} {
		if *at != none {
			*at += by
		}
	}
	for _, places := range [][]int{m.values, m.events} {
		for i := range places {
			places[i] += by
		}
	}
	return m
}

// format is how one wire format writes ids and times, always in the same number of bytes.
type format struct {
	id   func(dst []byte, id uint64)
	time func(dst []byte, us int64)
}

// putNanoseconds is OTLP's fixed64 of nanoseconds.
func putNanoseconds(dst []byte, us int64) { binary.LittleEndian.PutUint64(dst, uint64(us)*1000) }

// putMicroseconds is the i64 of thrift's binary protocol.
func putMicroseconds(dst []byte, us int64) { binary.BigEndian.PutUint64(dst, uint64(us)) }

// fill makes the template the request of the spans first, first+1, ... of a worker; startUS is
// the start of the span first, and each next span starts a microsecond later. first stands in its
// trace where the span stood that the template was encoded for. It allocates nothing.
func (t *template) fill(n trace.Numbering, phase trace.Phase, worker uint32, first uint64, startUS int64) {
	seq := first / uint64(n.Width)
	if t.service != none {
		trace.PutDigits(t.bytes[t.service:t.service+trace.ServiceDigits], t.content.ServiceNumber(worker, seq))
	}
	high, low := n.TraceID(phase, worker, seq)
	for i := range t.marks {
		m, index := &t.marks[i], first+uint64(i)
		if m.root && i > 0 {
			seq++
			high, low = n.TraceID(phase, worker, seq)
		}
		t.format.id(t.bytes[m.traceHigh:], high)
		t.format.id(t.bytes[m.traceLow:], low)
		t.format.id(t.bytes[m.span:], n.SpanID(worker, index))
		if m.parent != none {
			t.format.id(t.bytes[m.parent:], n.SpanID(worker, index-m.back))
		}
		start := startUS + int64(i)
		t.format.time(t.bytes[m.start:], start)
		if m.end != none {
			t.format.time(t.bytes[m.end:], start+m.duration)
		}
		t.vary(m, worker, index, start)
	}
}

// vary overwrites what only some contents have.
func (t *template) vary(m *spanMarks, worker uint32, index uint64, start int64) {
	if m.operation != none {
		at := t.bytes[m.operation : m.operation+trace.OperationDigits]
		trace.PutDigits(at, t.content.OperationNumber(worker, index))
	}
	for tag, at := range m.values {
		trace.PutDigits(t.bytes[at:at+trace.ValueDigits], t.content.ValueNumber(worker, index, tag))
	}
	for _, at := range m.events {
		t.format.time(t.bytes[at:], start)
	}
}

// renew gives the template bytes of its own, when somebody else may still be reading the old ones.
func (t *template) renew() { t.bytes = append([]byte(nil), t.bytes...) }
