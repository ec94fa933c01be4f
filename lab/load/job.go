// Package load generates spans and keeps what became of each. It is a step of the flow
// spec -> backend, stack -> load -> observe -> ledger -> record -> report, in two halves: the
// program of the load node (run.go generates, server.go serves it over HTTP) and the lab's side
// of it (remote.go, node.go), so that the test process carries no load.
//
// A run is a closed loop, CONCURRENCY workers that send batches of traces back to back, or, with a
// RATE, an open one, in which a schedule says when a batch is due and the next free worker sends
// it. First comes a warm-up, then the window. At the window's end no new trace starts, and requests
// in flight finish under their deadline.
package load

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// Job is one round of load.
type Job struct {
	Numbering trace.Numbering `json:"numbering"`
	Load      spec.Load       `json:"load"`
	Seed      uint64          `json:"seed"`   // decides content and the jitter of retries
	Client    string          `json:"client"` // name of a protocol
	Target    string          `json:"target"` // host:port of the collector's port for that protocol
}

// Check returns everything that makes the job impossible, before anything is sent.
func (j Job) Check() error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if _, err := protocol.Get(j.Client); err != nil {
		problems = append(problems, err)
	}
	if host, port, err := net.SplitHostPort(j.Target); err != nil || host == "" || port == "" {
		refuse("target %q: accepted: host:port", j.Target)
	}
	if j.Numbering.Width != j.Load.SpansCount+1 || j.Numbering.Run > trace.MaxRun {
		refuse("numbering %+v does not fit %d child spans a trace", j.Numbering, j.Load.SpansCount)
	}
	for _, field := range []struct {
		name              string
		value, least, top int
	}{
		{"concurrency", j.Load.Concurrency, 1, trace.MaxWorkers},
		{"spans_count", j.Load.SpansCount, 0, 1_000_000},
		{"tags_count", j.Load.TagsCount, 0, 1_000_000},
		{"duration_s", j.Load.DurationS, 1, 7 * 86_400},
		{"warmup_s", j.Load.WarmupS, 0, 86_400},
		{"services", j.Load.Services, 0, 1_000_000 - 1},
		{"traces_per_request", j.Load.TracesPerRequest, 0, 100_000},
		{"max_request_spans", j.Load.MaxRequestSpans, 0, 10_000_000},
		{"operations", j.Load.Operations, 0, 1_000_000 - 1},
		{"tag_length", j.Load.TagLength, 0, 4 << 20},
		{"error_percent", j.Load.ErrorPercent, 0, 100},
		{"events", j.Load.Events, 0, 10_000},
		{"request_timeout_s", j.Load.RequestTimeoutS, 1, 86_400},
	} {
		if field.value < field.least || field.value > field.top {
			refuse("load.%s is %d; accepted: %d to %d", field.name, field.value, field.least, field.top)
		}
	}
	if _, err := spec.ParseRate(j.Load.Rate); err != nil {
		problems = append(problems, err)
	}
	if shape := trace.Shape(j.Load.Shape); shape != "" && !slices.Contains(trace.Shapes(), shape) {
		refuse("load.shape is %q; accepted: %v", shape, trace.Shapes())
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("start load: %w", errors.Join(problems...))
}

func (j Job) warmup() time.Duration  { return time.Duration(j.Load.WarmupS) * time.Second }
func (j Job) window() time.Duration  { return time.Duration(j.Load.DurationS) * time.Second }
func (j Job) timeout() time.Duration { return time.Duration(j.Load.RequestTimeoutS) * time.Second }

// traces is how many traces are sent together.
func (j Job) traces() int { return max(j.Load.TracesPerRequest, 1) }

// bound is how long the job takes at most: after the window, requests in flight have their
// deadline, and flushing queues ends with it.
func (j Job) bound() time.Duration { return j.warmup() + j.window() + j.timeout() + slack }

// slack is for what surrounds the last deadline: the answer to a cancelled request, closing.
const slack = 2 * time.Second
