package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// queryServer answers /api/traces as Jaeger does, for traces 0 to stored-1 of worker 0.
type queryServer struct {
	numbering trace.Numbering
	stored    uint64
	twice     uint64 // spans of this trace are there twice
	fail      func(batch int) (status int, message string)

	mu      sync.Mutex
	batches int
	raw     bool
}

func (s *queryServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.batches++
	batch := s.batches
	s.raw = r.FormValue("raw") == "true"
	s.mu.Unlock()
	if s.fail != nil {
		if status, message := s.fail(batch); status != 0 {
			http.Error(w, message, status)
			return
		}
	}
	type storedTrace struct {
		Spans []map[string]string `json:"spans"`
	}
	var answer struct {
		Data   []storedTrace       `json:"data"`
		Errors []map[string]string `json:"errors"`
	}
	for _, text := range r.Form["traceID"] {
		var high, low uint64
		if _, err := fmt.Sscanf(text, "%016x%016x", &high, &low); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		seq := low & (1<<62 - 1)
		if seq >= s.stored {
			answer.Errors = append(answer.Errors, map[string]string{"msg": "trace not found", "traceID": text})
			continue
		}
		var one storedTrace
		times := 1
		if seq == s.twice {
			times = 2
		}
		for range times {
			for i := range uint64(s.numbering.Width) {
				id := s.numbering.SpanID(0, seq*uint64(s.numbering.Width)+i)
				one.Spans = append(one.Spans, map[string]string{"traceID": text, "spanID": fmt.Sprintf("%016x", id)})
			}
		}
		answer.Data = append(answer.Data, one)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func askAll(s *queryServer, url string, traces uint64) Ask {
	return Ask{QueryAddr: strings.TrimPrefix(url, "http://"), Numbering: s.numbering,
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
		fail: func(batch int) (int, string) {
			if batch == 3 {
				return http.StatusInternalServerError, "busy"
			}
			return 0, ""
		}}
	server := httptest.NewServer(s)
	defer server.Close()
	store := embedded{engine: spec.Memory}.Store("x")
	seen := map[trace.ID]int{}
	result, err := store.Read(t.Context(), askAll(s, server.URL, 1000), func(r record.Row) error {
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
	if !s.raw {
		t.Error("traces were not asked for raw: adjusters drop duplicates")
	}
	if result.HasForeign || !result.HasDuplicates || result.HasWriteTime || result.AbsentUnknown ||
		result.Ranges.Read != result.Ranges.Asked || result.Ranges.Asked == 0 {
		t.Errorf("result = %+v", result)
	}
}

func TestEmbeddedReadCountsWhatItCouldNotAsk(t *testing.T) {
	s := &queryServer{numbering: trace.New(77, 10), stored: 1000, twice: 1 << 40,
		fail: func(int) (int, string) { return http.StatusInternalServerError, "broken" }}
	server := httptest.NewServer(s)
	defer server.Close()
	api := newQueryAPI(strings.TrimPrefix(server.URL, "http://"))
	api.pause = 1
	var result ReadResult
	traces, err := api.read(t.Context(), askAll(s, server.URL, 100), func(record.Row) error { return nil }, &result)
	if err != nil || traces != 100 {
		t.Fatalf("read() = %d, %v", traces, err)
	}
	if result.Ranges != (record.Ranges{Asked: 3}) || len(result.Failed) != 3 ||
		!strings.Contains(result.Failed[0], "broken") {
		t.Errorf("result = %+v", result)
	}
}

func TestEmbeddedReadEndsWithItsContext(t *testing.T) {
	s := &queryServer{numbering: trace.New(77, 10)}
	server := httptest.NewServer(s)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store := embedded{engine: spec.Badger}.Store("x")
	if _, err := store.Read(ctx, askAll(s, server.URL, 1000), func(record.Row) error { return nil }); err == nil {
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

func TestParseID(t *testing.T) {
	for _, c := range []struct {
		traceID, spanID string
		want            trace.ID
		fails           bool
	}{
		{"4000000000000001400000000000000a", "4000000000000002",
			trace.ID{High: 0x4000000000000001, Low: 0x400000000000000a, Span: 0x4000000000000002}, false},
		{"1400000000000000a", "2", trace.ID{High: 1, Low: 0x400000000000000a, Span: 2}, false},
		{"a", "2", trace.ID{Low: 10, Span: 2}, false},
		{"", "2", trace.ID{}, true}, {"a", "", trace.ID{}, true}, {"xyz", "2", trace.ID{}, true},
	} {
		got, err := parseID(c.traceID, c.spanID)
		if (err != nil) != c.fails || got != c.want {
			t.Errorf("parseID(%q, %q) = %v, %v", c.traceID, c.spanID, got, err)
		}
	}
}
