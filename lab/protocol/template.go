package protocol

import (
	"encoding/binary"
	"fmt"

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

// spanMarks are the places of one span's changing fields.
type spanMarks struct {
	traceHigh, traceLow, span, parent int
	start, end                        int
	values                            []int // of each tag's digits
}

const none = -1

// format is how one wire format writes ids and times.
type format struct {
	id   func(dst []byte, id uint64)
	time func(dst []byte, us int64)
}

// putNanoseconds is OTLP's fixed64 of nanoseconds.
func putNanoseconds(dst []byte, us int64) { binary.LittleEndian.PutUint64(dst, uint64(us)*1000) }

// putMicroseconds is the i64 of thrift's binary protocol.
func putMicroseconds(dst []byte, us int64) { binary.BigEndian.PutUint64(dst, uint64(us)) }

// fill makes the template the request of the spans first, first+1, ... of a worker; startUS is
// the start of the span first. It allocates nothing.
func (t *template) fill(n trace.Numbering, phase trace.Phase, worker uint32, first uint64, startUS int64) {
	width := uint64(n.Width)
	seq, position := first/width, int(first%width)
	if t.service != none {
		trace.PutDigits(t.bytes[t.service:t.service+trace.ServiceDigits], t.content.ServiceNumber(worker, seq))
	}
	high, low := n.TraceID(phase, worker, seq)
	root := n.SpanID(worker, seq*width)
	base := startUS - int64(position)
	for i := range t.marks {
		m, index := &t.marks[i], first+uint64(i)
		t.format.id(t.bytes[m.traceHigh:], high)
		t.format.id(t.bytes[m.traceLow:], low)
		t.format.id(t.bytes[m.span:], n.SpanID(worker, index))
		if m.parent != none {
			t.format.id(t.bytes[m.parent:], root)
		}
		offset, duration := trace.Timing(position+i, n.Width)
		t.format.time(t.bytes[m.start:], base+offset)
		if m.end != none {
			t.format.time(t.bytes[m.end:], base+offset+duration)
		}
		for tag, at := range m.values {
			trace.PutDigits(t.bytes[at:at+trace.ValueDigits], t.content.ValueNumber(worker, index, tag))
		}
	}
}

// renew gives the template bytes of its own, when somebody else may still be reading the old ones.
func (t *template) renew() { t.bytes = append([]byte(nil), t.bytes...) }

// Limits of a request that every receiver of the lab takes: gRPC servers refuse messages above
// 4 MiB, and the collector's queue is bounded at 2,000 spans: a request above that is refused
// for ever, one of half that size never needs the whole queue for itself.
const (
	MaxRequestBytes = 4<<20 - 16<<10
	MaxRequestSpans = 1000
)

// encoder encodes count spans of a trace, the first of them at this position.
type encoder func(content trace.Content, width, position, count int) *template

// part is one request of a trace: the template of the spans from this position on.
type part struct {
	position int
	*template
}

// plan splits a trace into requests within the limits, as equal as possible, in order. Parts
// that look the same share one template. A single span that is too large is refused by name.
func plan(encode encoder, client string, content trace.Content, width int) ([]part, error) {
	per := min(width, MaxRequestSpans)
	one := len(encode(content, width, 0, 1).bytes)
	if one > MaxRequestBytes {
		return nil, fmt.Errorf("send over %s: one span with %d tags and %d resource attributes is a request of "+
			"%d bytes; receivers accept %d; lower TAGS_COUNT or LAB_RESOURCE_ATTRIBUTES",
			client, content.Tags, content.ResourceAttributes, one, MaxRequestBytes)
	}
	if width > 1 {
		const growth = 16 // a longer message has longer length prefixes
		child := len(encode(content, width, 0, 2).bytes) - one
		per = min(per, 1+(MaxRequestBytes-one-growth)/child)
	}
	requests := (width + per - 1) / per
	per = (width + requests - 1) / requests
	var parts []part
	for position := 0; position < width; position += per {
		count := min(per, width-position)
		if last := len(parts) - 1; last > 0 && len(parts[last].marks) == count {
			parts = append(parts, part{position, parts[last].template})
			continue
		}
		parts = append(parts, part{position, encode(content, width, position, count)})
	}
	return parts, nil
}
