package setup

import (
	"archive/tar"
	"bytes"
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

func TestDockerHost(t *testing.T) {
	const meta = `{"Name":"desktop","Endpoints":{"docker":{"Host":"unix:///desk/docker.sock"}}}`
	config := `{"currentContext":"desktop"}`
	cases := []struct {
		name    string
		environ map[string]string
		files   map[string]string
		sockets []string
		want    string
	}{
		{"nothing", nil, nil, nil, "unix:///var/run/docker.sock"},
		{"DOCKER_HOST", map[string]string{"DOCKER_HOST": "tcp://h:1"}, nil, []string{"/var/run/docker.sock"}, "tcp://h:1"},
		{"current context", nil, map[string]string{"config.json": config, "meta.json": meta}, []string{"/var/run/docker.sock"},
			"unix:///desk/docker.sock"},
		{"default context", nil, map[string]string{"config.json": `{"currentContext":"default"}`},
			[]string{"/var/run/docker.sock"}, "unix:///var/run/docker.sock"},
		{"rootless", map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}, nil, []string{"/run/user/7/docker.sock"},
			"unix:///run/user/7/docker.sock"},
		{"Docker Desktop", nil, nil, []string{"/home/u/.docker/run/docker.sock"}, "unix:///home/u/.docker/run/docker.sock"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			getenv := func(name string) string {
				if name == "HOME" {
					return "/home/u"
				}
				return c.environ[name]
			}
			readFile := func(path string) ([]byte, error) {
				text, there := c.files[filepath.Base(path)]
				if !there {
					return nil, os.ErrNotExist
				}
				return []byte(text), nil
			}
			exists := func(path string) bool { return strings.Contains(strings.Join(c.sockets, " "), path) }
			if got := dockerHost(getenv, readFile, exists); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Without a daemon auto takes processes at once and says why; docker that was asked for is an error.
func TestResolveRuntimeWithoutDaemon(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none.sock"))
	runtime, why, err := ResolveRuntime(t.Context(), spec.Auto)
	if err != nil || runtime != spec.Process || !strings.Contains(why, "no Docker daemon answers") {
		t.Errorf("auto gives %s, %q, %v", runtime, why, err)
	}
	_, _, err = ResolveRuntime(t.Context(), spec.Docker)
	if err == nil || !strings.Contains(err.Error(), "none.sock") || !strings.Contains(err.Error(), "LAB_RUNTIME=process") {
		t.Errorf("docker gives %v", err)
	}
	if runtime, _, err := ResolveRuntime(t.Context(), spec.Process); err != nil || runtime != spec.Process {
		t.Errorf("process gives %s, %v", runtime, err)
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
	messages := `{"stream":"Step 1/2 : FROM scratch\n"}{"stream":"Step 2/2 : COPY a b\n"}{"errorDetail":{"message":"no such file"}}`
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
	if err := writeContext(io.Discard, []part{{name: "a", from: "/nowhere"}}); err == nil || !strings.Contains(err.Error(), "/nowhere") {
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
	for _, part := range []string{"/var/lib/cassandra/data", "storage_port: 7000", "native_transport_port: 9042", "auto_snapshot: true"} {
		if !strings.Contains(yaml, part) {
			t.Errorf("cassandra.yaml does not hold %q", part)
		}
	}
	other := fstest.MapFS{"cassandra.yaml": {Data: []byte("new: ${something.else}\n")}}
	if _, err := cassandraConf(other); err == nil || !strings.Contains(err.Error(), "placeholder") {
		t.Errorf("an unknown placeholder gives %v", err)
	}
}
