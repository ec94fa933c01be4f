package setup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/moby/moby/api/types/jsonstream"

	"jaegerlab/lab/spec"
)

// Without a daemon auto takes processes and says why; docker that was asked for is an error.
func TestResolve(t *testing.T) {
	answers := func(context.Context) (Daemon, error) { return Daemon{Version: "28.1"}, nil }
	silent := func(context.Context) (Daemon, error) { return Daemon{}, errors.New("planted: no socket") }
	cases := []struct {
		asked   spec.Runtime
		ask     func(context.Context) (Daemon, error)
		want    spec.Runtime
		why     string
		problem string
	}{
		{spec.Auto, answers, spec.Docker, "28.1", ""},
		{spec.Auto, silent, spec.Process, "planted: no socket", ""},
		{spec.Docker, answers, spec.Docker, "asked for", ""},
		{spec.Docker, silent, "", "", "planted: no socket"},
		{spec.Process, answers, spec.Process, "asked for", ""},
	}
	for _, c := range cases {
		got, why, err := resolve(t.Context(), c.asked, c.ask)
		if got != c.want || !strings.Contains(why, c.why) || (err == nil) != (c.problem == "") {
			t.Errorf("%s: got %q, %q, %v; want %q, %q, %q", c.asked, got, why, err, c.want, c.why, c.problem)
		}
	}
	// An interrupt while asking is no reason to take another runtime.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, _, err := resolve(ctx, spec.Auto, silent); err == nil {
		t.Errorf("an interrupted question gave %q", got)
	}
}

// A pull without progress is given up after the limit; one that moves is not.
func TestStallWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled := false
		watch := newStallWatch(30*time.Second, func() { cancelled = true })
		defer watch.stop()
		for range 3 {
			<-time.After(20 * time.Second)
			watch.moved()
		}
		if watch.stalled() || cancelled {
			t.Error("a pull that moves was given up")
		}
		<-time.After(31 * time.Second)
		synctest.Wait()
		if !watch.stalled() || !cancelled {
			t.Error("a pull without progress was not given up")
		}
		if err := pullError(t.Context(), "a:1", watch, errors.New("x")); !errors.Is(err, errUnreachable) {
			t.Errorf("the error is %v, want one that says the registry can't be reached", err)
		}
	})
}

func TestLayerProgress(t *testing.T) {
	layers := layerProgress{}
	layers.take(jsonstream.Message{ID: "a", Progress: &jsonstream.Progress{Current: 1e6, Total: 10e6}})
	layers.take(jsonstream.Message{ID: "a", Progress: &jsonstream.Progress{Current: 5e6, Total: 10e6}})
	layers.take(jsonstream.Message{ID: "b", Progress: &jsonstream.Progress{Current: 1e6, Total: 2e6}})
	layers.take(jsonstream.Message{Status: "Pulling"})
	if got := layers.String(); got != "6 of 12 MB" {
		t.Errorf("got %q", got)
	}
}

func TestDrainReturnsTheDaemonsError(t *testing.T) {
	messages := `{"stream":"Step 1/2 : FROM scratch\n"}{"stream":"Step 2/2 : COPY a b\n"}` +
		`{"errorDetail":{"message":"no such file"}}`
	err := drain(strings.NewReader(messages))
	if err == nil || !strings.Contains(err.Error(), "no such file") || !strings.Contains(err.Error(), "COPY a b") {
		t.Errorf("the error is %v", err)
	}
	if err := drain(strings.NewReader(`{"stream":"fine"}`)); err != nil {
		t.Errorf("a good answer gives %v", err)
	}
	if err := drain(strings.NewReader(`{"stream":`)); err == nil {
		t.Error("a cut answer passed")
	}
}

// The same parts give the same bytes, with the modes that recipes rely on.
func TestWriteContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	parts := append(skeleton(), part{name: "program", from: file, mode: 0o755})
	var once, twice bytes.Buffer
	if err := errors.Join(writeContext(&once, parts), writeContext(&twice, parts)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(once.Bytes(), twice.Bytes()) {
		t.Error("two contexts of the same parts differ")
	}
	modes := map[string]int64{}
	reader := tar.NewReader(&once)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[header.Name] = header.Mode
	}
	if modes["root/tmp/"] != 0o1777 || modes["program"] != 0o755 {
		t.Errorf("modes are %v", modes)
	}
	err := writeContext(io.Discard, []part{{name: "a", from: "/nowhere"}})
	if err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("an absent file gives %v", err)
	}
}

// The image's configuration is package backend's, with the image's folders and ports and what the
// distribution ships for the rest.
func TestCassandraConf(t *testing.T) {
	root, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := cassandraConf(os.DirFS(filepath.Join(root, "lab", "backend", "conf")))
	if err != nil {
		t.Fatal(err)
	}
	yaml := string(parts[0].data)
	for _, part := range []string{"/var/lib/cassandra/data", "storage_port: 7000",
		"native_transport_port: 9042", "auto_snapshot: true"} {
		if !strings.Contains(yaml, part) {
			t.Errorf("cassandra.yaml does not hold %q", part)
		}
	}
	other := fstest.MapFS{"cassandra.yaml": {Data: []byte("new: ${something.else}\n")}}
	if _, err := cassandraConf(other); err == nil || !strings.Contains(err.Error(), "placeholder") {
		t.Errorf("an unknown placeholder gives %v", err)
	}
}
