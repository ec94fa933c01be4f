package grafana

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/load"
	"jaegerlab/lab/observe"
)

var update = flag.Bool("update", false, "write the dashboards' files anew")

func file(d Dashboard) string { return filepath.Join("dashboards", d.UID+".json") }

// TestFilesAreFresh: what Grafana is given is what dashboards.go says.
func TestFilesAreFresh(t *testing.T) {
	var want []string
	for _, d := range Dashboards() {
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, file(d))
		if *update {
			if err := os.WriteFile(file(d), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file(d))
		if err != nil {
			t.Errorf("%v; write it by: go test ./grafana -update", err)
			continue
		}
		if diff := cmp.Diff(string(text), string(have)); diff != "" {
			t.Errorf("%s is stale (go test ./grafana -update writes it):\n%s", file(d), diff)
		}
	}
	have, err := filepath.Glob("dashboards/*")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("files in dashboards/ that no dashboard gives, or the other way round:\n%s", diff)
	}
}

// page is what of a provisioned file the tests read.
type page struct {
	ID     *int   `json:"id"`
	UID    string `json:"uid"`
	Panels []struct {
		ID         int            `json:"id"`
		Title      string         `json:"title"`
		GridPos    map[string]int `json:"gridPos"`
		Datasource struct{ UID string }
		Targets    []struct {
			Expr       string
			Datasource struct{ UID string }
		}
	} `json:"panels"`
}

func pages(t *testing.T) map[string]page {
	t.Helper()
	all := map[string]page{}
	for _, d := range Dashboards() {
		text, err := os.ReadFile(file(d))
		if err != nil {
			t.Fatal(err)
		}
		var p page
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatalf("%s: %v", file(d), err)
		}
		all[file(d)] = p
	}
	return all
}

// TestQueries parses every query of every provisioned file with Prometheus's own parser, and every
// metric that it names is one that something exports.
func TestQueries(t *testing.T) {
	for name, p := range pages(t) {
		for _, panel := range p.Panels {
			if len(panel.Targets) == 0 {
				t.Errorf("%s, %s: no query", name, panel.Title)
			}
			for _, target := range panel.Targets {
				for _, fault := range faults(target.Expr) {
					t.Errorf("%s, %s: %s\n%s", name, panel.Title, fault, target.Expr)
				}
			}
		}
	}
}

// faults says what is wrong with a query.
func faults(expr string) []string {
	parsed, err := parser.ParseExpr(Query{Expr: expr}.At("5s"))
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if call, ok := n.(*parser.Call); ok && call.Func.Name == "histogram_quantile" && !strings.Contains(expr, load.MetricLatency+"_bucket") {
			all = append(all, "a percentile of another histogram than the load node's: Jaeger's buckets can't give one")
		}
		selector, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != labels.MetricName {
				continue
			}
			switch {
			case matcher.Type == labels.MatchEqual && !known(matcher.Value):
				all = append(all, "nothing exports "+matcher.Value)
			case matcher.Type == labels.MatchRegexp && !slices.ContainsFunc(exported(), matcher.Matches):
				all = append(all, "no exported name matches "+matcher.Value)
			}
		}
		return nil
	})
	return all
}

func known(name string) bool { return slices.Contains(exported(), name) }

// exported is every name that the lab's programs, Jaeger, node-exporter and ScyllaDB show.
func exported() []string {
	names := append(backend.ViewNames(), foreignNames...)
	names = append(names, observe.NodeCPU, observe.NodeThrottled, observe.NodeMemory)
	names = append(names, load.MetricGenerated, load.MetricAcked, load.MetricRefused, load.MetricUnanswered)
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		names = append(names, load.MetricLatency+part)
	}
	for _, m := range observe.Known() {
		for _, source := range append(m.V1, m.V2...) {
			base, _, _ := strings.Cut(source, "{")
			for _, ending := range []string{"", "_total", "_seconds", "_seconds_total"} {
				names = append(names, base+ending, base+ending+"_sum", base+ending+"_count")
			}
		}
	}
	return names
}

// TestPlantedFaults: what TestQueries is there to find.
func TestPlantedFaults(t *testing.T) {
	for expr, want := range map[string]string{
		"sum(rate(up[$__rate_interval])":                                    "unclosed left parenthesis",
		"rate(otelcol_exporter_sent_span_total[$__rate_interval])":          "nothing exports",
		`sum({__name__=~"jaeger_storage_insert(_total)?"})`:                 "no exported name matches",
		"histogram_quantile(0.99, rate(jaeger_storage_latency_ok_sum[5s]))": "a percentile of another histogram",
	} {
		if found := strings.Join(faults(expr), "; "); !strings.Contains(found, want) {
			t.Errorf("%s: faults %q, want one with %q", expr, found, want)
		}
	}
}

// TestCollectorQueriesKnowEveryVersion: one selector finds what each Jaeger calls it.
func TestCollectorQueriesKnowEveryVersion(t *testing.T) {
	for name, spellings := range map[string][]string{
		"saved": {"jaeger_storage_inserts_total", "jaeger_storage_inserts", "jaeger_collector_spans_saved_by_svc_total",
			"otelcol_exporter_sent_spans", "otelcol_exporter_sent_spans_total"},
		"queue_size":          {"otelcol_exporter_queue_size", "jaeger_collector_queue_length"},
		"write_latency_count": {"jaeger_storage_latency_ok_seconds_count", "jaeger_cassandra_latency_ok_count"},
	} {
		var found []string
		for _, selector := range observe.Selectors(name, ofCollector) {
			parsed, err := parser.ParseExpr(selector)
			if err != nil {
				t.Fatal(err)
			}
			for _, matcher := range parsed.(*parser.VectorSelector).LabelMatchers {
				for _, spelling := range spellings {
					if matcher.Name == labels.MetricName && matcher.Matches(spelling) {
						found = append(found, spelling)
					}
				}
			}
		}
		for _, spelling := range spellings {
			if !slices.Contains(found, spelling) {
				t.Errorf("%s: no selector of %v finds %s", name, observe.Selectors(name), spelling)
			}
		}
	}
}

// TestPages: what Grafana needs of a provisioned page, and nothing overlaps.
func TestPages(t *testing.T) {
	uid := regexp.MustCompile(`^[a-zA-Z0-9_-]{8,40}$`)
	for name, p := range pages(t) {
		if p.ID != nil || !uid.MatchString(p.UID) {
			t.Errorf("%s: id %v, uid %q; a page from a file has no id and a uid of 8 to 40 letters", name, p.ID, p.UID)
		}
		taken := map[[2]int]string{}
		for _, panel := range p.Panels {
			if panel.Datasource.UID != Source {
				t.Errorf("%s, %s: data source %q", name, panel.Title, panel.Datasource.UID)
			}
			for x := range panel.GridPos["w"] {
				for y := range panel.GridPos["h"] {
					cell := [2]int{panel.GridPos["x"] + x, panel.GridPos["y"] + y}
					if other := taken[cell]; other != "" || cell[0] >= gridWidth {
						t.Fatalf("%s: %s at %v lies on %q or outside", name, panel.Title, cell, other)
					}
					taken[cell] = panel.Title
				}
			}
		}
	}
}

// TestProvisioning: the data source that panels name is the one provisioned.
func TestProvisioning(t *testing.T) {
	text, err := os.ReadFile("provisioning/datasources/prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sources struct {
		Datasources []struct{ UID, Type string }
	}
	if err := yaml.Unmarshal(text, &sources); err != nil {
		t.Fatal(err)
	}
	if len(sources.Datasources) != 1 || sources.Datasources[0].UID != Source || sources.Datasources[0].Type != "prometheus" {
		t.Errorf("data sources %+v; panels name %s", sources.Datasources, Source)
	}
}
