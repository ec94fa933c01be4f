package lab

import (
	"strings"
	"testing"
	"time"
)

// Without a terminal a live line must not flood a log: one line in ten seconds.
func TestPlainConsoleThrottlesLiveLines(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	c := NewConsole(&out, false)
	c.now = func() time.Time { return now }
	c.Say("start")
	for range 25 {
		now = now.Add(time.Second)
		c.Live("at %d s", now.Unix())
	}
	if got := out.String(); got != "start\nat 10 s\nat 20 s\n" {
		t.Errorf("got %q", got)
	}
}

func TestLiveConsoleRewritesItsLine(t *testing.T) {
	var out strings.Builder
	c := NewConsole(&out, true)
	c.Live("abc")
	c.Say("done")
	if got := out.String(); got != "abc\r   \rdone\n" {
		t.Errorf("got %q", got)
	}
}
