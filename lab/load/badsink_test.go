package load

import (
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/protocol/sink"
	"jaegerlab/lab/record"
)

// Goal: whatever a receiver does in mid-load, the run ends in time, every span that began has one
// outcome of the right class, and the reasons are in the record.
func TestBadReceivers(t *testing.T) {
	late := func(n int64, _ []byte) sink.Reply {
		return sink.Reply{Delay: time.Duration(n%3) * 30 * time.Millisecond}
	}
	every := func(k int64, r sink.Reply) func(int64, []byte) sink.Reply {
		return func(n int64, _ []byte) sink.Reply {
			if n%k == 0 {
				return r
			}
			return sink.Reply{Delay: time.Millisecond}
		}
	}
	for _, test := range []struct {
		name    string
		answer  func(int64, []byte) sink.Reply
		classes []record.Class // that must be there; nothing else may
		reason  string
	}{
		{"answers late", late, []record.Class{record.Acked}, ""},
		{"cuts connections", every(7, sink.Reply{Reset: true}), []record.Class{record.Acked}, ""},
		{"takes a part", every(5, sink.Reply{Rejected: 3, Message: "some"}),
			[]record.Class{record.Acked, record.Unanswered}, "partial success: 3 of 11 spans rejected: some"},
		{"refuses some", every(5, sink.Reply{Code: uint32(codes.InvalidArgument), Status: 400, Message: "no"}),
			[]record.Class{record.Acked, record.Refused}, "no"},
	} {
		for _, client := range []string{"otlp-grpc", "otlp-http"} {
			t.Run(test.name+"/"+client, func(t *testing.T) {
				t.Parallel()
				result := runAgainst(t, client, &sink.Sink{Answer: test.answer}, nil)
				checkCovered(t, result)
				seen := map[record.Class]bool{}
				for _, o := range result.Outcomes {
					seen[o.Class] = true
				}
				for _, class := range test.classes {
					if !seen[class] {
						t.Errorf("no outcome is %s", class)
					}
					delete(seen, class)
				}
				if len(seen) > 0 {
					t.Errorf("outcomes of other classes: %v, reasons %+v", seen, result.Sent.RefusedReasons)
				}
				reasons := ""
				for _, r := range result.Sent.RefusedReasons {
					reasons += r.Reason + "\n"
				}
				if !strings.Contains(reasons, test.reason) || (reasons == "") != (test.reason == "") {
					t.Errorf("reasons %q, want %q", reasons, test.reason)
				}
			})
		}
	}
}

// A receiver that goes away for good: what it took is acked, the rest is refused as unreachable or
// stays in doubt, and the load ends at its bound.
func TestReceiverThatCloses(t *testing.T) {
	s := &sink.Sink{}
	var once sync.Once
	result := runAgainst(t, "otlp-grpc", s, func(p Progress) {
		if p.Acked > 0 {
			once.Do(s.Close)
		}
	})
	checkCovered(t, result)
	seen := map[record.Class]int{}
	for _, o := range result.Outcomes {
		seen[o.Class]++
	}
	if seen[record.Acked] == 0 || seen[record.Refused]+seen[record.Unanswered] == 0 || len(result.Sent.RefusedReasons) == 0 {
		t.Errorf("outcomes %v, reasons %+v", seen, result.Sent.RefusedReasons)
	}
}

// runAgainst runs a second of load against a sink, to its end.
func runAgainst(t *testing.T, client string, s *sink.Sink, during func(Progress)) Result {
	t.Helper()
	target := blackHole(t, client, s)
	proto, err := protocol.Get(client)
	if err != nil {
		t.Fatal(err)
	}
	job := testJob(3, 0, 1)
	job.Client, job.Target, job.Load.RequestTimeoutS = client, target, 2
	began := time.Now()
	r, err := start(t.Context(), job, proto, newMetrics())
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-r.done:
			done = true
		case <-tick.C:
			if during != nil {
				during(r.progress())
			}
		}
	}
	if took := time.Since(began); took > job.bound() {
		t.Errorf("took %v, bound %v", took, job.bound())
	}
	return written(t, r)
}
