package load_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jaegerlab/lab/internal/need"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/solo"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// Goal: what every client sends is what a real Jaeger v2 has stored afterwards, field by field,
// through the receiver that the client itself describes. Method: a collector with the memory
// store and no queue, a few traces of several services with differing tags, read back by trace id.
func TestIntegrationJaegerStoresWhatTraceSays(t *testing.T) {
	for _, name := range protocol.Names() {
		t.Run(name, func(t *testing.T) {
			p, err := protocol.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			jaeger := realJaeger(t, p)
			config := protocol.Config{
				Numbering: trace.New(99, 10), Seed: 4, Worker: 3, Timeout: 30 * time.Second,
				Load: spec.Load{SpansCount: 10, TagsCount: 4, Services: 3, TagValues: 50, ResourceAttributes: 2,
					TracesPerRequest: 2, Operations: 20, Shape: "tree", TagLength: 40, ErrorPercent: 20, Events: 2, Gzip: true},
			}
			const traces = 6
			startUS := time.Now().UnixMicro()
			if sent := sendAll(t, p, jaeger.Target, config, traces, startUS); sent != traces*11 {
				t.Fatalf("sent %d spans of %d", sent, traces*11)
			}
			for seq := range uint64(traces) {
				var want []trace.Span
				for index := seq * 11; index < (seq+1)*11; index++ {
					ref := trace.Ref{Worker: 3, Index: index}
					want = append(want, config.Content().Span(config.Numbering, ref, startUS+int64(seq*11)))
				}
				high, low := config.Numbering.TraceID(trace.Measured, 3, seq)
				got := readTrace(t, jaeger, high, low)
				for deadline := time.Now().Add(5 * time.Second); p.UDP && len(got) < len(want) && time.Now().Before(deadline); {
					got = readTrace(t, jaeger, high, low) // nobody says when a packet was taken in
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("trace %d differs (-generated +stored):\n%s", seq, diff)
				}
			}
		})
	}
}

// realJaeger starts one with the client's receiver.
func realJaeger(t *testing.T, p protocol.Protocol) *solo.Jaeger {
	t.Helper()
	jaeger, err := solo.Start(t.Context(), need.Built(t, solo.Program), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := jaeger.Close(); err != nil {
			t.Error(err)
		}
	})
	return jaeger
}

func sendAll(t *testing.T, p protocol.Protocol, addr string, config protocol.Config, traces uint64, startUS int64,
) (sent int) {
	t.Helper()
	var mu sync.Mutex
	config.Report = func(o record.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		if o.Class != record.Acked && !(p.UDP && o.Class == record.NoReply) {
			t.Errorf("outcome %+v", o)
			return
		}
		sent += int(o.Spans)
	}
	client, err := p.Open(addr, config)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(0); seq < traces; seq += 2 {
		client.Send(t.Context(), protocol.Work{Seq: seq, StartUS: startUS + int64(seq*11)})
	}
	client.Close(t.Context())
	return sent
}

// readTrace gives what is stored of a trace as package trace would describe it.
func readTrace(t *testing.T, jaeger *solo.Jaeger, high, low uint64) (spans []trace.Span) {
	t.Helper()
	stored, err := jaeger.Trace(t.Context(), high, low)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stored {
		span := trace.Span{ID: s.ID, Parent: s.Parent, Service: s.Service, Operation: s.Operation,
			StartUS: s.StartUS, DurationUS: s.DurationUS, Tags: tags(s.Tags, "tag-"), Resource: tags(s.Process, "resource-")}
		for _, tag := range s.Tags {
			if !strings.HasPrefix(tag.Key, "tag-") && tag.Key != "error" && tag.Key != "otel.status_code" {
				t.Errorf("tag %+v was never sent", tag)
			}
			span.Error = span.Error || tag == trace.Tag{Key: "error", Value: "true"}
		}
		for _, log := range s.Logs {
			for _, field := range log.Fields {
				span.Events = append(span.Events, trace.Event{TimeUS: log.TimeUS, Name: field.Value})
			}
		}
		spans = append(spans, span)
	}
	return spans
}

// tags keeps those whose key begins so; jaeger-client-go adds process tags of its own.
func tags(all []trace.Tag, prefix string) (kept []trace.Tag) {
	for _, tag := range all {
		if strings.HasPrefix(tag.Key, prefix) {
			kept = append(kept, tag)
		}
	}
	return kept
}
