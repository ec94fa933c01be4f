package lab

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
)

func collectorFiles(t *testing.T, texts map[string]string) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(texts[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// TestCollectorFilesAreReadFirst: what is wrong with collector files is said before anything starts,
// all of it at once, each with its path.
func TestCollectorFilesAreReadFirst(t *testing.T) {
	s := spec.Default()
	s.Runtime, s.Backends = spec.Process, []spec.Backend{{Engine: spec.Badger}}
	s.Clients = []string{"thrift-udp"}
	s.Collectors = append(collectorFiles(t, map[string]string{
		"1-field.yaml": "colour: red\n", "2-image.yaml": "image: jaegertracing/jaeger:2.20.0\n", "3-old.yaml": "flavour: v1\n",
		"4-name.yaml": "name: twin\n", "5-again.yaml": "name: twin\n",
	}), "no-such.yaml", "v2")
	_, _, err := readCollectors(t.Context(), s)
	if err == nil {
		t.Fatal("no error")
	}
	for path, want := range map[string]string{
		"1-field.yaml": "no such field", "2-image.yaml": "binary: missing", "3-old.yaml": "has no UDP receiver",
		"5-again.yaml": "it is called twin", "no-such.yaml": "no such file",
	} {
		found := slices.ContainsFunc(strings.Split(err.Error(), "LAB_COLLECTOR="), func(one string) bool {
			return strings.Contains(one, path) && strings.Contains(one, want)
		})
		if !found {
			t.Errorf("nothing says %q of %s: %v", want, path, err)
		}
	}
}

// TestCollectorFilesNameTheirArms: an arm is called what its file says, and a file that changes
// settings only needs the pinned program.
func TestCollectorFilesNameTheirArms(t *testing.T) {
	s := spec.Default()
	s.Runtime, s.Backends = spec.Process, []spec.Backend{{Engine: spec.Badger}}
	s.Collectors = collectorFiles(t, map[string]string{
		"named.yaml": "name: small\nenv: [GOMAXPROCS=1]\n", "old.yaml": "flavour: v1\n",
	})
	s, own, err := readCollectors(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(s.Arms()), []string{"badger small otlp-grpc", "badger old otlp-grpc"}; !slices.Equal(got, want) {
		t.Errorf("arms are %q, want %q", got, want)
	}
	programs := own.need(s).Programs
	for _, want := range []string{setup.Jaeger, setup.JaegerV1AllInOne} {
		if !slices.Contains(programs, want) {
			t.Errorf("%s is not needed, only %q", want, programs)
		}
	}
}
