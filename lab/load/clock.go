package load

import (
	"sync/atomic"
	"time"
)

// clock hands out start times, each microsecond once for all workers: Jaeger's indexes hold one
// row per service, operation and start, so spans that start together would hide each other. Above
// a million spans per second it runs ahead of the time of day.
type clock struct{ next atomic.Int64 }

// take reserves width microseconds and returns the first, in microseconds since the epoch.
func (c *clock) take(width int) int64 {
	now := time.Now().UnixMicro()
	for {
		next := c.next.Load()
		start := max(now, next)
		if c.next.CompareAndSwap(next, start+int64(width)) {
			return start
		}
	}
}
