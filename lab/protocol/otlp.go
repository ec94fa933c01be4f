package protocol

import (
	"google.golang.org/protobuf/encoding/protowire"

	"jaegerlab/lab/trace"
)

// Field numbers of opentelemetry-proto v1: collector/trace/v1/trace_service.proto, trace/v1/trace.proto,
// resource/v1/resource.proto, common/v1/common.proto.
const (
	otlpResourceSpans = 1 // ExportTraceServiceRequest.resource_spans

	otlpResource   = 1 // ResourceSpans.resource
	otlpScopeSpans = 2 // ResourceSpans.scope_spans
	otlpSpans      = 2 // ScopeSpans.spans

	otlpResourceAttributes = 1 // Resource.attributes

	otlpTraceID    = 1 // Span: bytes
	otlpSpanID     = 2
	otlpParentID   = 4
	otlpName       = 5
	otlpStart      = 7 // fixed64
	otlpEnd        = 8
	otlpAttributes = 9
	otlpEvents     = 11
	otlpStatus     = 15

	otlpEventTime = 1 // Event: fixed64
	otlpEventName = 2

	otlpStatusCode  = 3 // Status.code: enum
	otlpStatusError = 2

	otlpKey         = 1 // KeyValue.key
	otlpValue       = 2 // KeyValue.value
	otlpStringValue = 1 // AnyValue.string_value
)

// encodeOTLP encodes an ExportTraceServiceRequest with one resource and one scope without a
// name. Spans have no kind: then Jaeger stores the same tags whatever the protocol.
func encodeOTLP(content trace.Content, width int, first uint64, count int) *template {
	t := &template{format: otlpFormat, content: content, service: none}
	var spans []byte
	for i := range count {
		body, marks := otlpSpan(content, width, first+uint64(i))
		spans = protowire.AppendTag(spans, otlpSpans, protowire.BytesType)
		spans = protowire.AppendVarint(spans, uint64(len(body)))
		marks.shift(len(spans))
		t.marks = append(t.marks, marks)
		spans = append(spans, body...)
	}
	resource, service := otlpResourceOf(content)

	body := protowire.AppendTag(nil, otlpResource, protowire.BytesType)
	body = protowire.AppendVarint(body, uint64(len(resource)))
	if content.ServicesDiffer() {
		t.service = len(body) + service
	}
	body = append(body, resource...)
	body = protowire.AppendTag(body, otlpScopeSpans, protowire.BytesType)
	body = protowire.AppendVarint(body, uint64(len(spans)))
	t.shift(0, len(body))
	body = append(body, spans...)

	t.bytes = protowire.AppendTag(nil, otlpResourceSpans, protowire.BytesType)
	t.bytes = protowire.AppendVarint(t.bytes, uint64(len(body)))
	t.shift(len(t.bytes), len(t.bytes))
	t.bytes = append(t.bytes, body...)
	return t
}

// shift moves the place of the service and those of the spans, after something was put in front.
func (t *template) shift(service, spans int) {
	if t.service != none {
		t.service += service
	}
	for i := range t.marks {
		t.marks[i].shift(spans)
	}
}

func otlpSpan(content trace.Content, width int, index uint64) ([]byte, spanMarks) {
	m := marksOf(content, width, index)
	id := make([]byte, 16)
	b := protowire.AppendTag(nil, otlpTraceID, protowire.BytesType)
	b = protowire.AppendBytes(b, id)
	m.traceHigh, m.traceLow = int32(len(b)-16), int32(len(b)-8)
	b = protowire.AppendTag(b, otlpSpanID, protowire.BytesType)
	b = protowire.AppendBytes(b, id[:8])
	m.span = int32(len(b) - 8)
	if !m.root {
		b = protowire.AppendTag(b, otlpParentID, protowire.BytesType)
		b = protowire.AppendBytes(b, id[:8])
		m.parent = int32(len(b) - 8)
	}
	b = protowire.AppendTag(b, otlpName, protowire.BytesType)
	b = protowire.AppendString(b, content.Operation(0, index, int(index%uint64(width))))
	if content.OperationsDiffer() {
		m.varying.operation = int32(len(b) - trace.OperationDigits)
	}
	b, m.start = appendFixed64(b, otlpStart)
	b, m.end = appendFixed64(b, otlpEnd)
	for tag := range content.Tags {
		b = appendOTLPAttribute(b, otlpAttributes, trace.Tag{Key: trace.TagKey(tag), Value: content.Value(0, 0, tag)})
		if content.ValuesDiffer() {
			m.varying.values = append(m.varying.values, int32(len(b)-trace.ValueDigits))
		}
	}
	for event := range content.Events {
		body, at := appendFixed64(nil, otlpEventTime)
		body = protowire.AppendTag(body, otlpEventName, protowire.BytesType)
		body = protowire.AppendString(body, trace.EventName(event))
		b = protowire.AppendTag(b, otlpEvents, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(len(body)))
		m.varying.events = append(m.varying.events, int32(len(b))+at)
		b = append(b, body...)
	}
	if content.IsError(index) {
		body := protowire.AppendTag(nil, otlpStatusCode, protowire.VarintType)
		b = protowire.AppendTag(b, otlpStatus, protowire.BytesType)
		b = protowire.AppendBytes(b, protowire.AppendVarint(body, otlpStatusError))
	}
	return b, m
}

// appendFixed64 appends a zero and returns its place.
func appendFixed64(b []byte, field protowire.Number) (grown []byte, at int32) {
	b = protowire.AppendTag(b, field, protowire.Fixed64Type)
	return protowire.AppendFixed64(b, 0), int32(len(b))
}

// otlpResourceOf also returns the place of the service's digits, when there are several services.
func otlpResourceOf(content trace.Content) (resource []byte, service int) {
	name := trace.Tag{Key: "service.name", Value: content.Service(0, 0)}
	resource = appendOTLPAttribute(nil, otlpResourceAttributes, name)
	service = len(resource) - trace.ServiceDigits
	for _, tag := range content.Resource() {
		resource = appendOTLPAttribute(resource, otlpResourceAttributes, tag)
	}
	return resource, service
}

// appendOTLPAttribute appends a KeyValue; the string's bytes are the last ones.
func appendOTLPAttribute(b []byte, field protowire.Number, tag trace.Tag) []byte {
	value := protowire.AppendTag(nil, otlpStringValue, protowire.BytesType)
	value = protowire.AppendString(value, tag.Value)
	pair := protowire.AppendTag(nil, otlpKey, protowire.BytesType)
	pair = protowire.AppendString(pair, tag.Key)
	pair = protowire.AppendTag(pair, otlpValue, protowire.BytesType)
	pair = protowire.AppendBytes(pair, value)
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, pair)
}
