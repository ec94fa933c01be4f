package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jaegerlab/compose/images"
	"jaegerlab/lab/spec"
)

// The version a program is found by and the one its go.mod pins are written in two places: they agree.
func TestPinsAgreeWithGoMod(t *testing.T) {
	root, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.Concat(programs, peers) {
		if p.module == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, p.folder, "go.mod"))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(data), p.module) {
			t.Errorf("%s: %s/go.mod does not pin %q", p.name, p.folder, p.module)
		}
	}
}

func TestEveryImageHasARecipe(t *testing.T) {
	for _, p := range programs {
		if p.local == "" {
			continue
		}
		if _, err := images.Files.ReadFile(p.recipe + ".Dockerfile"); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

func TestArmPrograms(t *testing.T) {
	common := []string{Load, NodeExporter, Prometheus}
	cases := []struct {
		backend   spec.Backend
		collector string
		want      []string
	}{
		{spec.Backend{Engine: spec.Cassandra, Nodes: 2}, "v2", []string{Cassandra, Jaeger}},
		{spec.Backend{Engine: spec.Scylla, Nodes: 3}, "v1", []string{Scylla, Jaeger, JaegerV1Collector}},
		{spec.Backend{Engine: spec.Badger}, "v2-stock", []string{Jaeger}},
		{spec.Backend{Engine: spec.Badger}, "v1", []string{JaegerV1AllInOne}},
		{spec.Backend{Engine: spec.Memory}, "own.yaml", nil},
		{spec.Backend{Engine: spec.Cassandra, Nodes: 1}, "own.yaml", []string{Cassandra, Jaeger}}, // the schema's owner
	}
	for _, c := range cases {
		got := ArmPrograms(spec.Arm{Backend: c.backend, Collector: c.collector})
		if want := append(slices.Clone(common), c.want...); !slices.Equal(got, want) {
			t.Errorf("%s %s needs %v, want %v", c.backend, c.collector, got, want)
		}
	}
}

func TestNeedOfHasNoRepeats(t *testing.T) {
	s := spec.Default()
	s.Backends = []spec.Backend{{Engine: spec.Cassandra, Nodes: 2}, {Engine: spec.Badger}}
	need := NeedOf(s, spec.Process)
	want := []string{Load, NodeExporter, Prometheus, Cassandra, Jaeger}
	if !slices.Equal(need.Programs, want) {
		t.Errorf("got %v, want %v", need.Programs, want)
	}
}

// fakeCheckout is a checkout with one tool, and a cache.
func fakeCheckout(t *testing.T) (builder, program) {
	t.Helper()
	b := builder{root: t.TempDir(), cache: t.TempDir(), say: t.Logf}
	p := program{name: "tool", version: "1.0", folder: "tools/tool", pkg: "example.org/tool"}
	writeAll(t, filepath.Join(b.root, p.folder), map[string]string{"go.mod": "module tool\n", "go.sum": "sums 1\n"})
	return b, p
}

func writeAll(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// A binary counts as built only while the pins and flags it was built from are the current ones.
func TestChangedPinNeedsABuild(t *testing.T) {
	b, p := fakeCheckout(t)
	on := platform{"linux", "amd64"}
	check := func(when, want string) {
		t.Helper()
		if _, why, err := b.built(p, on); err != nil || why != want {
			t.Errorf("%s: %q, %v; want %q", when, why, err, want)
		}
	}
	check("empty cache", "not built yet")
	stamp, err := b.stamp(p)
	if err != nil {
		t.Fatal(err)
	}
	writeAll(t, filepath.Join(b.cache, "bin"), map[string]string{"tool-1.0-linux-amd64": "binary"})
	check("binary of an interrupted build, without a stamp", "built from other pinned versions")
	writeAll(t, filepath.Join(b.cache, "bin"), map[string]string{"tool-1.0-linux-amd64.stamp": stamp + "\n"})
	check("built", "")
	writeAll(t, filepath.Join(b.root, p.folder), map[string]string{"go.sum": "sums 2\n"})
	check("changed pin", "built from other pinned versions")
	writeAll(t, filepath.Join(b.root, p.folder), map[string]string{"go.sum": "sums 1\n"})
	p.tags = "other"
	check("changed flags", "built from other pinned versions")
}

// A build that breaks leaves no binary and tells what the compiler said.
func TestBrokenBuildTellsWhy(t *testing.T) {
	b, p := fakeCheckout(t)
	p.pkg = "."
	writeAll(t, filepath.Join(b.root, p.folder), map[string]string{
		"go.mod": "module example.org/tool\n\ngo 1.26\n", "go.sum": "",
		"main.go": "package main\n\nfunc main() { planted() }\n"})
	_, err := b.build(t.Context(), p, thisPlatform())
	if err == nil || !strings.Contains(err.Error(), "undefined: planted") || !strings.Contains(err.Error(), "build tool") {
		t.Errorf("the error is %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.cache, "bin", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestNeedOfATarget: the load node alone, and what watches it where the target has no Prometheus.
func TestNeedOfATarget(t *testing.T) {
	s := spec.Spec{Backends: []spec.Backend{{Engine: spec.Cassandra}}, Collectors: []string{"v2"}, Clients: []string{"otlp-grpc"},
		Target: &spec.Target{Name: "staging", Prometheus: "127.0.0.1:9090"}}
	if got := NeedOf(s, spec.Process).Programs; !slices.Equal(got, []string{Load}) {
		t.Errorf("with its own Prometheus: %v", got)
	}
	s.Target.Prometheus = ""
	if got := NeedOf(s, spec.Process).Programs; !slices.Equal(got, []string{Load, NodeExporter, Prometheus}) {
		t.Errorf("without: %v", got)
	}
}
