package protocol_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/protocol/sink"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// A packet to a closed port leaves, and the kernel's word of it comes with the next one: that one
// was not sent.
func TestClosedPortShowsInTheNextPacket(t *testing.T) {
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := socket.LocalAddr().String()
	socket.Close()
	c, l := open(t, "thrift-udp", addr, time.Second)
	for seq := range uint64(2) {
		c.Send(t.Context(), protocol.Work{Seq: seq, StartUS: 1000})
	}
	totals := c.Close(t.Context())
	if len(l.outcomes) != 2 || l.outcomes[0].Class != record.NoReply || l.outcomes[1].Class != record.Refused ||
		!strings.Contains(l.outcomes[1].Code, "connection refused") || totals.SocketErrors != 0 {
		t.Errorf("outcomes %+v, totals %+v: want no reply, then refused", l.outcomes, totals)
	}
}

// Case 10: a batch that grows past a packet's limit is split, and every packet arrives below it.
func TestPacketsStayBelowTheirLimit(t *testing.T) {
	largest := 0
	s := &sink.Sink{Answer: func(_ int64, body []byte) sink.Reply {
		largest = max(largest, len(body))
		return sink.Reply{}
	}}
	addr := start(t, "thrift-udp", s)
	p, err := protocol.Get("thrift-udp")
	if err != nil {
		t.Fatal(err)
	}
	var l ledger
	c, err := p.Open(addr, protocol.Config{Numbering: trace.New(42, children), Timeout: time.Second, Report: l.report,
		Load: spec.Load{TagsCount: 10, TracesPerRequest: 60}})
	if err != nil {
		t.Fatal(err)
	}
	c.Send(t.Context(), protocol.Work{Seq: 0, StartUS: time.Now().UnixMicro()})
	totals := c.Close(t.Context())
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.Requests() < totals.Requests {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d of %d packets arrived", s.Requests(), totals.Requests)
		}
	}
	s.Close()
	if l.spans(record.NoReply) != 60*width || totals.Requests < 2 || largest > protocol.MaxPacketBytes {
		t.Errorf("%d spans sent in %d packets of at most %d bytes", l.spans(record.NoReply), totals.Requests, largest)
	}
}

// Case 10: a span that no packet holds is refused by name, with its size.
func TestSpanLargerThanAPacketIsRefused(t *testing.T) {
	p, err := protocol.Get("thrift-udp")
	if err != nil {
		t.Fatal(err)
	}
	load := spec.Load{TagsCount: 1, TagLength: 70_000}
	_, err = p.Open("127.0.0.1:1", protocol.Config{Numbering: trace.New(1, 10), Load: load})
	if err == nil || !strings.Contains(err.Error(), "thrift-udp") || !strings.Contains(err.Error(), "a request of 7") ||
		!strings.Contains(err.Error(), "LAB_TAG_LENGTH") {
		t.Errorf("%v, want one that names the client, the size and the setting", err)
	}
}
