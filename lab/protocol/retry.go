package protocol

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"jaegerlab/lab/record"
)

// RetryRule is what the lab's own clients (otlp-grpc, otlp-http, thrift-http) do, in a sentence for the record.
const RetryRule = "retried until the request's deadline: gRPC CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, " +
	"UNAVAILABLE, DATA_LOSS, and RESOURCE_EXHAUSTED with RetryInfo; HTTP 429, 502, 503, 504; no connection, or a " +
	"connection lost before the answer; back-off 100 ms doubling to 5 s, half of it jitter, or as long as the receiver " +
	"asks (RetryInfo, Retry-After); same bytes, same ids"

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// verdict is what one attempt to send a request came to.
type verdict uint8

const (
	unreached verdict = iota // nothing was written: the receiver can't have it
	refused                  // the receiver's own answer says that it doesn't have it
	unknown                  // it was sent, and no answer says what became of it
	partial                  // the receiver kept some spans and doesn't say which
	silent                   // it was sent over a protocol that has no answers
	taken                    // acknowledged
)

// answer is the end of one attempt.
type answer struct {
	verdict verdict
	retry   bool          // the rule allows another attempt
	wait    time.Duration // the receiver asks for this pause; 0 = none asked
	heard   bool          // the receiver said something: the time of it counts as an answer
	busy    bool          // taken, but the request's bytes may still be being read
	bytes   int           // that were sent; 0 = the body's own length
	code    string        // status and reason, without addresses; "" when taken
}

// transport sends one encoded request once. body must not be changed before attempt returns, and
// not at all unless the answer is taken and not busy: somebody may still be reading it.
type transport interface {
	attempt(ctx context.Context, body []byte, spans int) answer
	close()
}

// pauses gives the pauses between attempts of one request. The source is seeded: a run can be
// repeated, and workers don't come back all at once.
type pauses struct {
	random *rand.Rand
	step   time.Duration
}

func newPauses(random *rand.Rand) pauses { return pauses{random: random, step: firstBackoff} }

// next returns how long to wait before the next attempt.
func (p *pauses) next(asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	half := p.step / 2
	p.step = min(2*p.step, maxBackoff)
	return half + time.Duration(p.random.Int64N(int64(half)))
}

// sending is what it took to deliver one request.
type sending struct {
	attempts int
	local    int   // of these: this machine could not even try
	bytes    int64 // of all attempts
	free     bool  // nobody reads the body any more
}

// deliver sends body until it is taken or refused for good or ctx ends, and sets the outcome's
// times, attempts, class and code. A request that was sent once without an answer stays in doubt,
// whatever later attempts were told, unless one was taken.
func deliver(ctx context.Context, t transport, body []byte, p pauses, o *record.Outcome) (s sending) {
	doubt := ""
	o.Class = record.Unsent
	for {
		if s.attempts == 0 {
			o.Sent = time.Now().UnixNano()
		}
		a := t.attempt(ctx, body, int(o.Spans))
		s.attempts++
		s.bytes += int64(cmp.Or(a.bytes, len(body)))
		if a.verdict == unreached && local(a.code) {
			s.local++
		}
		if a.heard {
			o.Answered = time.Now().UnixNano()
		}
		o.Class, o.Code = classify(a, &doubt)
		s.free = s.attempts == 1 && (a.verdict == taken && !a.busy || a.verdict == silent)
		if !a.retry || !sleep(ctx, p.next(a.wait)) {
			break
		}
	}
	o.Intended = o.Sent
	o.Attempts = uint16(min(s.attempts, 1<<16-1))
	return s
}

// local reports whether a reason is this machine's own: the target has no part in it.
func local(code string) bool {
	return slices.ContainsFunc([]string{
		"cannot assign requested address", "can't assign requested address", "too many open files", "no buffer space",
		"cannot allocate memory", "message too long", "operation not permitted",
	}, func(text string) bool { return strings.Contains(code, text) })
}

func classify(a answer, doubt *string) (record.Class, string) {
	switch {
	case a.verdict == taken:
		return record.Acked, ""
	case a.verdict == silent:
		return record.NoReply, ""
	case a.verdict == unknown || a.verdict == partial:
		*doubt = a.code
	}
	if *doubt != "" {
		return record.Unanswered, *doubt
	}
	return record.Refused, a.code
}

// sleep waits for d, or returns false at once when ctx ends before that.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
