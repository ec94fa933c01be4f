package exporter

import (
	"encoding/binary"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Types of fields in thrift's binary and compact protocols, and tag types of jaeger.thrift.
const (
	thriftBool   = 2
	thriftDouble = 4
	thriftI32    = 8
	thriftI64    = 10
	thriftString = 11
	thriftStruct = 12
	thriftList   = 15

	compactTrue   = 1
	compactFalse  = 2
	compactI32    = 5
	compactI64    = 6
	compactDouble = 7
	compactBinary = 8
	compactList   = 9
	compactStruct = 12

	tagString = 0
	tagDouble = 1
	tagBool   = 2
	tagLong   = 3

	followsFrom = 1 // SpanRefType: what Jaeger makes of a link
)

// encoder appends structs of jaeger.thrift in one of thrift's protocols. Fields are named by
// their number and how far that is from the field before, which is what compact writes.
type encoder struct {
	compact bool
	bytes   []byte
}

func (e *encoder) field(number, after, binaryType, compactType byte) {
	if e.compact {
		e.bytes = append(e.bytes, (number-after)<<4|compactType)
		return
	}
	e.bytes = append(e.bytes, binaryType, 0, number)
}

func (e *encoder) i64(number, after byte, value int64) {
	e.field(number, after, thriftI64, compactI64)
	if e.compact {
		e.bytes = binary.AppendVarint(e.bytes, value)
		return
	}
	e.bytes = binary.BigEndian.AppendUint64(e.bytes, uint64(value))
}

func (e *encoder) i32(number, after byte, value int32) {
	e.field(number, after, thriftI32, compactI32)
	if e.compact {
		e.bytes = binary.AppendVarint(e.bytes, int64(value))
		return
	}
	e.bytes = binary.BigEndian.AppendUint32(e.bytes, uint32(value))
}

func (e *encoder) text(number, after byte, value string) {
	e.field(number, after, thriftString, compactBinary)
	if e.compact {
		e.bytes = binary.AppendUvarint(e.bytes, uint64(len(value)))
	} else {
		e.bytes = binary.BigEndian.AppendUint32(e.bytes, uint32(len(value)))
	}
	e.bytes = append(e.bytes, value...)
}

// list begins a list of structs.
func (e *encoder) list(number, after byte, length int) {
	e.field(number, after, thriftList, compactList)
	switch {
	case !e.compact:
		e.bytes = binary.BigEndian.AppendUint32(append(e.bytes, thriftStruct), uint32(length))
	case length < 15:
		e.bytes = append(e.bytes, byte(length)<<4|compactStruct)
	default:
		e.bytes = binary.AppendUvarint(append(e.bytes, 0xf0|compactStruct), uint64(length))
	}
}

func (e *encoder) stop() { e.bytes = append(e.bytes, 0) }

// process encodes a Process: the service's name, and the resource's other attributes as tags.
func (e *encoder) process(of *resource.Resource) {
	const serviceName = attribute.Key("service.name")
	service, tags := "unknown_service", 0
	for it := of.Iter(); it.Next(); {
		if kv := it.Attribute(); kv.Key == serviceName {
			service = kv.Value.Emit()
		} else {
			tags++
		}
	}
	e.text(1, 0, service)
	if tags > 0 {
		e.list(2, 1, tags)
		for it := of.Iter(); it.Next(); {
			if kv := it.Attribute(); kv.Key != serviceName {
				e.attribute(kv)
			}
		}
	}
	e.stop()
}

// span encodes a Span. It allocates nothing, but for attributes that are lists.
func (e *encoder) span(s sdktrace.ReadOnlySpan) {
	context := s.SpanContext()
	id, span, parent := context.TraceID(), context.SpanID(), s.Parent().SpanID()
	e.i64(1, 0, int64(binary.BigEndian.Uint64(id[8:])))
	e.i64(2, 1, int64(binary.BigEndian.Uint64(id[:8])))
	e.i64(3, 2, int64(binary.BigEndian.Uint64(span[:])))
	e.i64(4, 3, int64(binary.BigEndian.Uint64(parent[:])))
	e.text(5, 4, s.Name())
	last := byte(5)
	if links := s.Links(); len(links) > 0 {
		e.list(6, 5, len(links))
		for _, link := range links {
			e.reference(link.SpanContext)
		}
		last = 6
	}
	e.i32(7, last, int32(context.TraceFlags()))
	start := s.StartTime()
	e.i64(8, 7, microseconds(start))
	e.i64(9, 8, max(s.EndTime().Sub(start).Microseconds(), 0))
	e.tags(s)
	e.stop()
}

func microseconds(t time.Time) int64 { return t.UnixNano() / 1000 }

func (e *encoder) reference(to trace.SpanContext) {
	id, span := to.TraceID(), to.SpanID()
	e.i32(1, 0, followsFrom)
	e.i64(2, 1, int64(binary.BigEndian.Uint64(id[8:])))
	e.i64(3, 2, int64(binary.BigEndian.Uint64(id[:8])))
	e.i64(4, 3, int64(binary.BigEndian.Uint64(span[:])))
	e.stop()
}

// tags encodes the span's attributes and what Jaeger keeps as tags too, then its events as logs.
func (e *encoder) tags(s sdktrace.ReadOnlySpan) {
	attributes, scope, status := s.Attributes(), s.InstrumentationScope(), s.Status()
	kind := kindOf(s.SpanKind())
	count := len(attributes)
	for _, present := range []bool{kind != "", scope.Name != "", scope.Version != "", status.Code != codes.Unset,
		status.Code == codes.Error, status.Code == codes.Error && status.Description != ""} {
		if present {
			count++
		}
	}
	last := byte(9)
	if count > 0 {
		e.list(10, last, count)
		last = 10
	}
	for i := range attributes { // no copies: nearly all of the time goes here
		if kv := &attributes[i]; kv.Value.Type() == attribute.STRING {
			e.string(string(kv.Key), kv.Value.AsString())
		} else {
			e.attribute(*kv)
		}
	}
	e.known("span.kind", kind)
	e.known("otel.scope.name", scope.Name)
	e.known("otel.scope.version", scope.Version)
	switch status.Code {
	case codes.Ok:
		e.known("otel.status_code", "OK")
	case codes.Error:
		e.known("otel.status_code", "ERROR")
		e.known("otel.status_description", status.Description)
		e.flag("error", true)
	}
	events := s.Events()
	if len(events) > 0 {
		e.list(11, last, len(events))
	}
	for _, event := range events {
		e.i64(1, 0, microseconds(event.Time))
		e.list(2, 1, 1+len(event.Attributes))
		e.string("event", event.Name)
		for _, kv := range event.Attributes {
			e.attribute(kv)
		}
		e.stop()
	}
}

// kindOf is Jaeger's word for a span's kind; "" for the kinds that it does not store.
func kindOf(kind trace.SpanKind) string {
	switch kind {
	case trace.SpanKindServer:
		return "server"
	case trace.SpanKindClient:
		return "client"
	case trace.SpanKindProducer:
		return "producer"
	case trace.SpanKindConsumer:
		return "consumer"
	}
	return ""
}

// known encodes a string tag, unless it is empty.
func (e *encoder) known(key, value string) {
	if value != "" {
		e.string(key, value)
	}
}

// string encodes a string tag. Nearly all tags are short ones, whose bytes around key and value
// are known: they are written without a call for each field.
func (e *encoder) string(key, value string) {
	if len(key) < 0x80 && len(value) < 0x80 {
		b := e.bytes
		if e.compact {
			b = append(b, 1<<4|compactBinary, byte(len(key)))
			b = append(b, key...)
			b = append(b, 1<<4|compactI32, tagString<<1, 1<<4|compactBinary, byte(len(value)))
		} else {
			b = append(b, thriftString, 0, 1, 0, 0, 0, byte(len(key)))
			b = append(b, key...)
			b = append(b, thriftI32, 0, 2, 0, 0, 0, tagString, thriftString, 0, 3, 0, 0, 0, byte(len(value)))
		}
		b = append(b, value...)
		e.bytes = append(b, 0)
		return
	}
	e.text(1, 0, key)
	e.i32(2, 1, tagString)
	e.text(3, 2, value)
	e.stop()
}

func (e *encoder) flag(key string, value bool) {
	e.text(1, 0, key)
	e.i32(2, 1, tagBool)
	number, typed := byte(0), byte(compactFalse)
	if value {
		number, typed = 1, compactTrue
	}
	e.field(5, 2, thriftBool, typed)
	if !e.compact {
		e.bytes = append(e.bytes, number)
	}
	e.stop()
}

// attribute encodes one as a Tag; lists become their JSON text.
func (e *encoder) attribute(kv attribute.KeyValue) {
	switch kv.Value.Type() {
	case attribute.STRING:
		e.string(string(kv.Key), kv.Value.AsString())
	case attribute.BOOL:
		e.flag(string(kv.Key), kv.Value.AsBool())
	case attribute.INT64:
		e.text(1, 0, string(kv.Key))
		e.i32(2, 1, tagLong)
		e.i64(6, 2, kv.Value.AsInt64())
		e.stop()
	case attribute.FLOAT64:
		e.text(1, 0, string(kv.Key))
		e.i32(2, 1, tagDouble)
		e.field(4, 2, thriftDouble, compactDouble)
		bits := math.Float64bits(kv.Value.AsFloat64())
		if e.compact {
			e.bytes = binary.LittleEndian.AppendUint64(e.bytes, bits)
		} else {
			e.bytes = binary.BigEndian.AppendUint64(e.bytes, bits)
		}
		e.stop()
	default:
		e.string(string(kv.Key), kv.Value.Emit())
	}
}
