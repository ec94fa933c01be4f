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

func TestSpansEndAfterTheyStartAndInsideTheirRoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 5000).Draw(t, "width")
		_, rootUS := trace.Timing(0, width)
		for position := range width {
			offset, duration := trace.Timing(position, width)
			if offset != int64(position) || duration < 1 || offset+duration > rootUS {
				t.Fatalf("position %d of %d: offset %d duration %d root %d", position, width, offset, duration, rootUS)
			}
		}
	})
}

// A knob for distinct values must give exactly that many, not about that many.
func TestKnobsGiveTheAskedNumberOfDistinctNames(t *testing.T) {
	content := trace.Content{Seed: 5, Tags: 1, Services: 7, TagValues: 20, ResourceAttributes: 3}
	services, values := map[string]int{}, map[string]int{}
	for seq := range uint64(7) {
		services[content.Service(2, seq)]++
	}
	for index := range uint64(2000) {
		values[content.Value(2, index, 0)]++
	}
	if len(services) != 7 || len(values) != 20 {
		t.Errorf("services %d, values %d: want 7 and 20", len(services), len(values))
	}
	for value, count := range values {
		if count < 50 || count > 200 {
			t.Errorf("value %s occurs %d times in 2000 spans of 20 values", value, count)
		}
		if len(value) != len("value-0-")+trace.ValueDigits {
			t.Errorf("value %q is not of fixed width", value)
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
