package backend

import (
	"context"
	"time"
)

// again asks up to so many times, with a pause that doubles, and returns the last answer. It ends
// at once with the context, or when final says that an error will not go away.
func again[T any](ctx context.Context, attempts int, pause time.Duration, ask func(attempt int) (T, error),
	final func(error) bool) (T, error) {
	for attempt := 1; ; attempt++ {
		answer, err := ask(attempt)
		if err == nil || attempt == attempts || ctx.Err() != nil || final(err) {
			return answer, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return answer, err
		}
		pause *= 2
	}
}

// never is for errors that may all pass.
func never(error) bool { return false }
