package lab

import (
	"testing"
	"time"
)

// What is left is what the plan says, corrected by how the finished rounds kept to it.
func TestRemainingTimeLearnsFromFinishedRounds(t *testing.T) {
	now := time.Now()
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	s := schedule{rounds: 4, left: 400 * time.Second}
	s.begin(100*time.Second, at(0))
	for _, step := range []struct {
		at   int
		want string
	}{{0, "[1 of 4, about 7 min left] "}, {90, "[1 of 4, about 5 min left] "}, {500, "[1 of 4, about 5 min left] "}} {
		if got := s.at(at(step.at)); got != step.want {
			t.Errorf("at %d s: %q, want %q", step.at, got, step.want)
		}
	}
	if s.last() {
		t.Error("the first of four rounds is the last")
	}
	s.end(at(50)) // twice as fast as planned
	s.begin(100*time.Second, at(50))
	if got := s.remaining(at(50)); got != 150*time.Second {
		t.Errorf("three rounds of 50 s are left; got %s", got)
	}
	s.end(at(100))
	s.begin(100*time.Second, at(100))
	s.end(at(150))
	s.begin(100*time.Second, at(150))
	if !s.last() {
		t.Error("the fourth of four rounds is not the last")
	}
	if got := s.at(at(170)); got != "[4 of 4, less than a minute left] " {
		t.Errorf("at the end: %q", got)
	}
	if one := (&schedule{rounds: 1}).at(now); one != "" {
		t.Errorf("a single round says %q", one)
	}
}
