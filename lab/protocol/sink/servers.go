package sink

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"sync"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"jaegerlab/lab/internal/frame"
)

// openOTLP starts a gRPC server that takes any unary call; requests are at most gRPC's own default
// of 4 MiB, as in a collector.
func (s *Sink) openOTLP() error {
	s.count = countSpans
	if err := s.listen(); err != nil {
		return err
	}
	var frames sync.Pool
	server := grpc.NewServer(grpc.ForceServerCodecV2(frame.Codec{}), grpc.WaitForHandlers(true),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			request, ok := frames.Get().(*frame.Frame)
			if !ok || s.Keep {
				request = &frame.Frame{}
			}
			defer frames.Put(request)
			if err := stream.RecvMsg(request); err != nil {
				return err
			}
			return s.answerGRPC(stream, request.Bytes)
		}))
	s.server = grpcCloser{server}
	go func() { defer close(s.done); _ = server.Serve(s.listener) }()
	return nil
}

func (s *Sink) answerGRPC(stream grpc.ServerStream, body []byte) error {
	reply, alive := s.take(body)
	if !alive {
		return status.Error(codes.Unavailable, "the sink is closing")
	}
	if reply.Reset {
		if client, ok := peer.FromContext(stream.Context()); ok {
			s.listener.reset(client.Addr.String())
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	if reply.Code != 0 {
		answer := status.New(codes.Code(reply.Code), reply.Message)
		if reply.RetryAfter > 0 {
			detailed, err := answer.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(reply.RetryAfter)})
			if err != nil {
				return fmt.Errorf("attach RetryInfo: %w", err)
			}
			answer = detailed
		}
		return answer.Err()
	}
	var answer frame.Frame
	if reply.Rejected > 0 || reply.Message != "" {
		encoded, err := proto.Marshal(partialSuccess(reply))
		if err != nil {
			return fmt.Errorf("encode a partial success: %w", err)
		}
		answer.Bytes = encoded
	}
	return stream.SendMsg(&answer)
}

// openThriftHTTP starts an HTTP server that takes any POST, as Jaeger's thrift receiver does: 202.
func (s *Sink) openThriftHTTP() error { return s.serveHTTP(s.answerHTTP, countThrift) }

// openOTLPHTTP starts an HTTP server that takes any POST and answers as OTLP over HTTP does. Bodies
// may be compressed by gzip; then the sink sees them so.
func (s *Sink) openOTLPHTTP() error { return s.serveHTTP(s.answerOTLPHTTP, countSpans) }

func (s *Sink) serveHTTP(answer func(http.ResponseWriter, *http.Request, []byte), count func([]byte) int64) error {
	s.count = count
	if err := s.listen(); err != nil {
		return err
	}
	var buffers sync.Pool
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buffer, ok := buffers.Get().(*bytes.Buffer)
		if !ok || s.Keep {
			buffer = &bytes.Buffer{}
		}
		defer buffers.Put(buffer)
		buffer.Reset()
		if _, err := io.Copy(buffer, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, r, buffer.Bytes())
	})}
	s.server = httpCloser{server}
	go func() { defer close(s.done); _ = server.Serve(s.listener) }()
	return nil
}

func (s *Sink) answerHTTP(w http.ResponseWriter, r *http.Request, body []byte) {
	reply, answered := s.replyHTTP(w, r, body)
	if !answered {
		return
	}
	if reply.Status == 0 {
		reply.Status = http.StatusAccepted
	}
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, reply.Message)
}

// replyHTTP decides about a request; false = there is nothing left to answer.
func (s *Sink) replyHTTP(w http.ResponseWriter, r *http.Request, body []byte) (Reply, bool) {
	reply, alive := s.take(body)
	switch {
	case reply.Reset:
		s.listener.reset(r.RemoteAddr)
		return reply, false
	case !alive:
		http.Error(w, "the sink is closing", http.StatusServiceUnavailable)
		return reply, false
	}
	if reply.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprintf("%.0f", reply.RetryAfter.Seconds()))
	}
	return reply, true
}

func (s *Sink) answerOTLPHTTP(w http.ResponseWriter, r *http.Request, body []byte) {
	reply, answered := s.replyHTTP(w, r, body)
	if !answered {
		return
	}
	var message proto.Message
	switch {
	case reply.Status >= http.StatusBadRequest:
		message = &rpcstatus.Status{Message: reply.Message}
	case reply.Rejected > 0 || reply.Message != "":
		message = partialSuccess(reply)
	}
	encoded, _ := proto.Marshal(message) // of nothing is nothing
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(cmp.Or(reply.Status, http.StatusOK))
	_, _ = w.Write(encoded)
}

func partialSuccess(reply Reply) proto.Message {
	return &collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{
		RejectedSpans: reply.Rejected, ErrorMessage: reply.Message}}
}
