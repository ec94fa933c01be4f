package sink

import "google.golang.org/protobuf/encoding/protowire"

// countSpans counts the spans of an ExportTraceServiceRequest by walking over lengths: nothing
// is decoded. What is no such request counts as far as it can be walked.
func countSpans(request []byte) (spans int64) {
	each(request, 1, func(resourceSpans []byte) {
		each(resourceSpans, 2, func(scopeSpans []byte) {
			each(scopeSpans, 2, func([]byte) { spans++ })
		})
	})
	return spans
}

// each calls see for every length-delimited field of this number.
func each(message []byte, field protowire.Number, see func([]byte)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return
		}
		if number == field {
			see(value)
		}
		message = message[n:]
	}
}
