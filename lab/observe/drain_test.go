package observe

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// script gives the counters of a fake collector as a function of the time since the window's end.
type script func(since time.Duration) (saved, queue int64)

func (s script) counters(begin time.Time) func(context.Context) (*int64, *int64, error) {
	return func(context.Context) (*int64, *int64, error) {
		saved, queue := s(time.Since(begin))
		if queue < 0 {
			return &saved, nil, nil
		}
		return &saved, &queue, nil
	}
}

func near(t *testing.T, what string, got *float64, want, within float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > within {
		t.Errorf("%s: got %v, want %v", what, deref(got), want)
	}
}

func deref(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// The drain's length is the time of the last movement, not that of the decision.
func TestDrainEndsWithTheLastMovement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		moving := script(func(since time.Duration) (int64, int64) {
			s := min(since, 12*time.Second)
			return int64(s / time.Millisecond), 2000 - int64(s/(6*time.Millisecond))
		})
		got, err := Drain(t.Context(), DrainAsk{
			WindowEnd: begin, Bound: time.Minute, Counters: moving.counters(begin),
			Rows: func(context.Context) (int64, error) { return 12000, nil },
		})
		if err != nil || !got.Settled || len(got.Warnings) != 0 {
			t.Fatalf("got %+v, %v", got, err)
		}
		near(t, "drain", got.DrainS, 12, 0.6)
		if took := time.Since(begin).Seconds(); took < 15 || took > 16.5 {
			t.Errorf("decided after %v s, want the last movement and 3 s", took)
		}
	})
}

func TestNothingToDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		idle := script(func(time.Duration) (int64, int64) { return 500, 0 })
		got, err := Drain(t.Context(), DrainAsk{WindowEnd: begin, Bound: time.Minute, Counters: idle.counters(begin)})
		if err != nil || !got.Settled {
			t.Fatalf("got %+v, %v", got, err)
		}
		near(t, "drain", got.DrainS, 0, 0)
	})
}

// A pause of the database is not the end while spans are known to be queued.
func TestAPauseWithAQueueIsNotTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		paused := script(func(since time.Duration) (int64, int64) {
			if since < 20*time.Second {
				return 1000, 700
			}
			return 1700, 0
		})
		got, err := Drain(t.Context(), DrainAsk{WindowEnd: begin, Bound: time.Minute, Counters: paused.counters(begin)})
		if err != nil || !got.Settled || *got.Last.Saved != 1700 {
			t.Fatalf("got %+v, %v", got, err)
		}
		near(t, "drain", got.DrainS, 20, 0.6)
	})
}

// Where no metric shows the queue, the lab waits longer before it believes in the end.
func TestABlindDrainIsMorePatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		paused := script(func(since time.Duration) (int64, int64) {
			if since < 8*time.Second {
				return 1000, -1
			}
			return 1700, -1
		})
		got, err := Drain(t.Context(), DrainAsk{WindowEnd: begin, Bound: time.Minute, Counters: paused.counters(begin)})
		if err != nil || !got.Settled || *got.Last.Saved != 1700 {
			t.Fatalf("got %+v, %v", got, err)
		}
	})
}

// The bound ends every wait; what kept it is said, and there is no drain time.
func TestDrainIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		script script
		want   string
	}{
		"still moving": {func(since time.Duration) (int64, int64) { return int64(since), 5 }, "still moving"},
		"stuck":        {func(time.Duration) (int64, int64) { return 1000, 42 }, "42 spans are still queued"},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			got, err := Drain(t.Context(), DrainAsk{
				WindowEnd: begin, Bound: 20 * time.Second, Counters: test.script.counters(begin)})
			if err != nil || got.Settled || got.DrainS != nil {
				t.Fatalf("%s: got %+v, %v", name, got, err)
			}
			if text := strings.Join(got.Warnings, "\n"); !strings.Contains(text, test.want) || !strings.Contains(text, "20s") {
				t.Errorf("%s: warnings %s", name, text)
			}
			if took := time.Since(begin); took > 21*time.Second {
				t.Errorf("%s: took %s", name, took)
			}
		})
	}
}

// Case 21: rows that disappear under the count are named as expiry, with both ends.
func TestFallingRowsAreExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		rows := int64(10_000)
		got, err := Drain(t.Context(), DrainAsk{
			WindowEnd: begin, Bound: time.Minute,
			Counters: script(func(time.Duration) (int64, int64) { return 10_000, 0 }).counters(begin),
			Rows: func(context.Context) (int64, error) {
				if since := time.Since(begin); since > 2*time.Second && since < 6*time.Second {
					rows -= 100
				}
				return rows, nil
			},
		})
		if err != nil || !got.Settled || len(got.Warnings) != 1 {
			t.Fatalf("got %+v, %v", got, err)
		}
		if w := got.Warnings[0]; !strings.Contains(w, "fell from 10000 to") || !strings.Contains(w, "TTL") {
			t.Errorf("warning %q", w)
		}
	})
}

// Rows that still grow after the counter stands keep the drain going.
func TestRowsKeepADrainGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		got, err := Drain(t.Context(), DrainAsk{
			WindowEnd: begin, Bound: time.Minute,
			Counters: script(func(time.Duration) (int64, int64) { return 10_000, 0 }).counters(begin),
			Rows: func(context.Context) (int64, error) {
				return min(int64(time.Since(begin)/time.Millisecond), 9000), nil
			},
		})
		if err != nil || !got.Settled || *got.Last.Rows != 9000 {
			t.Fatalf("got %+v, %v", got, err)
		}
		near(t, "drain", got.DrainS, 9, 0.6)
	})
}

// A look that fails proves nothing: the quiet time starts anew, and a lasting failure is told.
func TestFailedLooksAreNotQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		failing := func(context.Context) (*int64, *int64, error) {
			if since := time.Since(begin); since > time.Second && since < 10*time.Second {
				return nil, nil, errors.New("connection refused")
			}
			saved, queue := int64(1), int64(0)
			return &saved, &queue, nil
		}
		got, err := Drain(t.Context(), DrainAsk{WindowEnd: begin, Bound: time.Minute, Counters: failing})
		if took := time.Since(begin); err != nil || !got.Settled || took < 13*time.Second {
			t.Errorf("settled after %s: %+v, %v", took, got, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		got, err := Drain(t.Context(), DrainAsk{WindowEnd: time.Now(), Bound: 10 * time.Second,
			Counters: func(context.Context) (*int64, *int64, error) { return nil, nil, errors.New("connection refused") }})
		if err != nil || got.Settled || !strings.Contains(strings.Join(got.Warnings, ""), "connection refused") {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// A counter that appears has had its first event: version 2 shows none before.
func TestACounterThatAppearsMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		counters := func(context.Context) (*int64, *int64, error) {
			queue, saved := int64(0), int64(11)
			if time.Since(begin) < 2*time.Second {
				return nil, &queue, nil
			}
			return &saved, &queue, nil
		}
		got, err := Drain(t.Context(), DrainAsk{WindowEnd: begin, Bound: time.Minute, Counters: counters})
		if err != nil || !got.Settled {
			t.Fatalf("got %+v, %v", got, err)
		}
		near(t, "drain", got.DrainS, 2, 0.6)
	})
}

// The collector dies while it is drained: its counters are gone, the rows decide, and the death
// is told.
func TestDeathWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		n := newFakeNode("collector")
		counters := func(context.Context) (*int64, *int64, error) {
			saved, queue := int64(100), int64(900)
			if time.Since(begin) > time.Second {
				n.die("killed by SIGKILL")
				return nil, nil, errors.New("connection refused")
			}
			return &saved, &queue, nil
		}
		got, err := Drain(t.Context(), DrainAsk{WindowEnd: begin, Bound: time.Minute, Counters: counters, Collector: n,
			Rows: func(context.Context) (int64, error) { return 110, nil }})
		if err != nil || !got.Settled || !strings.Contains(strings.Join(got.Warnings, ""), "SIGKILL") {
			t.Errorf("got %+v, %v", got, err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("interrupted by Ctrl-C"))
		defer cancel()
		begin := time.Now()
		moving := script(func(since time.Duration) (int64, int64) { return int64(since), 0 })
		_, err := Drain(ctx, DrainAsk{WindowEnd: begin, Bound: time.Minute, Counters: moving.counters(begin)})
		if err == nil || !strings.Contains(err.Error(), "Ctrl-C") {
			t.Errorf("got %v", err)
		}
	})
}
