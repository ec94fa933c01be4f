package sink

import "jaegerlab/lab/internal/frame"

// countSpans counts the spans of an ExportTraceServiceRequest by walking over lengths: nothing
// is decoded. What is no such request counts as far as it can be walked.
func countSpans(request []byte) (spans int64) {
	_ = frame.Walk(request, 1, func(resourceSpans []byte) error {
		return frame.Walk(resourceSpans, 2, func(scopeSpans []byte) error {
			return frame.Walk(scopeSpans, 2, func([]byte) error { spans++; return nil })
		})
	})
	return spans
}
