package report

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// roundsOf is a result with rounds of one arm that stored these spans in the window.
func roundsOf(stored ...int64) Saved {
	r := baseRecord(baseSpec(spec.Backend{Engine: spec.Cassandra, Nodes: 2}))
	for i, n := range stored {
		run := cassandraRun(n+500, 0, n)
		run.Round = i + 1
		r.Runs = append(r.Runs, run)
	}
	return Saved{Record: r}
}

// times multiplies what every round stored.
func times(s Saved, factor float64) Saved {
	s.Record.Runs = slices.Clone(s.Record.Runs)
	for i := range s.Record.Runs {
		n := int64(factor * float64(*s.Record.Runs[i].StoredInWindow))
		s.Record.Runs[i].StoredInWindow, s.Record.Runs[i].SavedInWindowCounter = &n, &n
	}
	return s
}

func every(s Saved, change func(*record.Run)) Saved {
	s.Record.Runs = slices.Clone(s.Record.Runs)
	for i := range s.Record.Runs {
		change(&s.Record.Runs[i])
	}
	return s
}

// emptied is the same with nothing stored in its first round.
func emptied(s Saved) Saved {
	return every(s, func(run *record.Run) {
		if run.Round == 1 {
			run.StoredInWindow, run.SavedInWindowCounter = ptr(int64(0)), ptr(int64(0))
		}
	})
}

// withDeath has one more round, in which the collector died.
func withDeath(s Saved) Saved {
	s = every(s, func(*record.Run) {})
	dead := s.Record.Runs[0]
	dead.Round, dead.Error = 6, "collector died in mid-run"
	dead.Nodes = []record.Node{{Name: "collector", Host: spec.CollectorHost, Exit: "SIGKILL"}}
	s.Record.Runs = append(s.Record.Runs, dead)
	return s
}

func TestGate(t *testing.T) {
	quiet := roundsOf(10_000, 10_050, 9_950, 10_020, 9_980)
	noisy := roundsOf(10_000, 12_050, 8_950, 11_020, 7_980)
	for name, test := range map[string]struct {
		old, new  Saved
		threshold float64
		quantity  string
		gate      Gate
		why       string
	}{
		"the same":                        {quiet, quiet, 0.05, "", Unchanged, "~"},
		"better":                          {quiet, times(quiet, 1.2), 0.05, "", Unchanged, "+20.0 %"},
		"worse beyond the threshold":      {quiet, times(quiet, 0.9), 0.05, "", Regressed, "-10.0 %"},
		"worse within the threshold":      {quiet, times(quiet, 0.97), 0.05, "", Unchanged, "-3.0 %"},
		"worse, the other threshold":      {quiet, times(quiet, 0.97), 0.01, "", Regressed, "-3.0 %"},
		"noise hides the threshold":       {noisy, times(noisy, 0.97), 0.05, "", Undecided, "rounds would find it"},
		"noise hides no halving":          {noisy, times(noisy, 0.4), 0.05, "", Regressed, "-60.0 %"},
		"too few rounds":                  {roundsOf(100, 100, 100), roundsOf(50, 50, 50), 0.05, "", Undecided, "needs 4 rounds"},
		"a new loss":                      {quiet, every(quiet, func(run *record.Run) { run.Ledger.Missing, run.Verdict = 1, record.Lossy }), 0.05, "", Regressed, "acked spans are missing"},
		"the same loss":                   {every(quiet, func(run *record.Run) { run.Ledger.Missing = 1 }), every(quiet, func(run *record.Run) { run.Ledger.Missing = 1 }), 0.05, "", Unchanged, ""},
		"unknown verdict":                 {quiet, every(quiet, func(run *record.Run) { run.Verdict = record.Unknown }), 0.05, "", Undecided, "is unknown"},
		"limits not in force":             {quiet, every(quiet, func(run *record.Run) { run.LimitsInForce = false }), 0.05, "", Undecided, "limits in force"},
		"a stand-in":                      {quiet, every(quiet, func(run *record.Run) { run.Engine.StandIn = true }), 0.05, "", Undecided, "stand-in"},
		"another load":                    {quiet, every(quiet, func(run *record.Run) { run.Load.DurationS = 10 }), 0.05, "", Undecided, "load is"},
		"a quantity that is exact":        {quiet, every(quiet, func(run *record.Run) { run.Ledger.Refused = 3 }), 0.05, "refused", Regressed, "refused: 15 in 5 rounds"},
		"a quantity that falls":           {quiet, every(quiet, func(run *record.Run) { run.DrainS = ptr(6.0) }), 0.05, "drain", Regressed, "+"},
		"a quantity nobody has":           {quiet, quiet, 0.05, "per_gb", Undecided, "not known in every round"},
		"one source in common only":       {quiet, every(quiet, func(run *record.Run) { run.StoredInWindow = nil }), 0.05, "", Unchanged, "counter"},
		"no source in common":             {quiet, every(quiet, func(run *record.Run) { run.StoredInWindow, run.SavedInWindowCounter = nil, nil }), 0.05, "", Undecided, "not known"},
		"a median of 0":                   {times(quiet, 0), quiet, 0.05, "", Undecided, "median is 0"},
		"an old round with nothing in it": {emptied(quiet), quiet, 0.05, "", Undecided, "nothing in them give no interval"},
		"a generator that held the new result back": {quiet, every(quiet, func(run *record.Run) {
			run.Nodes = []record.Node{{Name: "load", Host: spec.LoadHost, Asked: spec.Limits{CPUs: 1}, CPUSeconds: ptr(0.99 * run.WindowS)}}
		}), 0.05, "", Undecided, "was generator-bound in 5 of 5 rounds: load used 0.99 of 1 CPUs"},
		"a collector that died in one of six rounds": {quiet, withDeath(quiet), 0.05, "", Undecided, "died in 1 of 6 rounds (collector in round 6: SIGKILL)"},
		"larger requests": {quiet, every(quiet, func(run *record.Run) { run.Load.TracesPerRequest = 100 }), 0.05, "", Undecided,
			"100 traces a request"},
		"another arm, one in each": {quiet, every(quiet, func(run *record.Run) { run.Arm = "other" }), 0.05, "", Unchanged, ""},
		"a run that did not end is no round": {quiet, every(quiet, func(run *record.Run) {
			if run.Round > 2 {
				run.Error = "killed"
			}
		}), 0.05, "", Undecided, ""},
	} {
		c, err := Compare(test.old, test.new, test.threshold, test.quantity)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var out bytes.Buffer
		if err := Terminal(&out, c.Doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		if c.Gate != test.gate || !strings.Contains(text, test.why) || !strings.Contains(text, "Gate: "+test.gate.String()) {
			t.Errorf("%s: the gate is %s, want %s and %q:\n%s", name, c.Gate, test.gate, test.why, out.String())
		}
	}
}

func TestCompareRefusesWhatItCanNotRead(t *testing.T) {
	one := roundsOf(10, 10, 10, 10)
	two := every(one, func(run *record.Run) { run.Arm = "x" })
	two.Record.Runs = append(two.Record.Runs, record.Run{Arm: "y", Verdict: record.Whole})
	unended := every(one, func(run *record.Run) { run.Error = "killed" })
	for name, test := range map[string]struct {
		old, new  Saved
		threshold float64
		quantity  string
		want      string
	}{
		"threshold": {one, one, 0, "", "threshold"}, "threshold of 500 %": {one, one, 5, "", "threshold"},
		"quantity": {one, one, 0.05, "speed", "accepted are stored_in_window"},
		"arms":     {one, two, 0.05, "", "no arm is in both"},
		"no end":   {one, unended, 0.05, "", "measured to their end"},
		"nothing":  {one, Saved{}, 0.05, "", "measured to their end"},
	} {
		if _, err := Compare(test.old, test.new, test.threshold, test.quantity); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// An arm of one result alone is never silently left out, and makes the gate unknown.
func TestAMissingArmIsNamed(t *testing.T) {
	old := roundsOf(100, 101, 102, 103)
	new := every(old, func(*record.Run) {})
	new.Record.Runs = append(new.Record.Runs, badgerRun())
	new.Record.Experiment = "another"
	c, err := Compare(old, new, 0.05, "")
	if err != nil || c.Gate != Undecided {
		t.Fatalf("gate %v, %v", c.Gate, err)
	}
	notes := strings.Join(c.Doc.Notes, "\n")
	for _, want := range []string{"badger v2 otlp-grpc: unknown: measured in one of the two results only", "different experiments: backends and another"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
}

// Versions and hosts that differ are listed, and the gate still judges.
func TestConfoundersAreListed(t *testing.T) {
	old := roundsOf(10_000, 10_050, 9_950, 10_020, 9_980)
	new := every(times(old, 0.8), func(run *record.Run) {
		run.Engine.Version, run.Collector.Program.Version = "5.0.8", "2.20.0"
		run.Collector.Settings = map[string]string{"queue": "4000 spans"}
	})
	new.Record.Host.CPUs, new.Record.Lab = 4, "v0.2.0"
	c, err := Compare(old, new, 0.05, "")
	if err != nil || c.Gate != Regressed {
		t.Fatalf("gate %v, %v", c.Gate, err)
	}
	notes := strings.Join(c.Doc.Notes, "\n")
	for _, want := range []string{"engine (Apache Cassandra 5.0.6 against Apache Cassandra 5.0.8)", "jaeger 2.13.0 against jaeger 2.20.0", "4 x Example CPU", "v0.1.0 against v0.2.0", "setting queue"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
}

// Whatever of a load may decide a figure makes another load of it.
func TestEveryPartOfALoadCounts(t *testing.T) {
	usual := loadText(spec.Default().Load)
	if usual != loadText(defaultLoadOfOldRecords()) {
		t.Errorf("a load whose record lacks the later settings reads %q, want %q", loadText(defaultLoadOfOldRecords()), usual)
	}
	fields := reflect.TypeFor[spec.Load]()
	for i := range fields.NumField() {
		load := spec.Default().Load
		switch field := reflect.ValueOf(&load).Elem().Field(i); field.Kind() {
		case reflect.Int:
			field.SetInt(field.Int() + 7)
		case reflect.String:
			field.SetString("chain")
		case reflect.Bool:
			field.SetBool(true)
		}
		name := fields.Field(i).Name
		if same := loadText(load) == usual; same != (name == "DrainS") { // how long one waits after the load is no part of it
			t.Errorf("%s: taken for the same load: %v", name, same)
		}
	}
}

// defaultLoadOfOldRecords lacks what records of earlier labs lack.
func defaultLoadOfOldRecords() spec.Load {
	load := spec.Default().Load
	load.TracesPerRequest, load.MaxRequestSpans, load.Operations, load.Shape = 0, 0, 0, ""
	return load
}
