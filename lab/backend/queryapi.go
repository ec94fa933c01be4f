package backend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"jaegerlab/lab/internal/frame"
	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

const (
	getTrace      = "/jaeger.api_v3.QueryService/GetTrace"
	batchSpans    = 1024 // spans that are read or not read together, about
	queryReaders  = 16   // enough to keep Jaeger's cores busy: a trace is one short call
	queryAttempts = 4
	batchTimeout  = time.Minute
	answerBytes   = 256 << 20 // of one message: a whole trace
)

// queryAPI reads spans through Jaeger's gRPC query API (v3), raw: without the adjusters, which drop
// duplicates. Of the answers, OTLP like what was sent, only ids are taken out. The HTTP API would
// turn every span into JSON for a browser first, which takes longer than storing it did.
type queryAPI struct {
	addr  string
	pause time.Duration // before the second attempt; doubles
	gone  atomic.Bool   // a batch found nobody there, in all its attempts: the others ask once
}

func newQueryAPI(addr string) *queryAPI { return &queryAPI{addr: addr, pause: firstPause} }

type traceKey struct{ high, low uint64 }

// read asks for every trace of ask and passes what is stored to sink. A batch of traces takes
// the place of a token range. It returns how many traces were asked for.
func (q *queryAPI) read(ctx context.Context, ask Ask, sink func(record.Row) error, result *ReadResult) (int, error) {
	conn, err := grpc.NewClient("passthrough:///"+q.addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(frame.Codec{}), grpc.MaxCallRecvMsgSize(answerBytes)))
	if err != nil {
		return 0, fmt.Errorf("open a gRPC connection to the query API at %s: %w", q.addr, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan []traceKey)
	tally := tally{sink: sink}
	var readers sync.WaitGroup
	for range queryReaders {
		readers.Go(func() {
			var rows []record.Row
			for batch := range work {
				var err error
				if rows, err = q.attempt(ctx, conn, batch, rows[:0]); err != nil {
					tally.failed(fmt.Sprintf("%d traces from %016x%016x", len(batch), batch[0].high, batch[0].low), err)
				} else if err := tally.pass(rows); err != nil {
					cancel(err)
				}
			}
		})
	}
	traces, batches := 0, 0
	size := max(batchSpans/max(ask.Numbering.Width, 1), 1)
	batch := make([]traceKey, 0, size)
	send := func() {
		if len(batch) == 0 {
			return
		}
		batches++
		select {
		case work <- batch:
		case <-ctx.Done():
		}
		batch = make([]traceKey, 0, size)
	}
	ask.Traces(func(high, low uint64) bool {
		traces++
		if batch = append(batch, traceKey{high, low}); len(batch) == size {
			send()
		}
		return ctx.Err() == nil
	})
	send()
	close(work)
	readers.Wait()
	result.Ranges = record.Ranges{Asked: batches, Read: tally.read}
	result.Failed = tally.texts()
	return traces, context.Cause(ctx)
}

// attempt reads a batch of traces, all of it or an error.
func (q *queryAPI) attempt(ctx context.Context, conn *grpc.ClientConn, batch []traceKey, rows []record.Row) ([]record.Row, error) {
	attempts := queryAttempts
	if q.gone.Load() {
		attempts = 1
	}
	rows, err := again(ctx, attempts, q.pause, func(int) ([]record.Row, error) {
		ctx, cancel := context.WithTimeout(ctx, batchTimeout)
		defer cancel()
		rows := rows[:0]
		for _, key := range batch {
			var err error
			if rows, err = readTrace(ctx, conn, key, rows); err != nil {
				return rows, err
			}
		}
		return rows, nil
	}, never)
	q.gone.Store(status.Code(err) == codes.Unavailable)
	if err != nil {
		return rows, fmt.Errorf("ask the query API at %s: %w", q.addr, err)
	}
	return rows, nil
}

// readTrace asks for one trace and appends its spans to rows. A trace that is not there is an answer
// without spans, or a version's plain NotFound.
func readTrace(ctx context.Context, conn *grpc.ClientConn, key traceKey, rows []record.Row) ([]record.Row, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, getTrace)
	if err != nil {
		return rows, err
	}
	if err := stream.SendMsg(&frame.Frame{Bytes: traceRequest(key)}); err != nil {
		return rows, err
	}
	if err := stream.CloseSend(); err != nil {
		return rows, err
	}
	var answer frame.Frame
	for {
		if err := stream.RecvMsg(&answer); errors.Is(err, io.EOF) || status.Code(err) == codes.NotFound {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		if rows, err = appendIDs(rows, answer.Bytes); err != nil {
			return rows, fmt.Errorf("read trace %016x%016x: %w", key.high, key.low, err)
		}
	}
}

// traceRequest is a jaeger.api_v3.GetTraceRequest: 1 trace_id, 4 raw_traces.
func traceRequest(key traceKey) []byte {
	request := protowire.AppendTag(nil, 1, protowire.BytesType)
	request = protowire.AppendString(request, fmt.Sprintf("%016x%016x", key.high, key.low))
	request = protowire.AppendTag(request, 4, protowire.VarintType)
	return protowire.AppendVarint(request, 1)
}

// appendIDs takes the ids out of an OTLP TracesData: 1 resource_spans, 2 scope_spans, 2 spans, and
// of each span 1 trace_id and 2 span_id.
func appendIDs(rows []record.Row, answer []byte) ([]record.Row, error) {
	err := frame.Walk(answer, 1, func(resourceSpans []byte) error {
		return frame.Walk(resourceSpans, 2, func(scopeSpans []byte) error {
			return frame.Walk(scopeSpans, 2, func(span []byte) error {
				id, err := spanIDs(span)
				rows = append(rows, record.Row{ID: id})
				return err
			})
		})
	})
	return rows, err
}

func spanIDs(span []byte) (id trace.ID, err error) {
	var traceID, spanID []byte
	err = errors.Join(
		frame.Walk(span, 1, func(value []byte) error { traceID = value; return nil }),
		frame.Walk(span, 2, func(value []byte) error { spanID = value; return nil }))
	if err == nil && (len(traceID) != 16 || len(spanID) != 8) {
		err = fmt.Errorf("a span has a trace id of %d bytes and a span id of %d; OTLP has 16 and 8", len(traceID), len(spanID))
	}
	if err != nil {
		return trace.ID{}, err
	}
	return trace.ID{High: binary.BigEndian.Uint64(traceID), Low: binary.BigEndian.Uint64(traceID[8:]),
		Span: binary.BigEndian.Uint64(spanID)}, nil
}
