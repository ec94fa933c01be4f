package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// withCeilings adds five rounds of null (a black hole took 600,000 spans) and of memory (480,000
// saved) to a comparison of two stores.
func withCeilings(r record.Record) record.Record {
	for i := range 5 {
		null, memory := r.Runs[0], r.Runs[0]
		null.Spec.Backend, null.Spec.Collector = spec.Backend{Engine: spec.Null}, spec.NoCollector
		null.StoredInWindow, null.StoredInWindowSource, null.StoredAfterDrain, null.SavedInWindowCounter = nil, "", nil, nil
		null.ArrivedInWindow, null.Verdict, null.Facts = ptr(int64(600_000)), record.Unknown, &record.Facts{NoStore: true}
		memory.Spec.Backend, memory.StoredInWindow, memory.StoredInWindowSource = spec.Backend{Engine: spec.Memory}, nil, ""
		memory.SavedInWindowCounter = ptr(int64(480_000))
		for name, run := range map[string]*record.Run{"null": &null, "memory": &memory} {
			run.Arm, run.Round, run.Folder, run.Engine = run.Spec.Name(), i+1, fmt.Sprint(name, i), record.Engine{Name: name}
		}
		r.Runs = append(r.Runs, null, memory)
	}
	r.Spec.Backends = append(slices.Clone(r.Spec.Backends), spec.Backend{Engine: spec.Null}, spec.Backend{Engine: spec.Memory})
	return r
}

// Ceilings are said with each arm's share of them; they change neither what is compared nor who
// wins, and no decision names them.
func TestCeilingsAreSaidAndNeverRanked(t *testing.T) {
	plain, doc := Of(fairRecord()), Of(withCeilings(fairRecord()))
	var said string
	for _, note := range doc.Notes {
		if strings.HasPrefix(note, "Ceilings") {
			said = note
		}
	}
	for _, want := range []string{"generator 10,000 spans/s", "collector 8,000 spans/s", "cassandra:2 v2 otlp-grpc reaches 7 % of the generator's",
		"and 8 % of the collector's"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q lacks %q", said, want)
		}
	}
	winner := func(d Document) (names []string) {
		for _, j := range d.Judgements {
			if _, name, found := strings.Cut(j.Sentence, "Winner: "); found {
				names = append(names, name)
			}
			if strings.Contains(j.Sentence, "null") {
				t.Errorf("null is compared: %s", j.Sentence)
			}
		}
		return names
	}
	if before, after := winner(plain), winner(doc); len(before) != 1 || !slices.Equal(before, after) {
		t.Errorf("winners %q without ceilings and %q with them", before, after)
	}
}
