package report

import (
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// A real ramp that the generator kept up with: what was offered, sent and late stands in one row, and only a
// store that kept up too was held back by the rate.
func TestPaceOfARecordedRamp(t *testing.T) {
	saved, err := ReadSaved("verify/testdata/open")
	if err != nil {
		t.Fatal(err)
	}
	doc := OfSeries(saved.Record, saved.Series)
	for column, want := range map[string]string{"rate": "440:880:1,880", "offered": "1,540", "sent": "1,540", "late": "0", "bound by": record.RateReached} {
		if c := find(t, doc, "Pace", "cassandra:1", column); c.Text != want {
			t.Errorf("%s: %q, want %q", column, c.Text, want)
		}
	}
	for _, run := range saved.Record.Runs { // both took the rate; badger stored at it, the other's queue grew
		want := LimitHost
		if run.Spec.Backend.Engine == spec.Badger {
			want = LimitRate
		}
		if limit := LimitOf(saved.Record.Host, run, saved.Series[run.Folder]); limit.Kind != want {
			t.Errorf("%s: %s (%q), want %s", run.Arm, limit.Text(), limit.Evidence, want)
		}
	}
}

// Requests that were due and never sent waited longest: a percentile of the others is a lower bound.
func TestWhatWasNeverSentIsNoQuickAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		plant func(*record.Run)
		want  string // note; "" = the percentile stands as it is
	}{
		"kept up":                 {func(*record.Run) {}, ""},
		"the last one at the end": {func(run *record.Run) { run.Sent.Pace.BegunSpans -= 11 }, ""},
		"half of it was not sent": {func(run *record.Run) { *run.Sent.Pace.OfferedSpans *= 2 }, "at least: of 3,080 spans that were due, 1,540 were not sent"},
		"no answer":               {func(run *record.Run) { run.Ledger.Unanswered = 22 }, "22 were unanswered"},
	} {
		saved, err := ReadSaved("verify/testdata/open")
		if err != nil {
			t.Fatal(err)
		}
		test.plant(&saved.Record.Runs[0])
		doc := Of(saved.Record)
		c := find(t, doc, "Pace", "cassandra:1", "response p99")
		notes := noteOf(doc, c)
		if bounded := strings.HasPrefix(c.Text, ">="); bounded != (test.want != "") || !strings.Contains(notes, test.want) {
			t.Errorf("%s: %q (%s), want %q", name, c.Text, notes, test.want)
		}
	}
}

// What waited in a client's own queue is in no figure that begins with the request.
func TestAClientsQueueHidesWhatWasDue(t *testing.T) {
	saved, err := ReadSaved("verify/testdata/open")
	if err != nil {
		t.Fatal(err)
	}
	saved.Record.Runs[0].Sent.QueueDropped = ptr(int64(0))
	doc := Of(saved.Record)
	if c := find(t, doc, "Pace", "cassandra:1", "response p99"); c.Text != notAvailable || !strings.Contains(noteOf(doc, c), "own queue") {
		t.Errorf("%q (%s)", c.Text, noteOf(doc, c))
	}
}
