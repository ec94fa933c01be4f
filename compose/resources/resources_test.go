package resources

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"jaegerlab/lab/node"
)

// page renders what Prometheus would be shown, without the comments.
func page(t *testing.T, s *show) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(s); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

func pointer[T any](v T) *T { return &v }

// TestUsage: names and labels are those of a run, and what the daemon can't tell is not shown.
func TestUsage(t *testing.T) {
	s := newShow(slog.New(slog.DiscardHandler))
	s.take(t.Context(), "containers", func(context.Context) ([]sample, error) {
		return usageSamples(node.OtherContainer{
			Name:   "/jaegerlab-cassandra-cassandra-1-1",
			Labels: map[string]string{serviceLabel: "cassandra-1", "on": "database"},
			Usage:  node.Usage{CPUSeconds: pointer(12.5), MemoryBytes: pointer(int64(1 << 20))},
		}, "on"), nil
	})
	want := `lab_node_cpu_seconds_total{host="database",node="cassandra-1"} 12.5
lab_node_memory_bytes{host="database",node="cassandra-1"} 1.048576e+06`
	if diff := cmp.Diff(want, page(t, s)); diff != "" {
		t.Errorf("page:\n%s", diff)
	}
}

// TestFailedReads: a source that can't be read is told once, its last values stay for a moment and
// then end, so that a dead database is not shown as a steady one.
func TestFailedReads(t *testing.T) {
	var log bytes.Buffer
	s := newShow(slog.New(slog.NewTextHandler(&log, nil)))
	now := time.Unix(1000, 0)
	s.now = func() time.Time { return now }
	fail := false
	from := func(context.Context) ([]sample, error) {
		if fail {
			return nil, errors.New("connection refused")
		}
		return []sample{{"lab_node_memory_bytes", map[string]string{"node": "a"}, 7, false}}, nil
	}
	s.take(t.Context(), "a", from)
	fail = true
	for range 3 {
		now = now.Add(time.Second)
		s.take(t.Context(), "a", from)
	}
	if got := page(t, s); !strings.HasSuffix(got, " 7") {
		t.Errorf("3 s after the last good read the page is %q", got)
	}
	now = now.Add(forgottenAfter)
	if got := page(t, s); got != "" {
		t.Errorf("after %s without a good read the page is still %q", forgottenAfter, got)
	}
	if n := strings.Count(log.String(), "can't read"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}
