package node

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	waitFirstPause = 5 * time.Millisecond
	waitLongPause  = 500 * time.Millisecond
	waitTailLines  = 20
)

// Wait probes until probe returns nil. Pauses between probes start at 5 ms and double up to
// 500 ms. It ends early when n has died (n may be nil: nothing can die) or ctx ends. The error
// says what was waited for, the last probe's error, and the last lines of the node's log.
func Wait(ctx context.Context, what string, within time.Duration, n Node, probe func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var died <-chan struct{}
	if n != nil {
		died = n.Done()
		go cancelWhenDied(bounded, cancel, died)
	}
	var last error
	for pause := waitFirstPause; ; pause = min(2*pause, waitLongPause) {
		err := probe(bounded)
		if err == nil {
			return nil
		}
		if bounded.Err() == nil || last == nil || !errors.Is(err, bounded.Err()) {
			last = err // a probe cut short by the bound says less than the one before
		}
		timer := time.NewTimer(pause)
		select {
		case <-bounded.Done():
			timer.Stop()
			return waitError(ctx, what, within, n, last)
		case <-timer.C:
		}
	}
}

func cancelWhenDied(ctx context.Context, cancel context.CancelFunc, died <-chan struct{}) {
	select {
	case <-died:
		cancel()
	case <-ctx.Done():
	}
}

func waitError(ctx context.Context, what string, within time.Duration, n Node, last error) error {
	why := fmt.Sprintf("not within %s", within)
	switch {
	case n != nil && ended(n):
		why = fmt.Sprintf("%s has ended: %s", n.Name(), n.Exit())
	case ctx.Err() != nil:
		why = "given up: " + context.Cause(ctx).Error()
	}
	log := ""
	if n != nil {
		if text := n.Tail(waitTailLines); text != "" {
			log = fmt.Sprintf("\nlast lines of %s:\n%s", n.LogFile(), text)
		}
	}
	return fmt.Errorf("wait for %s: %s; last seen: %w%s", what, why, last, log)
}
