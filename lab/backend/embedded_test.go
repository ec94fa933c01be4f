package backend

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"jaegerlab/lab/internal/frame"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// queryServer answers GetTrace of Jaeger's gRPC query API as Jaeger does, for traces 0 to stored-1 of
// worker 0.
type queryServer struct {
	numbering trace.Numbering
	stored    uint64
	twice     uint64               // spans of this trace are there twice
	fail      func(call int) error // nil: none does

	calls   atomic.Int64
	adjusts atomic.Bool // a trace was not asked for raw
}

// serve starts the server and returns its host:port.
func (s *queryServer) serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(frame.Codec{}), grpc.UnknownServiceHandler(s.answer))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func (s *queryServer) answer(_ any, stream grpc.ServerStream) error {
	if method, _ := grpc.MethodFromServerStream(stream); method != getTrace {
		return status.Error(codes.Unimplemented, method)
	}
	call := int(s.calls.Add(1))
	var request frame.Frame
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if s.fail != nil {
		if err := s.fail(call); err != nil {
			return err
		}
	}
	var high, low uint64
	err := frame.Walk(request.Bytes, 1, func(text []byte) error {
		_, err := fmt.Sscanf(string(text), "%016x%016x", &high, &low)
		return err
	})
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if !bytes.HasSuffix(request.Bytes, []byte{4 << 3, 1}) { // raw_traces
		s.adjusts.Store(true)
	}
	seq := low & (1<<62 - 1)
	times := 0
	switch {
	case seq == s.twice:
		times = 2
	case seq < s.stored:
		times = 1
	}
	for range times { // a chunk of the stream each
		reply, err := proto.Marshal(s.traceOf(high, low, seq))
		if err != nil {
			return err
		}
		if err := stream.SendMsg(&frame.Frame{Bytes: reply}); err != nil {
			return err
		}
	}
	return nil
}

// traceOf is one trace as OTLP's own types write it.
func (s *queryServer) traceOf(high, low, seq uint64) *otlp.TracesData {
	traceID := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, high), low)
	scope := &otlp.ScopeSpans{SchemaUrl: "s"}
	for i := range uint64(s.numbering.Width) {
		id := s.numbering.SpanID(0, seq*uint64(s.numbering.Width)+i)
		scope.Spans = append(scope.Spans, &otlp.Span{TraceId: traceID, SpanId: binary.BigEndian.AppendUint64(nil, id), Name: "n"})
	}
	return &otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{ScopeSpans: []*otlp.ScopeSpans{scope}}}}
}

func askAll(s *queryServer, addr string, traces uint64) Ask {
	return Ask{QueryAddr: addr, Numbering: s.numbering,
		Traces: func(yield func(high, low uint64) bool) {
			for seq := range traces {
				if high, low := s.numbering.TraceID(trace.Measured, 0, seq); !yield(high, low) {
					return
				}
			}
		}}
}

func TestEmbeddedReadGoesByTraceIDs(t *testing.T) {
	s := &queryServer{numbering: trace.New(77, 10), stored: 900, twice: 5,
		fail: func(call int) error {
			if call == 3 {
				return status.Error(codes.Unavailable, "busy")
			}
			return nil
		}}
	addr := s.serve(t)
	store := embedded{engine: spec.Memory}.Store("x")
	seen := map[trace.ID]int{}
	result, err := store.Read(t.Context(), askAll(s, addr, 1000), func(r record.Row) error {
		seen[r.ID]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 900*11 {
		t.Errorf("%d spans read; want %d", len(seen), 900*11)
	}
	doubles := 0
	for id, n := range seen {
		ref, ours := s.numbering.Locate(id)
		if !ours {
			t.Fatalf("span %s is not of this run", id)
		}
		if n == 2 && ref.Index/11 == 5 {
			doubles++
		}
	}
	if doubles != 11 {
		t.Errorf("%d spans were seen twice; want the 11 of trace 5", doubles)
	}
	if s.adjusts.Load() {
		t.Error("traces were not asked for raw: adjusters drop duplicates")
	}
	if result.HasForeign || !result.HasDuplicates || result.HasWriteTime || result.AbsentUnknown ||
		result.Ranges.Read != result.Ranges.Asked || result.Ranges.Asked == 0 {
		t.Errorf("result = %+v", result)
	}
}

func TestEmbeddedReadCountsWhatItCouldNotAsk(t *testing.T) {
	s := &queryServer{numbering: trace.New(77, 10), stored: 1000, twice: 1 << 40,
		fail: func(int) error { return status.Error(codes.Internal, "broken") }}
	addr := s.serve(t)
	api := newQueryAPI(addr)
	api.pause = 1
	var result ReadResult
	traces, err := api.read(t.Context(), askAll(s, addr, 100), func(record.Row) error { return nil }, &result)
	if err != nil || traces != 100 {
		t.Fatalf("read() = %d, %v", traces, err)
	}
	if result.Ranges != (record.Ranges{Asked: 2}) || len(result.Failed) != 2 ||
		!strings.Contains(result.Failed[0], "broken") {
		t.Errorf("result = %+v", result)
	}
}

// A collector that has died is not waited for once a batch: thousands of batches would take minutes.
func TestEmbeddedReadSoonGivesUpOnACollectorThatIsGone(t *testing.T) {
	s := &queryServer{numbering: trace.New(77, 10), fail: func(int) error { return status.Error(codes.Unavailable, "gone") }}
	addr := s.serve(t)
	api := newQueryAPI(addr)
	api.pause = 1
	const batches = 100
	var result ReadResult
	_, err := api.read(t.Context(), askAll(s, addr, batches*(batchSpans/11)), func(record.Row) error { return nil }, &result)
	if err != nil || result.Ranges != (record.Ranges{Asked: batches}) {
		t.Fatalf("result = %+v, %v", result, err)
	}
	if most := int64(batches + queryReaders*(queryAttempts-1)); s.calls.Load() > most {
		t.Errorf("%d calls for %d batches, want at most %d", s.calls.Load(), batches, most)
	}
}

func TestEmbeddedReadEndsWithItsContext(t *testing.T) {
	s := &queryServer{numbering: trace.New(77, 10)}
	addr := s.serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store := embedded{engine: spec.Badger}.Store("x")
	if _, err := store.Read(ctx, askAll(s, addr, 1000), func(record.Row) error { return nil }); err == nil {
		t.Error("a cancelled read gives no error")
	}
}

func TestEmbeddedStores(t *testing.T) {
	badger, err := embedded{engine: spec.Badger}.Start(t.Context(), Env{}, anArm(spec.Badger, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	store := badger.Store("x")
	options := store.StorageV2(false)["badger"].(map[string]any)
	if options["ephemeral"] != false || options["directories"].(map[string]any)["keys"] != "${dir}/badger/keys" {
		t.Errorf("badger = %v", options)
	}
	if rows, err := store.Rows(t.Context()); rows != -1 || err != nil || store.NeedsSchema() {
		t.Errorf("Rows() = %d, %v", rows, err)
	}
	if _, err := (embedded{engine: spec.Memory}).Start(t.Context(), Env{}, anArm(spec.Memory, 0, 2)); err == nil {
		t.Error("two copies in one process are not refused")
	}
}

// An answer that is no OTLP, or whose ids have another length, is an error and never a row.
func TestAppendIDsRefusesWhatIsNoSpan(t *testing.T) {
	span := func(traceID, spanID []byte) []byte {
		data, err := proto.Marshal(&otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{ScopeSpans: []*otlp.ScopeSpans{
			{Spans: []*otlp.Span{{TraceId: traceID, SpanId: spanID}}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	id := trace.ID{High: 0x0102030405060708, Low: 0x090a0b0c0d0e0f10, Span: 0x1112131415161718}
	sixteen := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	eight := []byte{0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}
	rows, err := appendIDs(nil, span(sixteen, eight))
	if err != nil || len(rows) != 1 || rows[0] != (record.Row{ID: id}) {
		t.Errorf("appendIDs() = %v, %v", rows, err)
	}
	whole := span(sixteen, eight)
	for _, answer := range [][]byte{span(sixteen[:8], eight), span(nil, eight), span(sixteen, nil), whole[:len(whole)-1], {0xff}} {
		if _, err := appendIDs(nil, answer); err == nil {
			t.Errorf("answer % x gives no error", answer)
		}
	}
}

// Whatever OTLP's own types can decode has the same ids in the same order, or is refused.
func FuzzAppendIDs(f *testing.F) {
	whole, err := proto.Marshal((&queryServer{numbering: trace.New(77, 1)}).traceOf(1, 2, 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte{0x0a, 0x80})
	f.Fuzz(func(t *testing.T, body []byte) {
		rows, err := appendIDs(nil, body)
		var data otlp.TracesData
		if err != nil || proto.Unmarshal(body, &data) != nil {
			return
		}
		var want []record.Row
		for _, resource := range data.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					want = append(want, record.Row{ID: trace.ID{High: binary.BigEndian.Uint64(span.GetTraceId()),
						Low: binary.BigEndian.Uint64(span.GetTraceId()[8:]), Span: binary.BigEndian.Uint64(span.GetSpanId())}})
				}
			}
		}
		if !slices.Equal(rows, want) {
			t.Errorf("ids %v, OTLP's types say %v", rows, want)
		}
	})
}
