package lab

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// Case 7: the collector took a request, its reply is lost, the client sends it again. The spans
// are stored once for the ledger, whatever the store makes of the second copy: a row's key holds
// the content's hash on Cassandra, so that it folds both; the memory store may keep both, and
// then they are duplicates, in a cell of their own.
func TestIntegrationReplyLost(t *testing.T) {
	for _, b := range []spec.Backend{{Engine: spec.Memory}, {Engine: spec.Cassandra, Nodes: 1}} {
		t.Run(b.String(), func(t *testing.T) {
			var cut atomic.Int64
			run, _, err := measureWith(t, b, 3, Hooks{Path: func(to string) string { return cutReplies(t, to, &cut) }})
			if err != nil {
				t.Fatal(err)
			}
			if cut.Load() == 0 || run.Sent.Retries == 0 {
				t.Errorf("%d replies cut, %d retries: nothing was planted", cut.Load(), run.Sent.Retries)
			}
			l := run.Ledger
			if run.Verdict != record.Whole || l.Missing != 0 || l.Stored < l.Acked || l.Stored > l.Generated {
				t.Errorf("verdict %s: generated %d, acked %d, stored %d, missing %d", run.Verdict, l.Generated, l.Acked, l.Stored, l.Missing)
			}
			if l.Duplicates != nil {
				t.Logf("%d duplicates", *l.Duplicates)
				if b.Engine == spec.Cassandra && *l.Duplicates != 0 {
					t.Errorf("%d duplicates of byte-identical spans, whose key is the same", *l.Duplicates)
				}
			}
		})
	}
}

// cutReplies stands before an address and ends the first three connections when a request is
// through and its reply is due.
func cutReplies(t *testing.T, to string, cut *atomic.Int64) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for n := 0; ; n++ {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp4", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go relay(in, out, n < 3, cut)
		}
	}()
	return listener.Addr().String()
}

// relay copies both ways; a faulty one passes 4 KiB on, holds the reply back, and hangs up.
func relay(in, out net.Conn, faulty bool, cut *atomic.Int64) {
	hangUp := sync.OnceFunc(func() { _, _ = in.Close(), out.Close() })
	var sent atomic.Int64
	go func() {
		defer hangUp()
		_, _ = io.Copy(countingWriter{out, &sent}, in)
	}()
	defer hangUp()
	buffer := make([]byte, 32<<10)
	for {
		n, err := out.Read(buffer)
		if err != nil {
			return
		}
		if faulty && sent.Load() > 4<<10 {
			cut.Add(1)
			return
		}
		if _, err := in.Write(buffer[:n]); err != nil {
			return
		}
	}
}

type countingWriter struct {
	io.Writer
	n *atomic.Int64
}

func (w countingWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.n.Add(int64(n))
	return n, err
}
