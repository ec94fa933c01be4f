package stack

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
)

// fakePrometheus answers the API with what the test gives.
func fakePrometheus(t *testing.T, answer func(path string, query url.Values) string) *Monitor {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, answer(r.URL.Path, r.URL.Query()))
	}))
	t.Cleanup(server.Close)
	return &Monitor{Prometheus: live(nil), Addr: strings.TrimPrefix(server.URL, "http://"), targets: make([]Target, 1)}
}

func targetsAnswer(states ...string) string {
	return `{"status":"success","data":{"activeTargets":[` + strings.Join(states, ",") + `]}}`
}

func target(job, health, lastError string, scraped time.Time) string {
	return fmt.Sprintf(`{"labels":{"job":%q},"scrapeUrl":"http://h/metrics","lastError":%q,"lastScrape":%q,"health":%q}`,
		job, lastError, scraped.Format(time.RFC3339Nano), health)
}

// Case 42: load never starts while a target is down, and the failure holds the target's error.
func TestWaitTargetsNamesTheLastError(t *testing.T) {
	m := fakePrometheus(t, func(string, url.Values) string {
		return targetsAnswer(target("prometheus", "up", "", time.Now()),
			target("collector", "down", "dial tcp: lookup host.docker.internal: no such host", time.Now()))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	err := m.WaitTargets(ctx)
	if err == nil || !strings.Contains(err.Error(), "collector") || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("got %v", err)
	}
}

func TestWaitTargets(t *testing.T) {
	var asked atomic.Int32
	m := fakePrometheus(t, func(string, url.Values) string {
		health := "unknown"
		if asked.Add(1) > 2 {
			health = "up"
		}
		return targetsAnswer(target("prometheus", "up", "", time.Now()), target("collector", health, "", time.Now()))
	})
	if err := m.WaitTargets(t.Context()); err != nil {
		t.Error(err)
	}
	if asked.Load() != 3 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// A target that Prometheus has not even listed yet is not up.
func TestWaitTargetsCountsThem(t *testing.T) {
	m := fakePrometheus(t, func(string, url.Values) string {
		return targetsAnswer(target("prometheus", "up", "", time.Now()))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if err := m.WaitTargets(ctx); err == nil || !strings.Contains(err.Error(), "1 of 2 targets") {
		t.Errorf("got %v", err)
	}
}

// Case 41: the end of a run must be in the samples.
func TestLastScrapeWaitsForEveryTarget(t *testing.T) {
	since := time.Now()
	var asked atomic.Int32
	m := fakePrometheus(t, func(string, url.Values) string {
		late := since.Add(-time.Second)
		if asked.Add(1) > 1 {
			late = since.Add(time.Second)
		}
		return targetsAnswer(target("prometheus", "up", "", since.Add(time.Second)), target("collector", "up", "", late))
	})
	if err := m.LastScrape(t.Context(), since); err != nil || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

func TestRawAsksForBothEnds(t *testing.T) {
	from := time.UnixMilli(1_700_000_000_000)
	var query url.Values
	m := fakePrometheus(t, func(_ string, q url.Values) string {
		query = q
		return `{"status":"success","data":{"resultType":"matrix","result":[
			{"metric":{"__name__":"x","job":"load"},"values":[[1700000000,"5"],[1700000001.5,"60005"]]}]}}`
	})
	series, err := m.Raw(t.Context(), `x{job="load"}`, from, from.Add(1500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if got := query.Get("query"); got != `x{job="load"}[1501ms]` {
		t.Errorf("query %s", got)
	}
	if got := query.Get("time"); got != "1700000001.500" {
		t.Errorf("time %s", got)
	}
	want := []Series{{Labels: map[string]string{"__name__": "x", "job": "load"}, Samples: []Sample{
		{At: from, Value: 5}, {At: from.Add(1500 * time.Millisecond), Value: 60005}}}}
	if diff := cmp.Diff(want, series); diff != "" {
		t.Error(diff)
	}
}

func TestPrometheusErrorIsTold(t *testing.T) {
	m := fakePrometheus(t, func(string, url.Values) string { return `{"status":"error","error":"parse error at char 3"}` })
	_, err := m.Raw(t.Context(), "x{", time.Now(), time.Now())
	if err == nil || !strings.Contains(err.Error(), "parse error") {
		t.Errorf("got %v", err)
	}
}

// Cases 39 and 41: a figure is last minus first of raw samples, whole for whole things; with
// under two samples there is none, and never a zero.
func TestDelta(t *testing.T) {
	at := time.Unix(0, 0)
	samples := func(values ...float64) Series {
		var s Series
		for i, v := range values {
			s.Samples = append(s.Samples, Sample{at.Add(time.Duration(i) * 15 * time.Second), v})
		}
		return s
	}
	exact := 60000.0
	zero := 0.0
	for _, test := range []struct {
		series Series
		want   *float64
		note   string
	}{
		{samples(17, 20017, 40017, 60017), &exact, ""},
		{samples(5, 5), &zero, ""},
		{samples(5), nil, "n/a (1 sample)"},
		{samples(), nil, "n/a (no sample)"},
		{samples(5, 9, 2), nil, "fell from 9 to 2"},
	} {
		got, note := test.series.Delta()
		if (got == nil) != (test.want == nil) || (got != nil && *got != *test.want) || !strings.Contains(note, test.note) {
			t.Errorf("%v: got %v, %q; want %v, %q", test.series.Samples, got, note, test.want, test.note)
		}
	}
}

func TestStartMonitor(t *testing.T) {
	addr := page(t, "ok")
	runtime := &fakeRuntime{name: spec.Docker, launch: func(node.Program, int) *fakeNode {
		return live(map[string]string{"http": addr})
	}}
	load := []Target{{Job: "load", Addr: "load:8080"}}
	m, err := StartMonitor(t.Context(), fakeEnv(runtime), MonitorAsk{Name: "prometheus", Targets: load})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Programs) != 2 || len(m.Notes) != 1 || m.Addr != addr || len(runtime.started) != 2 {
		t.Errorf("monitor %+v, started %d", m, len(runtime.started))
	}
	config := string(runtime.started[1].Files[0].Data)
	for _, want := range []string{"load:8080", "peer-" + addr} {
		if !strings.Contains(config, want) {
			t.Errorf("the configuration lacks %s:\n%s", want, config)
		}
	}
	if err := m.Stop(t.Context()); err != nil || runtime.running() != 0 {
		t.Errorf("%d nodes still run: %v", runtime.running(), err)
	}
}

// When Prometheus does not start, the exporter that was started for it is ended.
func TestStartMonitorLeavesNothing(t *testing.T) {
	addr := page(t, "ok")
	runtime := &fakeRuntime{name: spec.Process, launch: func(p node.Program, _ int) *fakeNode {
		if p.Binary.Command[0] == "/bin/prometheus" {
			return dead("exit status 2", "Error loading config")
		}
		return live(map[string]string{"http": addr})
	}}
	_, err := StartMonitor(t.Context(), fakeEnv(runtime), MonitorAsk{Name: "prometheus"})
	if err == nil || !strings.Contains(err.Error(), "Error loading config") || runtime.running() != 0 {
		t.Errorf("%d nodes still run: %v", runtime.running(), err)
	}
}
