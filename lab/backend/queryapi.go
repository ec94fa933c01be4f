package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

const (
	batchSpans    = 512 // spans asked for in one request, about
	batchMost     = 64  // traces in one request: bounds the length of its address
	queryReaders  = 4
	queryAttempts = 4
	batchTimeout  = time.Minute
	notFound      = "trace not found" // spanstore.ErrTraceNotFound, which a batch reports per trace
	farFuture     = int64(4_102_444_800_000_000)
)

// queryAPI reads spans through Jaeger's HTTP query API, raw: without the adjusters, which drop
// duplicates.
type queryAPI struct {
	addr   string
	client *http.Client
	pause  time.Duration // before the second attempt; doubles
}

func newQueryAPI(addr string) queryAPI {
	transport := &http.Transport{MaxIdleConnsPerHost: queryReaders}
	return queryAPI{addr: addr, client: &http.Client{Transport: transport, Timeout: batchTimeout}, pause: firstPause}
}

type traceKey struct{ high, low uint64 }

// read asks for every trace of ask and passes what is stored to sink. A batch of traces takes
// the place of a token range. It returns how many traces were asked for.
func (q queryAPI) read(ctx context.Context, ask Ask, sink func(record.Row) error, result *ReadResult) (int, error) {
	defer q.client.CloseIdleConnections()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan []traceKey)
	tally := tally{sink: sink}
	var readers sync.WaitGroup
	for range queryReaders {
		readers.Go(func() {
			for batch := range work {
				rows, err := q.attempt(ctx, batch)
				if err != nil {
					tally.failed(fmt.Sprintf("%d traces from %016x%016x", len(batch), batch[0].high, batch[0].low), err)
				} else if err := tally.pass(rows); err != nil {
					cancel(err)
				}
			}
		})
	}
	traces, batches := 0, 0
	size := min(max(batchSpans/max(ask.Numbering.Width, 1), 1), batchMost)
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

func (q queryAPI) attempt(ctx context.Context, batch []traceKey) ([]record.Row, error) {
	return again(ctx, queryAttempts, q.pause, func(int) ([]record.Row, error) { return q.ask(ctx, batch) }, never)
}

// ask makes one request for a batch of traces.
func (q queryAPI) ask(ctx context.Context, batch []traceKey) ([]record.Row, error) {
	query := url.Values{"raw": {"true"}, "start": {"1"}, "end": {strconv.FormatInt(farFuture, 10)}}
	for _, key := range batch {
		query.Add("traceID", fmt.Sprintf("%016x%016x", key.high, key.low))
	}
	address := "http://" + q.addr + "/api/traces?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the query API at %s: %w", q.addr, err)
	}
	response, err := q.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the query API at %s: %w", q.addr, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300)) // best effort: it only explains
		return nil, fmt.Errorf("ask the query API at %s: status %s: %s", q.addr, response.Status, text)
	}
	rows, err := decodeTraces(response.Body)
	if err != nil {
		return nil, fmt.Errorf("ask the query API at %s: %w", q.addr, err)
	}
	return rows, nil
}

// decodeTraces reads span identities from an answer of /api/traces.
func decodeTraces(r io.Reader) ([]record.Row, error) {
	var answer struct {
		Data []struct {
			Spans []struct {
				TraceID string `json:"traceID"`
				SpanID  string `json:"spanID"`
			} `json:"spans"`
		} `json:"data"`
		Errors []struct {
			Msg     string `json:"msg"`
			TraceID string `json:"traceID"`
		} `json:"errors"`
	}
	if err := json.NewDecoder(r).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read its answer: %w", err)
	}
	for _, e := range answer.Errors {
		if !strings.Contains(e.Msg, notFound) {
			return nil, fmt.Errorf("it could not read trace %s: %s", e.TraceID, e.Msg)
		}
	}
	var rows []record.Row
	for _, t := range answer.Data {
		for _, span := range t.Spans {
			id, err := parseID(span.TraceID, span.SpanID)
			if err != nil {
				return nil, fmt.Errorf("read its answer: %w", err)
			}
			rows = append(rows, record.Row{ID: id})
		}
	}
	return rows, nil
}

// parseID reads ids as Jaeger prints them: hexadecimal, leading zeros of the whole may be missing.
func parseID(traceID, spanID string) (trace.ID, error) {
	var id trace.ID
	high, low := "", traceID
	if cut := len(traceID) - 16; cut > 0 {
		high, low = traceID[:cut], traceID[cut:]
	}
	for _, word := range []struct {
		text string
		into *uint64
	}{{high, &id.High}, {low, &id.Low}, {spanID, &id.Span}} {
		if word.text == "" && word.into == &id.High {
			continue
		}
		n, err := strconv.ParseUint(word.text, 16, 64)
		if err != nil {
			return trace.ID{}, fmt.Errorf("span %q of trace %q has no id of this kind: %w", spanID, traceID, err)
		}
		*word.into = n
	}
	return id, nil
}
