package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"jaegerlab/lab/node"
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
	api, err := node.ConnectDocker(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, dockerRemedy(err))
	}
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	info, err := api.Info(ctx, client.InfoOptions{})
	if err != nil {
		_ = api.Close() // the error that matters is the daemon's
		return nil, fmt.Errorf("ask Docker at %s what it is: %w; %s", api.DaemonHost(), err, dockerRemedy(err))
	}
	d := &docker{api: api, daemon: Daemon{
		Host: api.DaemonHost(), Version: info.Info.ServerVersion, OS: info.Info.OperatingSystem,
		Arch: goArch(info.Info.Architecture), CPUs: info.Info.NCPU, MemoryBytes: info.Info.MemTotal,
		Root: info.Info.DockerRootDir,
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
	return resolve(ctx, asked, AskDocker)
}

func resolve(ctx context.Context, asked spec.Runtime, ask func(context.Context) (Daemon, error)) (
	spec.Runtime, string, error) {
	if asked == spec.Process {
		return asked, "runtime process: asked for", nil
	}
	daemon, err := ask(ctx)
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
	return spec.Process, fmt.Sprintf("runtime process: no usable Docker daemon (%s)", firstLine(err)), nil
}
