package protocol

import (
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// otlpHTTP posts OTLP as protobuf: the same bytes as otlp-grpc, one kept-alive connection a worker.
func otlpHTTP() Protocol {
	w := wire{client: "otlp-http", encode: encodeOTLP, maxBytes: MaxRequestBytes, maxSpans: MaxRequestSpans}
	return Protocol{
		Name: w.client,
		Port: "otlp-http",
		ReceiverV2: map[string]any{"otlp": map[string]any{"protocols": map[string]any{
			"http": map[string]any{"endpoint": "${ip}:${port.otlp-http}"},
		}}},
		RetryRule: RetryRule,
		Open: func(addr string, config Config) (Client, error) {
			return openSender(w, config, func() (transport, error) {
				h := newHTTPTransport("http://"+addr+"/v1/traces", protobufType)
				h.judge, h.gzip = judgeOTLPHTTP, config.Load.Gzip
				return h, nil
			})
		},
	}
}

const protobufType = "application/x-protobuf"

// judgeOTLPHTTP reads an answer as OTLP/HTTP has it: 2xx with an ExportTraceServiceResponse, which
// may say that spans were rejected, anything else with a google.rpc.Status.
func judgeOTLPHTTP(code int, header http.Header, body []byte, spans int) answer {
	isProtobuf := strings.HasPrefix(header.Get("Content-Type"), protobufType)
	if code >= 200 && code <= 299 {
		if !isProtobuf && len(body) > 0 {
			return answer{verdict: taken, heard: true} // no word of rejected spans that could be read
		}
		return judgeExport(body, spans)
	}
	text := string(body)
	if isProtobuf {
		var said status.Status
		text = ""
		if err := proto.Unmarshal(body, &said); err == nil {
			text = said.GetMessage()
		}
	}
	return judgeHTTP(code, header, text)
}

// judgeThriftHTTP reads an answer of Jaeger's thrift receiver: the status says it all.
func judgeThriftHTTP(code int, header http.Header, body []byte, _ int) answer {
	return judgeHTTP(code, header, string(body[:min(len(body), maxReason)]))
}

// judgeHTTP judges an answer: 2xx took it, nothing else did; 504 says that somebody behind the
// answering one may have.
func judgeHTTP(code int, header http.Header, text string) answer {
	if code >= 200 && code <= 299 {
		return answer{verdict: taken, heard: true}
	}
	a := answer{verdict: refused, heard: true, code: reason(fmt.Sprintf("HTTP %d", code), text)}
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		a.retry, a.wait = true, retryAfter(header.Get("Retry-After"))
	}
	if code == http.StatusBadGateway || code == http.StatusGatewayTimeout {
		a.verdict = unknown
	}
	return a
}
