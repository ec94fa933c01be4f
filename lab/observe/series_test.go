package observe

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"jaegerlab/lab/node"
)

func readSeries(t *testing.T, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(zip).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// A series has a row a second for what could be read, with offsets from the window's start; what
// could not be read has no row, and a warning says how often.
func TestSeries(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		n := newFakeNode("cassandra-1")
		n.usage = func() (node.Usage, error) {
			cpu, memory := time.Since(begin).Seconds()/2, int64(1<<20)
			return node.Usage{At: time.Now(), CPUSeconds: &cpu, MemoryBytes: &memory}, nil
		}
		failures := 0
		s, err := StartSampler(t.Context(), SamplerAsk{
			Nodes: []node.Node{n}, Dir: dir,
			Counters: func(context.Context) ([]Point, error) {
				if time.Since(begin) > time.Second {
					failures++
					return nil, errors.New("connection refused")
				}
				return []Point{{At: time.Now(), Node: "collector", Metric: "saved", Unit: "spans", Value: 7}}, nil
			},
			Progress: func(context.Context) ([]Point, error) {
				return []Point{{At: time.Now(), Node: "load", Metric: "generated", Unit: "spans", Value: 11}}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2500 * time.Millisecond) // the bubble's clock, no real time
		name, warnings, err := s.Close(begin.Add(time.Second))
		if err != nil || name != SeriesName {
			t.Fatalf("%s, %v", name, err)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], "1 of 3 reads failed") ||
			!strings.Contains(warnings[0], "connection refused") {
			t.Errorf("warnings %q", warnings)
		}
	})
	rows := readSeries(t, filepath.Join(dir, SeriesName))
	if diff := cmp.Diff([]string{"offset_s", "node", "metric", "unit", "value"}, rows[0]); diff != "" {
		t.Error(diff)
	}
	seen := map[string][]string{}
	for _, row := range rows[1:] {
		key := row[1] + " " + row[2] + " " + row[3]
		seen[key] = append(seen[key], row[0]+"="+row[4])
	}
	want := map[string][]string{
		"cassandra-1 cpu s":        {"-1.000=0", "0.000=0.5", "1.000=1"},
		"cassandra-1 memory bytes": {"-1.000=1.048576e+06", "0.000=1.048576e+06", "1.000=1.048576e+06"},
		"collector saved spans":    {"-1.000=7", "0.000=7"},
		"load generated spans":     {"-1.000=11", "0.000=11", "1.000=11"},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "series.partial.csv")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the partial file stays: %v", err)
	}
}

// One page of a real collector gives what is saved, what waits, and how long writes took; a memory
// store makes no statements.
func TestCollectorsPageAsPoints(t *testing.T) {
	for page, want := range map[string][]string{
		"jaeger-2.13.0-cassandra-otlp-grpc.txt": {"saved", "queue_size", "write_latency_sum"},
		"jaeger-2.13-memory-otlp.txt":           {"saved", "queue_size"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, filepath.Join("testdata", page))
		}))
		defer server.Close()
		points, err := (*Pulse)(nil).Counters("collector", strings.TrimPrefix(server.URL, "http://"), "otlp-grpc")(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range points {
			got = append(got, p.Metric)
			if p.Node != "collector" || p.At.IsZero() || p.Metric != "queue_size" && p.Value <= 0 {
				t.Errorf("%s: %+v", page, p)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", page, diff)
		}
	}
}

// A node that died, or a source that hangs, ends or delays its own rows only.
func TestASlowSourceCostsItsOwnSamples(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		dead := newFakeNode("dead")
		dead.die("killed")
		sound := newFakeNode("sound")
		reads := 0
		sound.usage = func() (node.Usage, error) { reads++; return node.Usage{At: time.Now()}, nil }
		s, err := StartSampler(t.Context(), SamplerAsk{Nodes: []node.Node{dead, sound}, Dir: dir,
			Progress: func(ctx context.Context) ([]Point, error) { <-ctx.Done(); return nil, ctx.Err() }})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(9500 * time.Millisecond)
		if _, _, err := s.Close(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if reads != 10 {
			t.Errorf("the sound node was read %d times in 9.5 s", reads)
		}
	})
}

func TestPush(t *testing.T) {
	var got collectorpb.ExportMetricsServiceRequest
	var path, contentType string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, contentType = r.URL.Path, r.Header.Get("Content-Type")
		body, _ := io.ReadAll(r.Body)
		if err := proto.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	p := Pusher{Addr: strings.TrimPrefix(server.URL, "http://"), Start: time.Unix(100, 0)}
	at := time.Unix(107, 0)
	err := p.Push(t.Context(), newFakeNode("collector"), []Point{
		{At: at, Metric: "cpu", Value: 1.5}, {At: at, Metric: "memory", Value: 1 << 20},
		{At: at, Metric: "unknown", Value: 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	if path != "/api/v1/otlp/v1/metrics" || contentType != "application/x-protobuf" {
		t.Errorf("sent to %s as %s", path, contentType)
	}
	metrics := got.ResourceMetrics[0].ScopeMetrics[0].Metrics
	if len(metrics) != 2 || !metrics[0].GetSum().GetIsMonotonic() || metrics[1].GetGauge() == nil {
		t.Fatalf("sent %v", metrics)
	}
	point := metrics[0].GetSum().DataPoints[0]
	if point.GetAsDouble() != 1.5 || point.StartTimeUnixNano != 100e9 || point.TimeUnixNano != 107e9 {
		t.Errorf("point %v", point)
	}
}

func TestPushTellsWhatWasAnswered(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "otlp write receiver needs to be enabled", http.StatusNotFound)
	}))
	defer server.Close()
	p := Pusher{Addr: strings.TrimPrefix(server.URL, "http://")}
	err := p.Push(t.Context(), newFakeNode("n"), nil)
	if err == nil || !strings.Contains(err.Error(), "needs to be enabled") {
		t.Errorf("got %v", err)
	}
}
