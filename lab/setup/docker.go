package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"jaegerlab/lab/spec"
)

// pingLimit is how long a daemon may take to answer before it counts as absent.
const pingLimit = 5 * time.Second

// Daemon is what a Docker daemon says of itself and of the machine it runs containers on.
type Daemon struct {
	Host          string // where it was reached
	Version       string
	OS            string // "Debian GNU/Linux 12", "Docker Desktop"
	Arch          string // in Go's spelling: amd64, arm64
	CPUs          int
	MemoryBytes   int64
	CgroupVersion int // 0 = it does not say
	Root          string
}

// docker is a connection to the daemon.
type docker struct {
	api    *client.Client
	daemon Daemon
}

// AskDocker connects to the Docker daemon and asks what it is. The error says where it was looked
// for, why it did not answer, and what helps.
func AskDocker(ctx context.Context) (Daemon, error) {
	d, err := connect(ctx)
	if err != nil {
		return Daemon{}, err
	}
	defer d.close()
	return d.daemon, nil
}

func connect(ctx context.Context) (*docker, error) {
	host := dockerHost(os.Getenv, os.ReadFile, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
	api, err := client.New(client.FromEnv, client.WithHost(host))
	if err != nil {
		return nil, fmt.Errorf("connect to Docker at %s: %w; DOCKER_HOST names another daemon", host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	_, err = api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	var info client.SystemInfoResult
	if err == nil {
		info, err = api.Info(ctx, client.InfoOptions{})
	}
	if err != nil {
		_ = api.Close() // the error that matters is the daemon's
		return nil, fmt.Errorf("ask Docker at %s: %w; %s", host, err, dockerRemedy(err))
	}
	d := &docker{api: api, daemon: Daemon{
		Host: host, Version: info.Info.ServerVersion, OS: info.Info.OperatingSystem, Arch: goArch(info.Info.Architecture),
		CPUs: info.Info.NCPU, MemoryBytes: info.Info.MemTotal, Root: info.Info.DockerRootDir,
	}}
	fmt.Sscan(info.Info.CgroupVersion, &d.daemon.CgroupVersion) // an old daemon says nothing: 0
	return d, nil
}

func (d *docker) close() { _ = d.api.Close() } // closes idle connections only

func dockerRemedy(err error) string {
	if errors.Is(err, os.ErrPermission) || strings.Contains(err.Error(), "permission denied") {
		return "add your user to the group docker and log in again, or run as root"
	}
	return "start Docker (Docker Desktop, or: sudo systemctl start docker), or set LAB_RUNTIME=process"
}

// dockerHost finds the daemon where the docker command would: DOCKER_HOST, the current context,
// and then the usual sockets.
func dockerHost(getenv func(string) string, readFile func(string) ([]byte, error), exists func(string) bool) string {
	if host := getenv("DOCKER_HOST"); host != "" {
		return host
	}
	home := getenv("HOME")
	if host := contextHost(getenv, readFile, home); host != "" {
		return host
	}
	sockets := []string{"/var/run/docker.sock", filepath.Join(getenv("XDG_RUNTIME_DIR"), "docker.sock"),
		filepath.Join(home, ".docker/run/docker.sock"), filepath.Join(home, ".docker/desktop/docker.sock")}
	for _, socket := range sockets {
		if filepath.IsAbs(socket) && exists(socket) {
			return "unix://" + socket
		}
	}
	return "unix:///var/run/docker.sock"
}

// contextHost reads the endpoint of the docker command's current context; "" for the default one.
func contextHost(getenv func(string) string, readFile func(string) ([]byte, error), home string) string {
	folder := getenv("DOCKER_CONFIG")
	if folder == "" {
		folder = filepath.Join(home, ".docker")
	}
	name := getenv("DOCKER_CONTEXT")
	if name == "" {
		var config struct{ CurrentContext string }
		data, err := readFile(filepath.Join(folder, "config.json"))
		if err != nil || json.Unmarshal(data, &config) != nil {
			return ""
		}
		name = config.CurrentContext
	}
	if name == "" || name == "default" {
		return ""
	}
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	id := sha256.Sum256([]byte(name)) // how the docker command names a context's folder
	data, err := readFile(filepath.Join(folder, "contexts", "meta", hex.EncodeToString(id[:]), "meta.json"))
	if err != nil || json.Unmarshal(data, &meta) != nil {
		return ""
	}
	return meta.Endpoints["docker"].Host
}

// goArch turns the kernel's name of an architecture, which the daemon reports, into Go's.
func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

// image is what the lab wants to know of an image that is present.
type image struct {
	id     string
	labels map[string]string
}

// Labels of images that the lab makes.
const (
	labelContent = "jaegerlab.content"  // hash of what the image was made from
	labelStandIn = "jaegerlab.stand-in" // "1": this is not ScyllaDB
	labelImage   = "jaegerlab.image"    // name of the program
)

// inspect tells whether an image is present, and never fetches one.
func (d *docker) inspect(ctx context.Context, ref string) (img image, present bool, err error) {
	seen, err := d.api.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) {
		return image{}, false, nil
	}
	if err != nil {
		return image{}, false, fmt.Errorf("look for image %s: %w", ref, err)
	}
	img.id = seen.ID
	if seen.Config != nil {
		img.labels = seen.Config.Labels
	}
	return img, true, nil
}

// ResolveRuntime turns auto into a runtime, with the reason in one line. Docker that was asked for
// and does not answer is an error.
func ResolveRuntime(ctx context.Context, asked spec.Runtime) (runtime spec.Runtime, why string, err error) {
	if asked == spec.Process {
		return asked, "runtime process: asked for", nil
	}
	daemon, err := AskDocker(ctx)
	switch {
	case err == nil && asked == spec.Docker:
		return spec.Docker, "runtime docker: asked for", nil
	case err == nil:
		return spec.Docker, fmt.Sprintf("runtime docker: a daemon answers (Docker %s)", daemon.Version), nil
	case asked == spec.Docker:
		return "", "", err
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	}
	return spec.Process, fmt.Sprintf("runtime process: no Docker daemon answers (%v)", errors.Unwrap(err)), nil
}
