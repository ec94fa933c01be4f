package setup

import (
	"context"
	"errors"
	"strings"
	"testing"

	"jaegerlab/lab/spec"
)

// fakeStore is a daemon that holds these images.
type fakeStore map[string]image

func (f fakeStore) inspect(_ context.Context, ref string) (image, bool, error) {
	img, present := f[ref]
	return img, present, nil
}

func TestFindImagePrefersThePublicOne(t *testing.T) {
	const public, local = "jaegertracing/jaeger:2.13.0", "jaegerlab/jaeger:2.13.0"
	cases := []struct {
		name     string
		store    fakeStore
		override string
		want     string
	}{
		{"both", fakeStore{public: {}, local: {}}, "", public},
		{"local only", fakeStore{local: {}}, "", local},
		{"override", fakeStore{public: {}, "me/jaeger:2.20.0": {}}, "me/jaeger:2.20.0", "me/jaeger:2.20.0"},
		{"absent override: nothing else is taken for it", fakeStore{public: {}}, "me/jaeger:2.20.0", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			overrides := map[string]string{}
			if c.override != "" {
				overrides[Jaeger] = c.override
			}
			catalog, err := findImages(t.Context(), c.store, overrides)
			if err != nil {
				t.Fatal(err)
			}
			binary, err := catalog.Binary(Jaeger)
			if binary.Image != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %+v, %v; want image %q", binary, err, c.want)
			}
		})
	}
}

// Case 36: without any image all missing ones are named at once, by exact name, each with its remedy.
func TestAllMissingImagesAreNamedAtOnce(t *testing.T) {
	catalog, err := findImages(t.Context(), fakeStore{}, map[string]string{Cassandra: "me/cassandra:9"})
	if err != nil {
		t.Fatal(err)
	}
	text := (&AbsentError{Items: catalog.Missing(NodeExporter, Prometheus, Jaeger, Cassandra, Scylla)}).Error()
	for _, part := range []string{
		"docker pull prom/node-exporter:v1.12.1", "docker pull prom/prometheus:v3.16.0", "jaegerlab/jaeger:2.13.0",
		"docker pull jaegertracing/jaeger:2.13.0, or make images", "docker pull me/cassandra:9",
		"docker pull scylladb/scylla:6.2.3",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the text does not hold %q:\n%s", part, text)
		}
	}
	_, err = catalog.Binary(Jaeger)
	if absent := new(AbsentError); !errors.As(err, &absent) {
		t.Errorf("Binary of an absent program gives %v, want an AbsentError", err)
	}
}

// A stand-in is labelled by its image, whatever name it was asked for under, and never chosen for scylla.
func TestStandInIsNamedAsOne(t *testing.T) {
	const ref = "jaegerlab/scylla-stand-in:1"
	store := fakeStore{ref: {id: "sha256:1", labels: map[string]string{labelStandIn: "1"}}}
	catalog, err := findImages(t.Context(), store, map[string]string{Scylla: ref})
	if err != nil {
		t.Fatal(err)
	}
	if binary, err := catalog.Binary(Scylla); err != nil || !strings.HasPrefix(binary.Version, "stand-in") {
		t.Errorf("got %+v, %v", binary, err)
	}
	catalog, err = findImages(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(catalog.Missing(Scylla)) != 1 {
		t.Error("the stand-in was taken for ScyllaDB without being asked for")
	}
}

func TestUnknownProgramsAreRefused(t *testing.T) {
	if _, err := findImages(t.Context(), fakeStore{}, map[string]string{"jager": "x"}); err == nil {
		t.Error("an override for an unknown program passed")
	}
	catalog := &Catalog{}
	if _, err := catalog.Binary("jager"); err == nil || !strings.Contains(err.Error(), Jaeger) {
		t.Errorf("the error is %v, want one that names the known programs", err)
	}
	if len(catalog.Missing("jager")) != 1 {
		t.Error("an unknown program is not missing")
	}
}

// An image override has no effect on processes: that is said, not ignored.
func TestImagesWithProcessesAreRefused(t *testing.T) {
	_, err := Find(t.Context(), spec.Process, map[string]string{Cassandra: "me/cassandra:9"})
	if err == nil || !strings.Contains(err.Error(), "me/cassandra:9") || !strings.Contains(err.Error(), "LAB_RUNTIME") {
		t.Errorf("the error is %v", err)
	}
}

func TestTagOf(t *testing.T) {
	for ref, want := range map[string]string{
		"a/b:1.2": "1.2", "host:5000/a/b": "latest", "host:5000/a:3": "3", "a@sha256:00": "sha256:00", "a": "latest",
	} {
		if got := tagOf(ref); got != want {
			t.Errorf("tag of %s is %q, want %q", ref, got, want)
		}
	}
}

// What only a default backend needs is left out with a remark; the same for a named one is an error.
func TestLeaveOut(t *testing.T) {
	problems := errors.Join(errors.New("scylla: pull: no route"), errors.New("jaeger: pull: no route"))
	said := ""
	say := func(format string, args ...any) { said += format }
	err := leaveOut(Need{}, problems, say)
	if err == nil || strings.Contains(err.Error(), "scylla") || !strings.Contains(err.Error(), "jaeger") || said == "" {
		t.Errorf("default backends: error %v, said %q", err, said)
	}
	if err := leaveOut(Need{Named: true}, problems, say); !strings.Contains(err.Error(), "scylla") {
		t.Errorf("named backends: error %v", err)
	}
	if err := leaveOut(Need{}, nil, say); err != nil {
		t.Errorf("no problems: %v", err)
	}
}
