package protocol

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jaegerlab/lab/record"
)

// script answers attempts in order, the last one for ever.
type script struct {
	answers  []answer
	attempts []time.Time
}

func (s *script) attempt(context.Context, []byte, int) answer {
	s.attempts = append(s.attempts, time.Now())
	return s.answers[min(len(s.attempts), len(s.answers))-1]
}

func (s *script) close() {}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// Goal: retries back off, and end before the deadline, with what was last known.
func TestRetriesEndAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		s := &script{answers: []answer{{verdict: unreached, retry: true, code: "unreachable: refused"}}}
		var o record.Outcome
		did := deliver(ctx, s, nil, newPauses(seeded(1)), &o)
		attempts, free := did.attempts, did.free
		if took := time.Since(began); took > 30*time.Second || took < 20*time.Second {
			t.Errorf("gave up after %v of 30 s", took)
		}
		if o.Class != record.Refused || o.Answered != 0 || free || int(o.Attempts) != attempts {
			t.Errorf("outcome %+v after %d attempts, body free: %v", o, attempts, free)
		}
		if attempts < 8 || attempts > 20 {
			t.Errorf("%d attempts in 30 s", attempts)
		}
		for i := 1; i < len(s.attempts); i++ {
			full := min(firstBackoff<<(i-1), maxBackoff)
			if pause := s.attempts[i].Sub(s.attempts[i-1]); pause < full/2 || pause > full {
				t.Errorf("pause %d is %v, want between %v and %v", i, pause, full/2, full)
			}
		}
	})
}

// Goal: a request that was once sent without an answer stays in doubt, unless a later attempt is taken.
func TestDoubtStaysUntilTaken(t *testing.T) {
	lost := answer{verdict: unknown, retry: true, code: "lost"}
	no := answer{verdict: refused, heard: true, code: "no"}
	for _, test := range []struct {
		answers []answer
		class   record.Class
		code    string
	}{
		{[]answer{lost, {verdict: taken, heard: true}}, record.Acked, ""},
		{[]answer{lost, no}, record.Unanswered, "lost"},
		{[]answer{lost, {verdict: unreached, code: "unreachable"}}, record.Unanswered, "lost"},
		{[]answer{{verdict: refused, retry: true, heard: true, code: "full"}, no}, record.Refused, "no"},
		{[]answer{{verdict: partial, heard: true, code: "3 of 11"}}, record.Unanswered, "3 of 11"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var o record.Outcome
			deliver(ctx, &script{answers: test.answers}, nil, newPauses(seeded(1)), &o)
			if o.Class != test.class || o.Code != test.code || int(o.Attempts) != len(test.answers) {
				t.Errorf("answers %+v: outcome %+v, want %v %q", test.answers, o, test.class, test.code)
			}
		})
	}
}

// The receiver's wish comes before the back-off; one that is longer than the deadline ends it at once.
func TestTheReceiversPauseIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := &script{answers: []answer{
			{verdict: refused, retry: true, wait: 7 * time.Second},
			{verdict: refused, retry: true, wait: time.Hour, code: "busy"},
		}}
		var o record.Outcome
		began := time.Now()
		deliver(ctx, s, nil, newPauses(seeded(1)), &o)
		if took := time.Since(began); took != 7*time.Second || o.Class != record.Refused || o.Attempts != 2 {
			t.Errorf("outcome %+v after %v", o, took)
		}
	})
}

func TestPausesAreRepeatable(t *testing.T) {
	draw := func(seed uint64) (all []time.Duration) {
		p := newPauses(seeded(seed))
		for range 10 {
			all = append(all, p.next(0))
		}
		return all
	}
	if !slices.Equal(draw(3), draw(3)) || slices.Equal(draw(3), draw(4)) {
		t.Error("the same seed must give the same pauses, another seed others")
	}
}

// Reasons are counted, so they must not differ by the connection's own port, and must stay short.
func TestReasonsCanBeCounted(t *testing.T) {
	a := reason("connection lost", "read tcp 127.0.0.1:40112->127.0.0.1:4317: read: connection reset by peer")
	b := reason("connection lost", "read tcp 127.0.0.1:40999->127.0.0.1:4317:\n read: connection reset by peer")
	if a != b || !strings.Contains(a, "reset by peer") {
		t.Errorf("%q and %q", a, b)
	}
	if long := reason("x", strings.Repeat("é", 500)); len(long) > maxReason || strings.ToValidUTF8(long, "") != long {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}

func TestRetryAfterTakesSecondsAndDates(t *testing.T) {
	in := time.Now().Add(time.Minute).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	for value, want := range map[string]time.Duration{"": 0, "soon": 0, "-3": 0, "2": 2 * time.Second, in: time.Minute} {
		if got := retryAfter(value); got < want-2*time.Second || got > want+time.Second {
			t.Errorf("Retry-After %q: %v, want %v", value, got, want)
		}
	}
}

// Only what this machine could not do is its own error; a target that refuses is not.
func TestLocalErrorsAreToldApart(t *testing.T) {
	for code, want := range map[string]bool{
		"unreachable: dial tcp 127.0.0.1:4317: connect: cannot assign requested address": true,
		"unreachable: dial tcp: socket: too many open files":                             true,
		"not sent: write: no buffer space available":                                     true,
		"not sent: write: connection refused":                                            false,
		"":                                                                               false,
	} {
		if local(code) != want {
			t.Errorf("%q: %v", code, !want)
		}
	}
}
