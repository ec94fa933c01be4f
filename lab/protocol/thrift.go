package protocol

import (
	"encoding/binary"

	"jaegerlab/lab/trace"
)

// Thrift's binary protocol writes a field as type, number and value, all big-endian and of fixed
// width; the structs are those of jaeger.thrift (jaeger-idl).
const (
	thriftStop   = 0
	thriftI32    = 8
	thriftI64    = 10
	thriftString = 11
	thriftStruct = 12
	thriftList   = 15

	thriftSampled   = 1 // Span.flags: the span was sampled, as every client of Jaeger sets it
	thriftTagString = 0 // TagType.STRING
)

var thriftBinaryFormat = format{id: binary.BigEndian.PutUint64, time: putMicroseconds}

// thriftWriter appends thrift binary.
type thriftWriter struct{ bytes []byte }

func (w *thriftWriter) field(kind byte, number int16) {
	w.bytes = append(w.bytes, kind)
	w.bytes = binary.BigEndian.AppendUint16(w.bytes, uint16(number))
}

func (w *thriftWriter) stop() { w.bytes = append(w.bytes, thriftStop) }

func (w *thriftWriter) i32(number int16, value int32) {
	w.field(thriftI32, number)
	w.bytes = binary.BigEndian.AppendUint32(w.bytes, uint32(value))
}

// i64 returns the place of the value.
func (w *thriftWriter) i64(number int16, value int64) int {
	w.field(thriftI64, number)
	w.bytes = binary.BigEndian.AppendUint64(w.bytes, uint64(value))
	return len(w.bytes) - 8
}

// text returns the place after the value.
func (w *thriftWriter) text(number int16, value string) int {
	w.field(thriftString, number)
	w.bytes = binary.BigEndian.AppendUint32(w.bytes, uint32(len(value)))
	w.bytes = append(w.bytes, value...)
	return len(w.bytes)
}

func (w *thriftWriter) list(number int16, length int) {
	w.field(thriftList, number)
	w.bytes = append(w.bytes, thriftStruct)
	w.bytes = binary.BigEndian.AppendUint32(w.bytes, uint32(length))
}

// tag appends one Tag struct and returns the place after its value.
func (w *thriftWriter) tag(tag trace.Tag) int {
	w.text(1, tag.Key)
	w.i32(2, thriftTagString)
	end := w.text(3, tag.Value)
	w.stop()
	return end
}

// encodeThriftBinary encodes a Batch: one Process and its spans.
func encodeThriftBinary(content trace.Content, width, position, count int) *template {
	t := &template{format: thriftBinaryFormat, content: content, service: none}
	w := &thriftWriter{}
	w.field(thriftStruct, 1) // Batch.process
	after := w.text(1, content.Service(0, 0))
	if content.ServicesDiffer() {
		t.service = after - trace.ServiceDigits
	}
	if resource := content.Resource(); len(resource) > 0 {
		w.list(2, len(resource))
		for _, tag := range resource {
			w.tag(tag)
		}
	}
	w.stop()
	w.list(2, count) // Batch.spans
	for i := range count {
		t.marks = append(t.marks, w.span(content, position+i, width))
	}
	w.stop()
	t.bytes = w.bytes
	return t
}

func (w *thriftWriter) span(content trace.Content, position, width int) spanMarks {
	m := spanMarks{parent: none, end: none}
	m.traceLow = w.i64(1, 0)
	m.traceHigh = w.i64(2, 0)
	m.span = w.i64(3, 0)
	parent := w.i64(4, 0)
	if position > 0 {
		m.parent = parent
	}
	w.text(5, trace.Operation(position))
	w.i32(7, thriftSampled)
	m.start = w.i64(8, 0)
	_, duration := trace.Timing(position, width)
	w.i64(9, duration)
	if content.Tags > 0 {
		w.list(10, content.Tags)
	}
	for tag := range content.Tags {
		after := w.tag(trace.Tag{Key: trace.TagKey(tag), Value: content.Value(0, 0, tag)})
		if content.ValuesDiffer() {
			m.values = append(m.values, after-trace.ValueDigits)
		}
	}
	w.stop()
	return m
}
