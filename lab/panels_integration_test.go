package lab

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"jaegerlab/grafana"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/report"
)

// elsewhere says which panels have no data in a run of plain processes on Cassandra, by the start of
// their titles, and why. It is checked that they really have none.
var elsewhere = map[string]string{
	"Cassandra: ": "the compose stack's resources service reads these from virtual tables; compose's integration test asks for them",
	"ScyllaDB: ":  "only a real ScyllaDB exports these; where its image can't be had they are parsed and no more",
}

// shown is what every query of a run's dashboards answered.
type shown struct {
	ran, totals map[string][]grafana.Value // by dashboard, panel and query
}

func place(d grafana.Dashboard, p grafana.Panel, i int) string {
	return fmt.Sprintf("%s / %s / %d", strings.TrimPrefix(d.UID, "jaegerlab-"), p.Title, i)
}

// TestIntegrationPanelsAgreeWithTheRecord asks the Prometheus of a real run, after its drain, for every
// query of every dashboard: each panel has data of both collectors, and what the counters came to is
// what the record says within 2 %.
func TestIntegrationPanelsAgreeWithTheRecord(t *testing.T) {
	for _, arm := range []struct{ collector, client string }{{"v2", "otlp-grpc"}, {"v1", "thrift-http"}} { // v1 does not count what comes by OTLP
		t.Run(arm.collector, func(t *testing.T) {
			var seen shown
			run, dir := panelRun(t, arm.collector, arm.client, &seen)
			for _, d := range grafana.Dashboards() {
				for _, p := range d.Panels {
					hasData(t, d, p, seen)
				}
			}
			series, err := report.ReadSeries(dir, run)
			if err != nil {
				t.Fatal(err)
			}
			compareTotals(t, seen, wantedTotals(run, series))
		})
	}
}

func panelRun(t *testing.T, collector, client string, seen *shown) (record.Run, string) {
	t.Helper()
	s := spec.Default()
	s.Experiment, s.Runtime, s.Results = "panels", spec.Process, t.TempDir()
	s.Backends, s.Named = []spec.Backend{{Engine: spec.Cassandra, Nodes: 1}}, true
	s.Collectors, s.Clients = []string{collector}, []string{client}
	s.Load.DurationS, s.Load.DrainS = 4, 60
	needs(t, s)
	result, err := Run(t.Context(), s, Options{Console: NewConsole(testWriter{t}, false), Hooks: Hooks{
		BeforeReadBack: func(ctx context.Context, up Stack) (err error) {
			*seen, err = askAll(ctx, up.Monitor.Addr)
			return err
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	nothingLeft(t)
	return result.Record.Runs[0], result.Dir
}

func askAll(ctx context.Context, addr string) (shown, error) {
	seen := shown{ran: map[string][]grafana.Value{}, totals: map[string][]grafana.Value{}}
	for _, d := range grafana.Dashboards() {
		for _, p := range d.Panels {
			for i, q := range p.Queries {
				var err error
				if seen.ran[place(d, p, i)], err = grafana.Ask(ctx, addr, q.At("2m")); err != nil {
					return seen, fmt.Errorf("%s: %w", place(d, p, i), err)
				}
				if seen.totals[place(d, p, i)], err = grafana.Ask(ctx, addr, q.Total()); err != nil {
					return seen, fmt.Errorf("%s: %w", place(d, p, i), err)
				}
			}
		}
	}
	return seen, nil
}

func hasData(t *testing.T, d grafana.Dashboard, p grafana.Panel, seen shown) {
	t.Helper()
	values := 0
	for i := range p.Queries {
		for _, v := range seen.ran[place(d, p, i)] {
			if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
				values++
			}
		}
	}
	for prefix, why := range elsewhere {
		if !strings.HasPrefix(p.Title, prefix) {
			continue
		}
		if values > 0 {
			t.Errorf("%s / %s has data here, and is listed to have none because %s", d.UID, p.Title, why)
		}
		return
	}
	if values == 0 {
		t.Errorf("%s / %s has no data", d.UID, p.Title)
	}
}

// wanted is what a query's total must come to, by the label whose values tell its series apart.
type wanted struct {
	label  string
	values map[string]float64 // with label "": one value, under ""
}

// wantedTotals are the record's figures for the queries that show counters of it. What is not here,
// host figures and percentiles from buckets, only has to have data.
func wantedTotals(run record.Run, series report.Series) map[string]wanted {
	counters, tables := map[string]float64{}, map[string]float64{}
	for _, c := range run.Counters {
		if c.Value == nil {
			continue
		}
		counters[c.Name] = *c.Value
		if table, found := strings.CutPrefix(c.Name, "statements."); found {
			tables[table] = *c.Value
		}
	}
	last := func(metric, host string) wanted {
		w := wanted{"node", map[string]float64{}}
		for _, n := range run.Nodes {
			samples := series[report.SeriesKey{Node: n.Name, Metric: metric}]
			if len(samples) > 0 && (host == "" || string(n.Host) == host) {
				w.values[n.Name] = samples[len(samples)-1].Value
			}
		}
		return w
	}
	one := func(v float64) wanted { return wanted{"", map[string]float64{"": v}} }
	l := run.Ledger
	want := map[string]wanted{
		"overview / Generated / 0": one(float64(l.Generated)), "overview / Acked / 0": one(float64(l.Acked)),
		"overview / Refused / 0": one(float64(l.Refused)), "overview / Unanswered / 0": one(float64(l.Unanswered)),
		"overview / Saved / 0": one(counters["saved"]), "overview / In the queue / 0": one(counters["queue_size"]),
		"overview / Spans per second / 0": one(float64(l.Generated)), "overview / Spans per second / 1": one(float64(l.Acked)),
		"overview / Spans per second / 2": one(counters["saved"]),
		"overview / CPU by node / 0":      last("cpu", ""), "overview / Memory by node / 0": last("memory", ""),
		"collector / Received and saved / 0":          one(counters["received"]),
		"collector / Received and saved / 1":          one(counters["saved"]),
		"collector / Refused, dropped, failed / 0":    one(counters["refused"]),
		"collector / Statements by table / 0":         {"table", tables},
		"collector / Mean time of a CQL insert / 0":   one(counters["write_latency_sum"] / counters["write_latency_count"]),
		"collector / CPU / 0":                         last("cpu", "collector"),
		"collector / Queue / 1":                       one(counters["queue_capacity"]),
		"database / CPU / 0":                          last("cpu", "database"),
		"database / Memory by node / 0":               last("memory", "database"),
		"generator / Spans per second by outcome / 1": {"phase", map[string]float64{"measured": float64(l.Acked)}},
		"generator / CPU / 0":                         last("cpu", "load"),
	}
	if run.Request != nil {
		want["generator / Requests answered / 0"] = one(float64(run.Request.N))
		if h, err := run.Request.Decode(); err == nil {
			want["generator / Time of a request / 0"] = one(h.Mean() / 1e6)
		}
	}
	return want
}

func compareTotals(t *testing.T, seen shown, want map[string]wanted) {
	t.Helper()
	for where, w := range want {
		values, known := seen.totals[where]
		if !known {
			t.Errorf("no dashboard has %s", where)
		}
		if len(w.values) == 0 {
			t.Errorf("%s: the record has nothing to compare with", where)
		}
		got := map[string]float64{}
		for _, v := range values {
			key := ""
			if w.label != "" {
				key = v.Labels[w.label]
			}
			got[key] += v.Value
		}
		for key, value := range w.values {
			have, found := got[key]
			if !found || !(math.Abs(have-value) <= 0.02*math.Abs(value)) { // nor when one is not a number
				t.Errorf("%s %s: the panel's counter came to %v (there: %v) and the record says %v", where, key, have, found, value)
			}
		}
	}
	t.Logf("%d queries agree with the record", len(want))
}
