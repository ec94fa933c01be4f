package lab

import (
	"slices"
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/report"
)

// loadRun measures one arm on the memory store under two seconds of a load, changed as the test
// says; the ledger must close, and the tables are what a user reads of it.
func loadRun(t *testing.T, client string, change func(*spec.Load)) (record.Run, string) {
	t.Helper()
	s := spec.Default()
	s.Experiment, s.Runtime, s.Results, s.Profile = "clients", spec.Process, t.TempDir(), spec.None
	s.Backends, s.Named = []spec.Backend{{Engine: spec.Memory}}, true
	s.Clients = []string{client}
	s.Load.Concurrency, s.Load.DurationS, s.Load.DrainS = 4, 2, 60
	if change != nil {
		change(&s.Load)
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	needs(t, s)
	result, err := Run(t.Context(), s, Options{Console: NewConsole(testWriter{t}, false)})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := report.Render(result.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := report.MarkdownTables(&page, doc); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t)
	return result.Record.Runs[0], page.String()
}

// Clients and rates through the whole lab: what has answers is whole; UDP, which has none, loses
// only what the kernel's counter explains. The report says what was offered, sent and late, from
// when latency counts, and whose limit it was. A run costs some seconds, so each has several goals.
func TestIntegrationClientsAndRates(t *testing.T) {
	either := []string{record.GeneratorBound, record.TargetBound} // which of them is the machine's to say
	for _, test := range []struct {
		name, client string
		bounds       []string
		change       func(*spec.Load)
	}{
		{"compressed, with ramp, step and pause", "otlp-http", []string{record.RateReached}, func(l *spec.Load) {
			l.Rate, l.Gzip = "0:2200:1,1100:1100:0.5,0:0:0.2,2200", true
		}},
		{"packets at a rate", "thrift-udp", []string{record.RateReached}, func(l *spec.Load) { l.Rate = "2200" }},
		{"jaeger-client-go, one worker for far too much", "jaeger-client", either, func(l *spec.Load) {
			l.Rate, l.Concurrency = "900000000", 1
		}},
		{"full speed, too few workers for the rate", "otlp-grpc", either, func(l *spec.Load) {
			l.Rate, l.TracesPerRequest, l.Concurrency = "900000000", 100, 2
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, page := loadRun(t, test.client, test.change)
			p := run.Sent.Pace
			t.Logf("%s: %s; begun %d spans, %.0f/s; verdict %s", p.Bound, p.Why, p.BegunSpans, p.AchievedPerS, run.Verdict)
			checkLedger(t, test.client, run, page)
			for _, want := range []string{run.Sent.Pace.Rate, "| " + p.Bound, "response p99", "service p99", "late", p.Why} {
				if !strings.Contains(strings.ReplaceAll(page, `\_`, "_"), want) {
					t.Errorf("the report lacks %q:\n%s", want, page)
				}
			}
			if !slices.Contains(test.bounds, p.Bound) {
				t.Errorf("bound %s (%s), want one of %v", p.Bound, p.Why, test.bounds)
			}
			if p.Bound == record.RateReached {
				if p.BegunSpans < *p.OfferedSpans*95/100 || p.BegunSpans > *p.OfferedSpans {
					t.Errorf("begun %d of %d offered", p.BegunSpans, *p.OfferedSpans)
				}
				return
			}
			if p.BegunSpans >= *p.OfferedSpans || *p.LateSpans == 0 || *p.LateMaxMS < 100 {
				t.Errorf("pace %+v", p)
			}
			if run.Request != nil && run.Request.P99 < p.Service.P99 {
				t.Errorf("response %+v, service %+v: the wait before sending is hidden", run.Request, p.Service)
			}
		})
	}
}

// checkLedger knows what each client can promise.
func checkLedger(t *testing.T, client string, run record.Run, page string) {
	t.Helper()
	l := run.Ledger
	if l.Foreign != nil && *l.Foreign != 0 || l.Duplicates != nil && *l.Duplicates != 0 || l.Missing != 0 {
		t.Errorf("ledger %+v", l)
	}
	for _, law := range l.Laws {
		if !law.Holds {
			t.Errorf("law broken: %+v", law)
		}
	}
	if client == "thrift-udp" {
		if run.Verdict == record.Lossy || run.Sent.Pace.UDP == nil {
			t.Errorf("verdict %s, UDP %+v\n%s", run.Verdict, run.Sent.Pace.UDP, page)
		}
		return
	}
	if run.Verdict != record.Whole {
		t.Errorf("verdict %s, ledger %+v", run.Verdict, l)
	}
}
