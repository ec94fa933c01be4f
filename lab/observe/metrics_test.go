package observe

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

func load(t *testing.T, name string) Snapshot {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(raw))
}

func parse(t *testing.T, text string) Snapshot {
	t.Helper()
	s, err := Parse([]byte(text), time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func find(counters []record.Counter, name string) *float64 {
	for _, c := range counters {
		if c.Name == name {
			return c.Value
		}
	}
	return nil
}

// want checks a counter: a number, or nil for "not available".
func want(t *testing.T, counters []record.Counter, name string, value any) {
	t.Helper()
	got := deref(find(counters, name))
	if n, ok := value.(int); ok {
		value = float64(n)
	}
	if got != value {
		t.Errorf("counter %s = %v, want %v", name, got, value)
	}
}

func table(counters []record.Counter) string {
	var lines []string
	for _, c := range counters {
		lines = append(lines, fmt.Sprintf("%-28s %10v  %s", c.Name, deref(c.Value), c.Metric))
	}
	return strings.Join(lines, "\n")
}

// Case 5: the same thing under three spellings gives the same figure.
func TestSpellings(t *testing.T) {
	for name, page := range map[string]string{
		"1.76": "# TYPE jaeger_collector_spans_received_total counter\n" +
			"jaeger_collector_spans_received_total{svc=\"a\",debug=\"false\"} 300\n" +
			"jaeger_collector_spans_received_total{svc=\"b\",debug=\"false\"} 100\n",
		"2.18 and later": "# TYPE otelcol_receiver_accepted_spans counter\n" +
			"otelcol_receiver_accepted_spans{receiver=\"otlp\",transport=\"grpc\"} 400\n",
		"2.13": "# TYPE otelcol_receiver_accepted_spans_total counter\n" +
			"otelcol_receiver_accepted_spans_total{receiver=\"otlp\",transport=\"grpc\"} 390\n" +
			"otelcol_receiver_accepted_spans_total{receiver=\"jaeger\",transport=\"http\"} 10\n",
	} {
		counters, _ := Between(parse(t, ""), parse(t, page), About{Arm: armOf(spec.Memory, "v2", "thrift-http")})
		if got := find(counters, "received"); got == nil || *got != 400 {
			t.Errorf("%s: received %v", name, deref(got))
		}
	}
}

// Real pages of 2.13 and 1.76, and one of 2.18 and later, written by hand after the change of
// names in collector core 0.152, since no such Jaeger could be run: all tell the same load.
func TestPagesOfEachVersion(t *testing.T) {
	for _, test := range []struct {
		page, collector, client string
		engine                  spec.Engine
		want                    map[string]any
		metric                  string // that "saved" is taken from
	}{
		{"jaeger-2.13-memory-otlp.txt", "v2", "otlp-http", spec.Memory,
			map[string]any{"received": 400, "saved": 400, "sent": 400, "send_failed": 0, "refused": 0,
				"queue_capacity": 2000, "queue_size": 0, "statements": nil, "dropped": nil, "enqueue_failed": nil},
			"otelcol_exporter_sent_spans_total"},
		{"jaeger-1.76-memory-otlp.txt", "v1", "otlp-http", spec.Memory,
			map[string]any{"received": nil, "refused": nil, "dropped": nil, "queue_capacity": nil, "saved": 400,
				"saved_errors": 0, "sent": nil},
			`jaeger_collector_spans_saved_by_svc_total{result="ok"}`},
		{"jaeger-2.13.0-cassandra-otlp-grpc.txt", "v2", "otlp-grpc", spec.Cassandra,
			map[string]any{"received": 400, "saved": 400, "sent": 400, "queue_capacity": 2000, "statements.traces": 400},
			`jaeger_storage_inserts_total{table="traces"}`},
		{"jaeger-2.13.0-cassandra-thrift-http.txt", "v2", "thrift-http", spec.Cassandra,
			map[string]any{"received": 400, "saved": 400, "statements.traces": 400},
			`jaeger_storage_inserts_total{table="traces"}`},
		{"jaeger-1.76.0-cassandra-otlp-grpc.txt", "v1", "otlp-grpc", spec.Cassandra,
			map[string]any{"received": nil, "dropped": nil, "saved": 400, "statements.traces": 400, "write_errors": 0},
			`jaeger_storage_inserts_total{table="traces"}`},
		{"jaeger-1.76.0-cassandra-thrift-http.txt", "v1", "thrift-http", spec.Cassandra,
			map[string]any{"received": 400, "dropped": 0, "saved": 400, "queue_capacity": 2000, "save_latency_count": 400},
			`jaeger_storage_inserts_total{table="traces"}`},
		{"jaeger-2.18-cassandra-otlp-by-hand.txt", "v2", "otlp-grpc", spec.Cassandra,
			map[string]any{"received": 400, "saved": 400, "sent": 400, "send_failed": 0, "queue_capacity": 2000,
				"statements.traces": 400, "statements": 2800, "write_latency_count": 2800},
			`jaeger_storage_inserts{table="traces"}`},
	} {
		t.Run(test.page, func(t *testing.T) {
			arm := armOf(test.engine, test.collector, test.client)
			page := load(t, test.page)
			counters, warnings := Between(parse(t, ""), page, About{Arm: arm, Services: 1})
			for name, value := range test.want {
				want(t, counters, name, value)
			}
			if n, metric, ok := page.Saved(); !ok || n != 400 || metric != test.metric {
				t.Errorf("saved %d by %s", n, metric)
			}
			for _, w := range warnings {
				if !strings.Contains(w, "not available for OTLP in this version") {
					t.Errorf("a sound page gives the warning %q", w)
				}
			}
			if t.Failed() {
				t.Log("\n" + table(counters))
			}
		})
	}
}

// Case 5: what is absent is nil with a warning that has its name, never 0; counters that appear
// with their first event, and those of other stores and generations, give no warning.
func TestAbsentIsNil(t *testing.T) {
	page := "# TYPE otelcol_exporter_sent_spans_total counter\notelcol_exporter_sent_spans_total 5\n"
	counters, warnings := Between(parse(t, page), parse(t, page), About{Arm: armOf(spec.Badger, "v2", "otlp-grpc")})
	want(t, counters, "received", nil)
	want(t, counters, "enqueue_failed", nil)
	want(t, counters, "statements", nil)
	want(t, counters, "dropped", nil)
	want(t, counters, "sent", 0)
	text := strings.Join(warnings, "\n")
	if !strings.Contains(text, "received is not available") || !strings.Contains(text, "otelcol_receiver_accepted_spans") {
		t.Errorf("warnings:\n%s", text)
	}
	for _, name := range []string{"enqueue_failed", "statements", "dropped"} {
		if strings.Contains(text, "counter "+name) {
			t.Errorf("%s is warned of:\n%s", name, text)
		}
	}
	_, warnings = Between(parse(t, page), parse(t, page), About{Arm: armOf(spec.Cassandra, "v2", "otlp-grpc")})
	if !strings.Contains(strings.Join(warnings, ""), "statements is not available") {
		t.Errorf("on a CQL store missing statements must be told: %v", warnings)
	}
}

// Figures are last less first, by whole numbers; a counter that came in between began at 0; one
// that fell is not available.
func TestBetweenIsLastLessFirst(t *testing.T) {
	page := func(saved, failed string) Snapshot {
		text := "# TYPE otelcol_exporter_sent_spans_total counter\notelcol_exporter_sent_spans_total{e=\"x\"} " + saved + "\n"
		if failed != "" {
			text += "# TYPE otelcol_exporter_send_failed_spans_total counter\n" +
				"otelcol_exporter_send_failed_spans_total " + failed + "\n"
		}
		return parse(t, text)
	}
	about := About{Arm: armOf(spec.Badger, "v2", "otlp-grpc")}
	counters, _ := Between(page("100", ""), page("60100", "22"), about)
	want(t, counters, "sent", 60000)
	want(t, counters, "send_failed", 22)
	counters, warnings := Between(page("100", ""), page("60", ""), about)
	want(t, counters, "sent", nil)
	if !strings.Contains(strings.Join(warnings, "\n"), "fell from 100 to 60") {
		t.Errorf("warnings %q", warnings)
	}
	counters, _ = Between(page("100", ""), page("NaN", ""), about)
	want(t, counters, "sent", nil)
}

// Case 4: v1 over OTLP, and the same seen by its symptom alone.
func TestReceivedThatStandsStill(t *testing.T) {
	page := "# TYPE jaeger_collector_spans_received_total counter\n" +
		"jaeger_collector_spans_received_total{svc=\"other-services\"} 0\n" +
		"# TYPE jaeger_collector_spans_dropped_total counter\njaeger_collector_spans_dropped_total 0\n" +
		"# TYPE jaeger_collector_spans_saved_by_svc_total counter\n" +
		"jaeger_collector_spans_saved_by_svc_total{svc=\"a\",result=\"ok\"} 400\n" +
		"jaeger_collector_spans_saved_by_svc_total{svc=\"other-services\",result=\"ok\"} 0\n"
	for client, said := range map[string]string{
		"otlp-grpc": "not available for OTLP in this version", "own": "not available for this client",
	} {
		counters, warnings := Between(parse(t, ""), parse(t, page), About{Arm: armOf(spec.Memory, "v1", client)})
		want(t, counters, "received", nil)
		want(t, counters, "saved", 400)
		if !strings.Contains(strings.Join(warnings, "\n"), said) {
			t.Errorf("%s: warnings %q", client, warnings)
		}
	}
}

// Case 6: totals sum over all labels; an overflow label or a folded name gives a warning.
func TestServicesThatShareALabel(t *testing.T) {
	page := func(lines ...string) Snapshot {
		text := "# TYPE jaeger_collector_spans_saved_by_svc_total counter\n"
		for _, line := range lines {
			text += "jaeger_collector_spans_saved_by_svc_total{result=\"ok\",svc=" + line + "\n"
		}
		return parse(t, text)
	}
	about := func(services int) About { return About{Arm: armOf(spec.Memory, "v1", "otlp-grpc"), Services: services} }
	none := page(`"other-services"} 0`)
	for _, test := range []struct {
		last     Snapshot
		services int
		saved    int
		warning  string
	}{
		{page(`"a"} 4000`, `"other-services"} 100`), 4100, 4100, "100 spans under the label other-services"},
		{page(`"ride_a"} 2`, `"x_y"} 2`, `"other-services"} 0`), 4, 4, "4 services under 2 labels"},
		{page(`"a"} 2`, `"b"} 2`, `"other-services"} 0`), 2, 4, ""},
	} {
		counters, warnings := Between(none, test.last, about(test.services))
		want(t, counters, "saved", test.saved)
		text := strings.Join(warnings, "\n")
		if !strings.Contains(text, test.warning) || test.warning == "" && strings.Contains(text, "label") {
			t.Errorf("%d services: warnings %q", test.services, text)
		}
	}
}

// The best counter of saved spans is per row, and is the same one at both ends.
func TestSavedBySource(t *testing.T) {
	sent := "# TYPE otelcol_exporter_sent_spans counter\notelcol_exporter_sent_spans 8192\n"
	inserts := "# TYPE jaeger_storage_inserts counter\njaeger_storage_inserts{table=\"tag_index\"} 9000\n" +
		"jaeger_storage_inserts{table=\"traces\"} 8300\n"
	n, metric, ok := parse(t, sent+inserts).Saved()
	if !ok || n != 8300 || !strings.HasPrefix(metric, "jaeger_storage_inserts") {
		t.Errorf("%d by %s", n, metric)
	}
	if n, metric, ok := parse(t, sent+inserts).SavedSince(parse(t, sent)); !ok || n != 8300 {
		t.Errorf("since a page without inserts: %d by %s", n, metric)
	}
	if _, _, ok := parse(t, "up 1\n").Saved(); ok {
		t.Error("a page without a saved counter has one")
	}
	if total, by, ok := parse(t, inserts).WriteStatements(); !ok || total != 17300 || by["traces"] != 8300 {
		t.Errorf("statements %d %v", total, by)
	}
}

func TestStatementsPerSpan(t *testing.T) {
	counters := []record.Counter{{Name: "statements", Value: ptr(1700.0)}, {Name: "saved", Value: ptr(100.0)}}
	if got := StatementsPerSpan(counters); got == nil || *got != 17 {
		t.Errorf("got %v", deref(got))
	}
	counters[1].Value = ptr(0.0)
	if got := StatementsPerSpan(counters); got != nil {
		t.Errorf("nothing saved: got %v", *got)
	}
	if got := StatementsPerSpan(nil); got != nil {
		t.Errorf("no counters: got %v", *got)
	}
}

func TestScrapeErrorsSayWhatWasAnswered(t *testing.T) {
	for body, said := range map[string]string{"{\"status\":\"no\"}": "text format", "": "503"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if body == "" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, body)
		}))
		_, err := Scrape(t.Context(), strings.TrimPrefix(server.URL, "http://"))
		if err == nil || !strings.Contains(err.Error(), said) || !strings.Contains(err.Error(), server.URL) {
			t.Errorf("got %v", err)
		}
		server.Close()
	}
}

func TestKnownNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Known() {
		if seen[m.Name] || m.Unit == "" || m.Better == "" || len(m.V1)+len(m.V2) == 0 {
			t.Errorf("metric %+v", m)
		}
		seen[m.Name] = true
	}
}

// A page is foreign text: whatever it holds, decoding it never panics, and no counter is NaN or
// negative.
func FuzzParse(f *testing.F) {
	pages, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			f.Fatal(err)
		}
		for _, family := range strings.SplitAfter(string(raw), "# HELP ") {
			// One family a seed: the fuzzer shrinks what it finds, and a whole page takes it minutes.
			if len(family) < 1500 {
				f.Add([]byte("# HELP " + strings.TrimSuffix(family, "# HELP ")))
			}
		}
	}
	f.Add([]byte("jaeger_storage_inserts{table=\"traces\"} -5\notelcol_exporter_sent_spans NaN\n"))
	f.Add([]byte("# TYPE jaeger_storage_latency_ok histogram\njaeger_storage_latency_ok_bucket{le=\"+Inf\"} 1e400\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Parse(raw, time.Unix(0, 0))
		if err != nil {
			return
		}
		for _, client := range []string{"otlp-grpc", "thrift-http"} {
			counters, _ := Between(Snapshot{}, s, About{Arm: armOf(spec.Cassandra, "v2", client), Services: 1})
			for _, c := range counters {
				if c.Value != nil && (math.IsNaN(*c.Value) || math.IsInf(*c.Value, 0) || *c.Value < 0 && !gaugeNamed(c.Name)) {
					t.Errorf("counter %s is %v", c.Name, *c.Value)
				}
			}
		}
		s.Saved()
		s.QueueSize()
		s.WriteStatements()
	})
}

func gaugeNamed(name string) bool {
	for _, m := range metrics {
		if m.name == name {
			return m.is(gauge)
		}
	}
	return false
}
