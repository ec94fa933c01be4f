package stack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jaegerlab/lab/spec"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBuiltInFlavours(t *testing.T) {
	for name, want := range map[string]Flavour{
		"v2":       {Name: "v2", Generation: V2},
		"v2-stock": {Name: "v2-stock", Generation: V2, Stock: true},
		"v1":       {Name: "v1", Generation: V1},
	} {
		f, err := ParseFlavour(name)
		if err != nil || f.Name != want.Name || f.Generation != want.Generation || f.Stock != want.Stock {
			t.Errorf("ParseFlavour(%q) = %+v, %v; want %+v", name, f, err, want)
		}
	}
	if _, err := ParseFlavour("v3"); err == nil || !strings.Contains(err.Error(), "v2, v2-stock, v1") {
		t.Errorf("an unknown word must name what is accepted, got %v", err)
	}
}

// The example that the documentation points to must be a working one.
func TestExampleFileIsAccepted(t *testing.T) {
	f, err := ParseFlavour("testdata/collector-own.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "small-queue" || f.Image != "jaegertracing/jaeger:2.20.0" || len(f.Env) != 1 || len(f.Args) != 1 {
		t.Errorf("read %+v", f)
	}
	for _, engine := range []spec.Engine{spec.Cassandra, spec.Badger} {
		store := cassandraStore()
		if engine == spec.Badger {
			store = badgerStore()
		}
		if _, err := configV2(f, Ask{Arm: arm(engine, f.File), Store: store, Protocol: otlpGRPC()}); err != nil {
			t.Errorf("with %s: %v", engine, err)
		}
	}
}

// A user mends a file once: every fault is told at the first try, with what would be right.
func TestAllFaultsOfAFileAtOnce(t *testing.T) {
	path := writeFile(t, "bad.yaml", `
name: "Has Spaces"
flavor: v2
flavour: v3
image: ":::"
binary: ./nowhere
env: [NOEQUALS]
args: text
config: |
  service:
    # ${port.metrics} only in a comment
    telemetry: {}
`)
	_, err := ParseFlavour(path)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		path, `name: "Has Spaces"`, "a-z, 0-9", "flavor: no such field; the nearest is flavour",
		`flavour: "v3": accepted: v2, v1`,
		`image: ":::"`, `binary: "./nowhere"`, "NAME=value", `args: "text": accepted: a list of texts`,
		"${lab.storage} is missing", "${port.metrics} is missing",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

func TestFlavourFileForms(t *testing.T) {
	t.Run("JSON with a config path", func(t *testing.T) {
		dir := t.TempDir()
		config := "receivers: ${lab.receivers}\nstorage: ${lab.storage}\nport: ${port.metrics}\n"
		if err := os.WriteFile(filepath.Join(dir, "jaeger.yaml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "mine.json")
		if err := os.WriteFile(path, []byte(`{"config": "jaeger.yaml"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := ParseFlavour(path)
		if err != nil || f.Name != "mine" || f.Config != config || f.Generation != V2 {
			t.Errorf("got %+v, %v", f, err)
		}
	})
	t.Run("v1 takes no config", func(t *testing.T) {
		_, err := ParseFlavour(writeFile(t, "x.yml", "flavour: v1\nconfig: a.yaml\n"))
		if err == nil || !strings.Contains(err.Error(), "env and args") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a name of the lab's own", func(t *testing.T) {
		_, err := ParseFlavour(writeFile(t, "v1.yaml", "flavour: v1\n"))
		if err == nil || !strings.Contains(err.Error(), "take another name") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not a mapping", func(t *testing.T) {
		_, err := ParseFlavour(writeFile(t, "x.yaml", "- a\n"))
		if err == nil || !strings.Contains(err.Error(), "accepted fields") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not there", func(t *testing.T) {
		if _, err := ParseFlavour("nowhere.yaml"); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
			t.Errorf("got %v", err)
		}
	})
}

// An own image can't run as a process, nor an own binary in Docker: said before anything starts.
func TestOwnProgramMustFitTheRuntime(t *testing.T) {
	image := writeFile(t, "image.yaml", "image: jaegertracing/jaeger:2.20.0\n")
	runtime := &fakeRuntime{name: spec.Process}
	_, err := StartCollector(t.Context(), fakeEnv(runtime),
		Ask{Arm: arm(spec.Memory, image), Store: memoryStore(), Protocol: otlpGRPC()})
	if err == nil || !strings.Contains(err.Error(), "LAB_RUNTIME=docker") {
		t.Errorf("got %v", err)
	}
	if len(runtime.started) != 0 {
		t.Error("something was started")
	}
}
