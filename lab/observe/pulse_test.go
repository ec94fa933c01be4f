package observe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// planted drives a pulse over two nodes for some seconds; the second is silent where silent says
// so, and errors is the counter of failed statements at each second (-1: not readable).
func planted(t *testing.T, seconds int, silent func(second int) bool, failed func(second int) int64) (p *Pulse, start, end time.Time) {
	t.Helper()
	start = time.Now()
	second := 0
	p = &Pulse{
		Nodes: []string{"cassandra-1", "cassandra-2"},
		Answers: func(context.Context) []error {
			if silent(second) {
				return []error{nil, errors.New("no answer")}
			}
			return []error{nil, nil}
		},
	}
	for ; second < seconds; second++ {
		_, _ = p.Beat(t.Context())
		if n := failed(second); n >= 0 {
			p.failed(time.Now(), n)
		}
		time.Sleep(time.Second) // of a synctest bubble
	}
	return p, start, start.Add(time.Duration(seconds) * time.Second)
}

func during(from, to int) func(int) bool { return func(s int) bool { return s >= from && s < to } }

// Case 16: errors that outlive the outage are the driver's, and the store is not judged by them.
func TestDriverThatDoesNotRecoverIsNamed(t *testing.T) {
	climbing := func(from int) func(int) int64 { return func(s int) int64 { return int64(max(s-from, 0)) * 40 } }
	cases := []struct {
		name    string
		silent  func(int) bool
		failed  func(int) int64
		outages int
		stuck   bool
	}{
		{"errors go on", during(10, 20), climbing(10), 1, true},
		{"errors end with the outage", during(10, 20), func(s int) int64 { return climbing(10)(min(s, 21)) }, 1, false},
		{"no outage, an overloaded store", during(0, 0), climbing(0), 0, false},
		{"errors as before the outage", during(10, 20), climbing(0), 1, false},
		{"one late answer is no outage", during(10, 11), climbing(10), 0, false},
		{"it never came back", during(10, 99), climbing(10), 1, false},
		{"back too late to tell", during(10, 35), climbing(10), 1, false},
		{"no such counter", during(10, 20), func(int) int64 { return -1 }, 1, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, start, end := planted(t, 40, c.silent, c.failed)
				if got := p.Warnings(start); len(got) != c.outages {
					t.Errorf("outages: %v, want %d", got, c.outages)
				}
				got := p.NotRecovered(end)
				if (got != "") != c.stuck {
					t.Errorf("NotRecovered() = %q, want one: %v", got, c.stuck)
				}
				if c.stuck && !strings.Contains(got, "cassandra-2 answered again 20 s before") {
					t.Errorf("NotRecovered() = %q", got)
				}
			})
		})
	}
}

func TestOutageIsSaidWithItsSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start, _ := planted(t, 12, during(4, 9), func(int) int64 { return 0 })
		if got := strings.Join(p.Warnings(start), "\n"); got != "cassandra-2 gave no answer from second 4 to second 9" {
			t.Errorf("Warnings() = %q", got)
		}
	})
}
