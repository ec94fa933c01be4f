package setup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"
)

const (
	// pullStall is how long a pull may show no progress: without a route to a registry the daemon
	// itself keeps trying for a long time and says nothing.
	pullStall = 30 * time.Second
	pullLimit = 20 * time.Minute
)

// errUnreachable marks a pull that failed because no registry answers: further pulls are pointless.
var errUnreachable = errors.New("the registry can't be reached")

// pull fetches an image, with progress. The error is errUnreachable when no registry answers.
func (d *docker) pull(ctx context.Context, ref string, say Say) error {
	ctx, cancel := context.WithTimeout(ctx, pullLimit)
	defer cancel()
	watch := newStallWatch(pullStall, cancel)
	defer watch.stop()

	say("pull %s", ref)
	started := time.Now()
	stream, err := d.api.ImagePull(ctx, ref, client.ImagePullOptions{})
	if err != nil {
		return pullError(ctx, ref, watch, err)
	}
	layers := layerProgress{}
	said := started
	for message, err := range stream.JSONMessages(ctx) {
		if err == nil && message.Error != nil {
			err = message.Error
		}
		if err != nil {
			return pullError(ctx, ref, watch, err)
		}
		watch.moved()
		layers.take(message)
		if time.Since(said) >= progressEvery {
			said = time.Now()
			say("pull %s: %s, %s", ref, time.Since(started).Round(time.Second), layers)
		}
	}
	if _, present, err := d.inspect(ctx, ref); err != nil || !present {
		return fmt.Errorf("pull %s: the pull ended but the image is not there: %w", ref, errors.Join(err, ctx.Err()))
	}
	say("pulled %s in %s", ref, time.Since(started).Round(time.Second))
	return nil
}

func pullError(ctx context.Context, ref string, watch *stallWatch, err error) error {
	switch {
	case watch.stalled():
		return fmt.Errorf("pull %s: no progress for %s: %w", ref, pullStall, errUnreachable)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("pull %s: not done after %s", ref, pullLimit)
	case ctx.Err() != nil:
		return fmt.Errorf("pull %s: %w", ref, ctx.Err())
	case errdefs.IsNotFound(err), errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err):
		return fmt.Errorf("pull %s: %w", ref, err)
	}
	return fmt.Errorf("pull %s: %w: %w", ref, errUnreachable, err)
}

// stallWatch cancels work that shows no progress for a while.
type stallWatch struct {
	limit time.Duration
	timer *time.Timer
	mu    sync.Mutex
	fired bool
}

func newStallWatch(limit time.Duration, cancel func()) *stallWatch {
	w := &stallWatch{limit: limit}
	w.timer = time.AfterFunc(limit, func() {
		w.mu.Lock()
		w.fired = true
		w.mu.Unlock()
		cancel()
	})
	return w
}

func (w *stallWatch) moved() { w.timer.Reset(w.limit) }
func (w *stallWatch) stop()  { w.timer.Stop() }

func (w *stallWatch) stalled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fired
}

// layerProgress adds up what the daemon says of each layer.
type layerProgress map[string]jsonstream.Progress

func (l layerProgress) take(message jsonstream.Message) {
	if message.ID != "" && message.Progress != nil && message.Progress.Total > 0 {
		l[message.ID] = *message.Progress
	}
}

// String is megabytes fetched of megabytes known.
func (l layerProgress) String() string {
	var current, total int64
	for _, layer := range l {
		current += layer.Current
		total += layer.Total
	}
	return fmt.Sprintf("%d of %d MB", current/1e6, total/1e6)
}
