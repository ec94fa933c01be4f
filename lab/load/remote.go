package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	controlLimit  = 10 * time.Second // an answer of the load node, but for the outcomes
	outcomesLimit = 5 * time.Minute
	deadAfter     = 15 * time.Second // without an answer
	maxErrorText  = 4 << 10
)

// Remote is a load node as the lab sees it. Every call is bounded, and its error names the node
// and what was asked.
type Remote struct {
	Addr string // host:port of its control port
}

// Healthy returns nil when the node answers.
func (r Remote) Healthy(ctx context.Context) error {
	return r.call(ctx, controlLimit, http.MethodGet, pathHealth, nil, func(io.Reader) error { return nil })
}

// Start starts a job; the node refuses one while another runs.
func (r Remote) Start(ctx context.Context, job Job) error {
	body, err := json.Marshal(job)
	if err != nil {
		return fmt.Errorf("start load: encode the job: %w", err)
	}
	return r.call(ctx, controlLimit, http.MethodPost, pathStart, body, func(io.Reader) error { return nil })
}

// Progress tells where the job stands; State is Idle before the first one.
func (r Remote) Progress(ctx context.Context) (Progress, error) {
	var p Progress
	err := r.call(ctx, controlLimit, http.MethodGet, pathProgress, nil, func(body io.Reader) error {
		return json.NewDecoder(body).Decode(&p)
	})
	return p, err
}

// Wait returns when the job is done, and asks this often until then; onProgress may be nil. It
// gives up when the node has not answered for 15 s or the job is past its own bound.
func (r Remote) Wait(ctx context.Context, every time.Duration, onProgress func(Progress)) (Progress, error) {
	var last Progress
	heard := time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		p, err := r.Progress(ctx)
		switch {
		case err == nil:
			last, heard = p, time.Now()
			if onProgress != nil {
				onProgress(p)
			}
			if p.State == Done {
				return p, nil
			}
			if p.State == Idle {
				return p, fmt.Errorf("wait for the load: the load node at %s has no job: it was started anew", r.Addr)
			}
			if p.ElapsedS > p.BoundS+deadAfter.Seconds() {
				return p, fmt.Errorf("wait for the load: the load node at %s is in state %q after %.0f s, its bound was %.0f s; "+
					"see its log", r.Addr, p.State, p.ElapsedS, p.BoundS)
			}
		case ctx.Err() != nil:
			return last, fmt.Errorf("wait for the load: %w", context.Cause(ctx))
		case time.Since(heard) > deadAfter:
			return last, fmt.Errorf("wait for the load: no answer for %v, it died or is starved of CPU, see its log: %w",
				deadAfter, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return last, fmt.Errorf("wait for the load: %w", context.Cause(ctx))
		}
	}
}

// Result reads everything that the node knows of its last job; so far, while it runs.
func (r Remote) Result(ctx context.Context) (Result, error) {
	var result Result
	err := r.call(ctx, outcomesLimit, http.MethodGet, pathOutcomes, nil, func(body io.Reader) (err error) {
		result, err = readResult(body)
		return err
	})
	return result, err
}

// Stop ends the load early: no new trace starts, and requests in flight have this long before
// they are called off. It does not wait; the job is done at most a little after the grace.
func (r Remote) Stop(ctx context.Context, grace time.Duration) error {
	path := pathStop + "?grace_ms=" + strconv.FormatInt(grace.Milliseconds(), 10)
	return r.call(ctx, controlLimit, http.MethodPost, path, nil, func(io.Reader) error { return nil })
}

// Clock compares the node's clock with this one's: how far ahead the node is, and the most that
// this can be wrong by (half of the round trip). It asks a few times and keeps the quickest answer.
func (r Remote) Clock(ctx context.Context) (ahead, within time.Duration, err error) {
	const asked = 5
	within = time.Duration(1<<63 - 1)
	for range asked {
		var node int64
		sent := time.Now()
		err := r.call(ctx, controlLimit, http.MethodGet, pathClock, nil, func(body io.Reader) error {
			text, err := io.ReadAll(io.LimitReader(body, 64))
			if err != nil {
				return err
			}
			node, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			return err
		})
		if err != nil {
			return 0, 0, err
		}
		half := time.Since(sent) / 2
		if half < within {
			within, ahead = half, time.Duration(node-sent.Add(half).UnixNano())
		}
	}
	return ahead, within, nil
}

// control is for short requests: no proxy, and a connection each, so that nothing stays open.
var control = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func (r Remote) call(ctx context.Context, limit time.Duration, method, path string, body []byte,
	read func(io.Reader) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("ask the load node at %s: %s %s: %w", r.Addr, method, path, err)
		}
	}()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+r.Addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := control.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorText))
		return errors.New(response.Status + ": " + strings.TrimSpace(string(text)))
	}
	return read(response.Body)
}
