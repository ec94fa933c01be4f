package report

import (
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// targetRecord is a run on the user's own stack, whose servers call themselves something hostile.
func targetRecord() record.Record {
	s := baseSpec(spec.Backend{Engine: spec.Cassandra})
	s.Runtime, s.Profile, s.Replication = spec.Process, spec.None, 0
	s.Target = &spec.Target{Name: "staging"}
	run := cassandraRun(44_000, 0, 43_500)
	run.Spec = spec.Arm{Backend: spec.Backend{Engine: spec.Cassandra}, Collector: "v2", Client: "otlp-grpc", Profile: spec.None, Target: "staging"}
	run.Arm, run.Profile, run.Runtime, run.Ledger.Foreign = run.Spec.Name(), spec.None, spec.Process, nil
	run.Engine.Version, run.Engine.Differences = `5.0<img src=x onerror=alert(1)>|`, []string{"its settings, limits and other load are not known"}
	run.Nodes = []record.Node{{Name: "collector", Host: spec.CollectorHost, Enforced: true}, {Name: "load", Host: spec.LoadHost, Enforced: true,
		CPUSeconds: ptr(3.5)}}
	return baseRecord(s, run)
}

// TestTargetIsLabelled: before any figure, and what can't be seen of it is n/a with the reason.
func TestTargetIsLabelled(t *testing.T) {
	r := targetRecord()
	doc := Of(r)
	if !strings.HasPrefix(doc.Notes[0], "TARGET: staging is the user's own") {
		t.Errorf("the first line is %q", doc.Notes[0])
	}
	cells := map[string]string{}
	for _, table := range doc.Tables {
		for _, row := range table.Rows {
			for i, c := range row {
				name := table.Columns[i].Title
				if table.Title == "Resources" {
					name = row[1].Text + " " + name
				}
				cells[name] = c.Text
			}
		}
	}
	for name, want := range map[string]string{
		"collector " + colLimits.Title: notAvailable, "collector " + colInForce.Title: notAvailable, "collector " + colCPU.Title: notAvailable,
		"load " + colLimits.Title: noLimits, "foreign": notAvailable,
	} {
		if cells[name] != want {
			t.Errorf("%s is %q, want %q", name, cells[name], want)
		}
	}
	if engine := cells[colEngine.Title]; !strings.Contains(engine, "2 nodes\n{'class'") {
		t.Errorf("engine %q: copies are what the server says", engine)
	}
	terminal, markdown := rendered(t, r)
	page := htmlOf(t, r)
	for format, text := range map[string]string{"terminal": terminal, "markdown": markdown, "html": page} {
		if !strings.Contains(text, "TARGET: ") {
			t.Errorf("%s does not say that it is a target", format)
		}
		for _, never := range []string{"RF 0", "RF 1", "ships", "cassandra:0"} {
			if strings.Contains(text, never) {
				t.Errorf("%s says %q of a target", format, never)
			}
		}
	}
	if strings.Contains(page, "<img src=x") || strings.Contains(markdown, "<img src=x") {
		t.Error("what the target calls itself is markup in the report")
	}
}
