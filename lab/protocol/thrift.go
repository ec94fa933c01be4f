package protocol

import (
	"encoding/binary"

	"jaegerlab/lab/trace"
)

// Thrift's binary protocol writes a field as type, number and value, all big-endian and of fixed
// width; the structs are those of jaeger.thrift (jaeger-idl).
const (
	thriftStop   = 0
	thriftBool   = 2
	thriftI32    = 8
	thriftI64    = 10
	thriftString = 11
	thriftStruct = 12
	thriftList   = 15

	thriftSampled   = 1 // Span.flags: the span was sampled, as every client of Jaeger sets it
	thriftTagString = 0 // TagType.STRING
	thriftTagBool   = 2 // TagType.BOOL
)

// thriftWriter appends one of thrift's protocols. Methods that return a place return that of the
// value's fixed-width bytes, or, for texts, the place after the value.
type thriftWriter interface {
	begin(number int16)                  // a struct that is a field
	stop()                               // the end of a struct
	list(number int16, length int)       // of structs
	element()                            // a struct that is an element of a list
	i32(number int16, value int32)       //
	i64(number int16, value int64)       // a constant
	id(number int16) int                 // room for an id
	time(number int16) int               // room for microseconds since the epoch
	text(number int16, value string) int //
	flag(number int16, value bool)       //
}

// binaryWriter appends thrift binary.
type binaryWriter struct{ bytes []byte }

func (w *binaryWriter) field(kind byte, number int16) {
	w.bytes = append(w.bytes, kind)
	w.bytes = binary.BigEndian.AppendUint16(w.bytes, uint16(number))
}

func (w *binaryWriter) begin(number int16) { w.field(thriftStruct, number) }
func (w *binaryWriter) element()           {}
func (w *binaryWriter) stop()              { w.bytes = append(w.bytes, thriftStop) }

func (w *binaryWriter) list(number int16, length int) {
	w.field(thriftList, number)
	w.bytes = append(w.bytes, thriftStruct)
	w.bytes = binary.BigEndian.AppendUint32(w.bytes, uint32(length))
}

func (w *binaryWriter) i32(number int16, value int32) {
	w.field(thriftI32, number)
	w.bytes = binary.BigEndian.AppendUint32(w.bytes, uint32(value))
}

func (w *binaryWriter) i64(number int16, value int64) {
	w.field(thriftI64, number)
	w.bytes = binary.BigEndian.AppendUint64(w.bytes, uint64(value))
}

func (w *binaryWriter) id(number int16) int {
	w.i64(number, 0)
	return len(w.bytes) - 8
}

func (w *binaryWriter) time(number int16) int { return w.id(number) }

func (w *binaryWriter) text(number int16, value string) int {
	w.field(thriftString, number)
	w.bytes = binary.BigEndian.AppendUint32(w.bytes, uint32(len(value)))
	w.bytes = append(w.bytes, value...)
	return len(w.bytes)
}

func (w *binaryWriter) flag(number int16, value bool) {
	w.field(thriftBool, number)
	if value {
		w.bytes = append(w.bytes, 1)
		return
	}
	w.bytes = append(w.bytes, 0)
}

// encodeThriftBinary encodes a Batch: one Process and its spans.
func encodeThriftBinary(content trace.Content, width int, first uint64, count int) *template {
	t := &template{format: binaryFormat, content: content, service: none}
	w := &binaryWriter{}
	t.batch(w, width, first, count)
	t.bytes = w.bytes
	return t
}

// batch writes the fields of a Batch and the end of it, and notes the places.
func (t *template) batch(w thriftWriter, width int, first uint64, count int) {
	w.begin(1) // Batch.process
	after := w.text(1, t.content.Service(0, 0))
	if t.content.ServicesDiffer() {
		t.service = after - trace.ServiceDigits
	}
	if resource := t.content.Resource(); len(resource) > 0 {
		w.list(2, len(resource))
		for _, tag := range resource {
			writeTag(w, tag)
		}
	}
	w.stop()
	w.list(2, count) // Batch.spans
	for i := range count {
		t.marks = append(t.marks, writeSpan(w, t.content, width, first+uint64(i)))
	}
	w.stop()
}

// writeTag writes one Tag struct and returns the place after its value.
func writeTag(w thriftWriter, tag trace.Tag) int {
	w.element()
	w.text(1, tag.Key)
	w.i32(2, thriftTagString)
	end := w.text(3, tag.Value)
	w.stop()
	return end
}

func writeSpan(w thriftWriter, content trace.Content, width int, index uint64) spanMarks {
	m := marksOf(content, width, index)
	w.element()
	m.traceLow = int32(w.id(1))
	m.traceHigh = int32(w.id(2))
	m.span = int32(w.id(3))
	if m.root {
		w.i64(4, 0)
	} else {
		m.parent = int32(w.id(4))
	}
	after := w.text(5, content.Operation(0, index, int(index%uint64(width))))
	if content.OperationsDiffer() {
		m.varying.operation = int32(after - trace.OperationDigits)
	}
	w.i32(7, thriftSampled)
	m.start = int32(w.time(8))
	w.i64(9, int64(m.duration))
	failed := content.IsError(index)
	tags := content.Tags
	if failed {
		tags++
	}
	if tags > 0 {
		w.list(10, tags)
	}
	for tag := range content.Tags {
		after := writeTag(w, trace.Tag{Key: trace.TagKey(tag), Value: content.Value(0, 0, tag)})
		if content.ValuesDiffer() {
			m.varying.values = append(m.varying.values, int32(after-trace.ValueDigits))
		}
	}
	if failed {
		w.element()
		w.text(1, "error")
		w.i32(2, thriftTagBool)
		w.flag(5, true)
		w.stop()
	}
	if content.Events > 0 {
		w.list(11, content.Events)
	}
	for event := range content.Events {
		w.element()
		m.varying.events = append(m.varying.events, int32(w.time(1)))
		w.list(2, 1)
		writeTag(w, trace.Tag{Key: "event", Value: trace.EventName(event)})
		w.stop()
	}
	w.stop()
	return m
}
