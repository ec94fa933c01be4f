//go:build unix

package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// sleeper is a node for waits: it lives until its channel is closed.
type sleeper struct {
	Node // anything a wait must not ask for is nil
	done chan struct{}
}

func (s sleeper) Name() string          { return "cassandra-1" }
func (s sleeper) Done() <-chan struct{} { return s.done }
func (s sleeper) Exit() string          { return "killed: out of memory at its limit of 1.5 GiB" }
func (s sleeper) LogFile() string       { return "logs/cassandra-1.log" }
func (s sleeper) Tail(int) string       { return "the last line" }

// A wait that runs out says what it waited for, what it saw last, and the log's tail; it probes
// often at first and twice a second later.
func TestWaitThatRunsOutSaysWhatItSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := 0
		before := time.Now()
		n := sleeper{done: make(chan struct{})}
		err := Wait(t.Context(), "peers of cassandra-1", time.Minute, n, func(context.Context) error {
			probes++
			return errors.New("0 of 1 peers")
		})
		for _, want := range []string{"wait for peers of cassandra-1", "not within 1m0s", "0 of 1 peers", "the last line"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %v", want, err)
			}
		}
		if took := time.Since(before); took != time.Minute {
			t.Errorf("took %s", took)
		}
		if probes < 120 || probes > 130 {
			t.Errorf("%d probes", probes)
		}
	})
}

func TestWaitEndsWhenTheNodeDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sleeper{done: make(chan struct{})}
		time.AfterFunc(3*time.Second, func() { close(n.done) })
		before := time.Now()
		err := Wait(t.Context(), "CQL", time.Hour, n, func(context.Context) error { return errors.New("refused") })
		const want = "cassandra-1 has ended: killed: out of memory at its limit of 1.5 GiB"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
		if took := time.Since(before); took > 4*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestWaitEndsWithItsContextAndWithSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("interrupted")) })
		err := Wait(ctx, "CQL", time.Hour, nil, func(context.Context) error { return errors.New("refused") })
		if err == nil || !strings.Contains(err.Error(), "given up: interrupted") {
			t.Error(err)
		}
		// A probe that hangs is cut by the bound, and what the one before saw is kept.
		probes := 0
		err = Wait(t.Context(), "CQL", time.Minute, nil, func(ctx context.Context) error {
			if probes++; probes == 1 {
				return errors.New("refused")
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if err == nil || !strings.Contains(err.Error(), "last seen: refused") {
			t.Error(err)
		}
		probes = 0
		err = Wait(t.Context(), "CQL", time.Minute, nil, func(context.Context) error {
			if probes++; probes < 4 {
				return errors.New("refused")
			}
			return nil
		})
		if err != nil || probes != 4 {
			t.Error(err, probes)
		}
	})
}

// One measured run at a time: the second waits, names the holder, and gives up with its context.
func TestSecondLockWaitsAndNamesTheHolder(t *testing.T) {
	t.Setenv("LAB_CACHE", t.TempDir())
	quiet := func(string, ...any) { t.Error("the first had to wait") }
	release, err := Lock(t.Context(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	said := ""
	say := func(format string, args ...any) { said = strings.Join([]string{format, args[0].(string)}, " ") }
	if _, err := Lock(ctx, say); err == nil || !strings.Contains(err.Error(), "measured run of pid ") {
		t.Errorf("second lock: %v", err)
	}
	if !strings.Contains(said, "pid ") {
		t.Errorf("said %q", said)
	}
	release()
	release, err = Lock(t.Context(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	release()
}
