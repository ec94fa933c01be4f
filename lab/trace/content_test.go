package trace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"jaegerlab/lab/trace"
)

// The default is the original experiment: whoever changes it changes what every result means.
func TestDefaultContentIsTheOriginalExperiment(t *testing.T) {
	n := trace.New(7, 10)
	content := trace.Content{Seed: 99, Tags: 2, Services: 1, TagValues: 1}
	tags := []trace.Tag{{Key: "tag-0", Value: "value-0"}, {Key: "tag-1", Value: "value-1"}}
	root := content.Span(n, trace.Ref{Worker: 3, Index: 22}, 1000)
	want := trace.Span{
		ID: n.ID(trace.Ref{Worker: 3, Index: 22}), Service: "jaegerlab", Operation: "root",
		StartUS: 1000, DurationUS: 11, Tags: tags,
	}
	if diff := cmp.Diff(want, root); diff != "" {
		t.Errorf("root differs (-want +got):\n%s", diff)
	}
	child := content.Span(n, trace.Ref{Worker: 3, Index: 32}, 1000)
	want = trace.Span{
		ID: n.ID(trace.Ref{Worker: 3, Index: 32}), Parent: root.ID.Span, Service: "jaegerlab", Operation: "child",
		StartUS: 1010, DurationUS: 1, Tags: tags,
	}
	if diff := cmp.Diff(want, child); diff != "" {
		t.Errorf("last child differs (-want +got):\n%s", diff)
	}
}

// Spans are a trace only if each lies within its parent, whatever the shape.
func TestSpansLieWithinTheirParents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 3000).Draw(t, "width")
		shape := rapid.SampledFrom(trace.Shapes()).Draw(t, "shape")
		for position := range width {
			offset, duration := shape.Timing(position, width)
			if offset != int64(position) || duration < 1 {
				t.Fatalf("position %d of %d: offset %d, duration %d", position, width, offset, duration)
			}
			if position == 0 {
				continue
			}
			parent := shape.Parent(position)
			start, long := shape.Timing(parent, width)
			if parent < 0 || parent >= position || offset < start || offset+duration > start+long {
				t.Fatalf("%s: position %d of %d: %d+%d, parent %d: %d+%d", shape, position, width, offset, duration,
					parent, start, long)
			}
		}
	})
}

// The share of errors is exact, not about right, and repeats as a sender's pool of requests expects.
func TestErrorShareIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := trace.Content{Seed: rapid.Uint64().Draw(t, "seed"), ErrorPercent: rapid.IntRange(0, 100).Draw(t, "percent")}
		from, period, errors := rapid.Uint64Max(trace.MaxIndex/2).Draw(t, "from"), uint64(c.ErrorPeriod()), 0
		for index := from; index < from+100; index++ {
			if c.IsError(index) {
				errors++
			}
			if c.IsError(index) != c.IsError(index+period) {
				t.Fatalf("%d %%: span %d and the one %d later differ", c.ErrorPercent, index, period)
			}
		}
		if errors != c.ErrorPercent || 100%period != 0 {
			t.Fatalf("%d errors in 100 spans, want %d; period %d", errors, c.ErrorPercent, period)
		}
	})
}

// A knob for distinct values must give exactly that many, not about that many.
func TestKnobsGiveTheAskedNumberOfDistinctNames(t *testing.T) {
	content := trace.Content{Seed: 5, Tags: 1, Services: 7, TagValues: 20, ResourceAttributes: 3,
		Operations: 30, TagLength: 50, TracesPerService: 3}
	services, values, operations := map[string]int{}, map[string]int{}, map[string]int{}
	for seq := range uint64(21) {
		services[content.Service(2, seq)]++
	}
	for index := range uint64(2000) {
		values[content.Value(2, index, 0)]++
		operations[content.Operation(2, index, 0)]++
	}
	if len(services) != 7 || len(values) != 20 || len(operations) != 30 {
		t.Errorf("services %d, values %d, operations %d: want 7, 20, 30", len(services), len(values), len(operations))
	}
	for value, count := range values {
		if count < 50 || count > 200 {
			t.Errorf("value %s occurs %d times in 2000 spans of 20 values", value, count)
		}
		if len(value) != content.TagLength {
			t.Errorf("value %q is not %d bytes long", value, content.TagLength)
		}
	}
	if got := len(content.Resource()); got != 3 {
		t.Errorf("resource attributes: %d, want 3", got)
	}
}

func TestContentIsAPureFunctionOfSeedAndIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := trace.Content{
			Seed: rapid.Uint64().Draw(t, "seed"), Tags: 3, Services: rapid.IntRange(0, 50).Draw(t, "services"),
			TagValues: rapid.IntRange(0, 1000).Draw(t, "values"),
		}
		n := trace.New(1, rapid.IntRange(0, 20).Draw(t, "children"))
		ref := trace.Ref{Worker: rapid.Uint32Max(trace.MaxWorkers-1).Draw(t, "worker"),
			Index: rapid.Uint64Max(trace.MaxIndex).Draw(t, "index")}
		if diff := cmp.Diff(content.Span(n, ref, 10), content.Span(n, ref, 10)); diff != "" {
			t.Fatal(diff)
		}
	})
}
