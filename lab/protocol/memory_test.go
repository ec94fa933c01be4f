package protocol_test

import (
	"runtime"
	"testing"
	"time"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/protocol/sink"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// sending opens a client on a black hole of its own and returns what sends the next batch.
func sending(t *testing.T, client string) func() {
	t.Helper()
	p, err := protocol.Get(client)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Open(start(t, client, &sink.Sink{}), protocol.Config{
		Numbering: trace.New(42, children), Timeout: 30 * time.Second, Report: func(record.Outcome) {},
		Load: spec.Load{SpansCount: children, TagsCount: 10, Services: 3, TagValues: 100, Events: 1, TracesPerRequest: 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(t.Context()) })
	seq := uint64(0)
	return func() {
		c.Send(t.Context(), protocol.Work{Seq: seq, StartUS: int64(1_000_000 + seq*width)})
		seq += 4
	}
}

// Goal: memory does not grow with how long a client sends: after ten times as many requests the
// heap in use is the same, for every client that encodes once.
func TestMemoryIsFlat(t *testing.T) {
	inUse := func() int64 {
		runtime.GC()
		runtime.GC() // what finalizers let go
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, client := range []string{"otlp-grpc", "otlp-http", "thrift-http", "thrift-udp"} {
		send := sending(t, client)
		for range 300 {
			send()
		}
		before := inUse()
		for range 3000 {
			send()
		}
		if grown := inUse() - before; grown > 256<<10 {
			t.Errorf("%s: the heap in use grew by %d bytes over 3000 requests", client, grown)
		}
	}
}
