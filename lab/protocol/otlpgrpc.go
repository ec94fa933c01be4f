package protocol

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"jaegerlab/lab/internal/frame"
)

// otlpGRPC is the default client: OTLP over gRPC, one connection a worker, as ten programs would
// have, so that no worker waits for another's HTTP/2 window.
func otlpGRPC() Protocol {
	w := wire{client: "otlp-grpc", encode: encodeOTLP, maxBytes: MaxRequestBytes, maxSpans: MaxRequestSpans}
	return Protocol{
		Name: w.client,
		Port: "otlp-grpc",
		ReceiverV2: map[string]any{"otlp": map[string]any{"protocols": map[string]any{
			"grpc": map[string]any{"endpoint": "${ip}:${port.otlp-grpc}"},
		}}},
		RetryRule: RetryRule,
		Open: func(addr string, config Config) (Client, error) {
			return openSender(w, config, func() (transport, error) { return dialGRPC(addr) })
		},
	}
}

const exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// grpcTransport calls Export with bytes. grpc-go's own retries are off: the lab's are counted.
type grpcTransport struct {
	conn    *grpc.ClientConn
	request frame.Frame
	reply   frame.Frame
}

func dialGRPC(addr string) (transport, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(frame.Codec{})),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithStatsHandler(watch{}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstBackoff, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: maxBackoff,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("open a gRPC connection to %s: %w", addr, err)
	}
	conn.Connect()
	return &grpcTransport{conn: conn}, nil
}

func (g *grpcTransport) close() { _ = g.conn.Close() }

func (g *grpcTransport) attempt(ctx context.Context, body []byte, spans int) answer {
	var seen sight
	g.request.Bytes, g.reply.Bytes = body, g.reply.Bytes[:0]
	err := g.conn.Invoke(context.WithValue(ctx, sightKey{}, &seen), exportMethod, &g.request, &g.reply)
	if err == nil {
		return judgeExport(g.reply.Bytes, spans)
	}
	return judgeStatus(status.Convert(err), seen.sent.Load(), seen.answered.Load())
}

// judgeExport reads an OK answer: an empty one says that all spans were taken.
func judgeExport(reply []byte, spans int) answer {
	if len(reply) == 0 {
		return answer{verdict: taken, heard: true}
	}
	var response collector.ExportTraceServiceResponse
	if err := proto.Unmarshal(reply, &response); err != nil {
		return answer{verdict: unknown, heard: true, code: reason("OK with an answer that is not OTLP", err.Error())}
	}
	rejected, message := response.GetPartialSuccess().GetRejectedSpans(), response.GetPartialSuccess().GetErrorMessage()
	switch {
	case rejected <= 0:
		return answer{verdict: taken, heard: true}
	case rejected >= int64(spans):
		return answer{verdict: refused, heard: true, code: reason("all spans rejected", message)}
	default:
		return answer{verdict: partial, heard: true,
			code: reason(fmt.Sprintf("partial success: %d of %d spans rejected", rejected, spans), message)}
	}
}

// judgeStatus judges a status. grpc-go makes up a status itself when there is no answer, so what
// was seen on the wire decides: a status that the receiver sent says no, one that it did not
// send says nothing, and a request without a connection was never sent.
func judgeStatus(s *status.Status, sent, answered bool) answer {
	a := answer{verdict: unknown, heard: answered, code: reason(codeName(s.Code()), s.Message())}
	a.wait = retryInfo(s)
	switch s.Code() {
	case codes.Unavailable, codes.Aborted, codes.OutOfRange, codes.DataLoss:
		a.retry = true
	case codes.Canceled, codes.DeadlineExceeded:
		a.retry = true
		answered = false // the receiver gave up in the middle: it may have it
	case codes.ResourceExhausted:
		a.retry = a.wait > 0
	}
	switch {
	case answered:
		a.verdict = refused
	case !sent:
		a.verdict, a.code = unreached, reason("unreachable", s.Message())
	case !a.heard && s.Code() == codes.Unavailable:
		a.code = reason("connection lost before the answer", s.Message())
	}
	return a
}

func retryInfo(s *status.Status) time.Duration {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return max(info.GetRetryDelay().AsDuration(), time.Millisecond)
		}
	}
	return 0
}

// codeName spells a code as the gRPC and OTLP specifications do.
func codeName(c codes.Code) string {
	names := [...]string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
	if int(c) < len(names) {
		return names[c]
	}
	return c.String()
}

// sight is what was seen of one attempt on the wire.
type sight struct {
	sent     atomic.Bool // the request's headers left: its body may have, too
	answered atomic.Bool // the receiver's own status came
}

type sightKey struct{}

// watch notes in the attempt's sight what grpc-go reports of it.
type watch struct{}

func (watch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (watch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (watch) HandleConn(context.Context, stats.ConnStats)                       {}

func (watch) HandleRPC(ctx context.Context, event stats.RPCStats) {
	seen, ok := ctx.Value(sightKey{}).(*sight)
	if !ok {
		return
	}
	switch event.(type) {
	case *stats.OutHeader:
		seen.sent.Store(true)
	case *stats.InTrailer:
		seen.answered.Store(true)
	}
}
