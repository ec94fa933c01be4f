//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"

	"jaegerlab/lab/record"
)

const (
	answerBound = 5 * time.Second  // a daemon that answers later counts as not there
	beatPause   = 1 * time.Second  // between two looks at the daemon
	lostAfter   = 15 * time.Second // without an answer; a machine at full load is slow, not gone
)

// quietLogger keeps testcontainers' own lines out of the lab's output.
type quietLogger struct{}

func (quietLogger) Printf(string, ...any) {}

// prepareLibrary switches testcontainers' cleaner container off, before its first use: it needs
// an image of its own, and ends containers of a lab that is merely slow. The lab cleans up by
// label instead.
var prepareLibrary = sync.OnceValue(func() error {
	tclog.SetDefault(quietLogger{})
	return os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
})

// connect finds the daemon as testcontainers does: DOCKER_HOST, Docker's context, the usual
// sockets.
func connect(ctx context.Context) (api *client.Client, err error) {
	if err := prepareLibrary(); err != nil {
		return nil, fmt.Errorf("prepare testcontainers: %w", err)
	}
	defer func() {
		if cause := recover(); cause != nil { // the library panics where it finds no socket
			err = fmt.Errorf("find the Docker daemon: %v", cause)
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	found, err := testcontainers.NewDockerClientWithOpts(bounded)
	if err != nil {
		return nil, fmt.Errorf("find the Docker daemon: %w (DOCKER_HOST names another one)", err)
	}
	host := found.DaemonHost()
	if named := os.Getenv("DOCKER_HOST"); named != "" && named != host { // the library goes on looking elsewhere
		return nil, fmt.Errorf("find the Docker daemon: none answers at %s, which DOCKER_HOST names", named)
	}
	if !localDaemon(host) {
		return nil, fmt.Errorf("use the Docker daemon at %s: it is on another machine, and containers' ports are "+
			"published on its loopback address only (unset DOCKER_HOST, or LAB_RUNTIME=process)", host)
	}
	if err := ping(bounded, found.Client); err != nil {
		return nil, err
	}
	return found.Client, nil
}

func localDaemon(host string) bool {
	for _, local := range []string{"unix://", "npipe://", "tcp://127.0.0.1:", "tcp://localhost:"} {
		if strings.HasPrefix(host, local) {
			return true
		}
	}
	return false
}

func ping(ctx context.Context, api *client.Client) error {
	bounded, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	if _, err := api.Ping(bounded, client.PingOptions{}); err != nil {
		return fmt.Errorf("ask the Docker daemon at %s: %w", api.DaemonHost(), err)
	}
	return nil
}

// DockerAnswers reports within seconds whether a Docker daemon that the lab can use answers; the
// error says where it was looked for.
func DockerAnswers(ctx context.Context) error {
	api, err := connect(ctx)
	if err != nil {
		return err
	}
	return api.Close()
}

// DockerHost describes the machine that containers run on: the daemon's CPUs and memory, which
// on Docker Desktop are a virtual machine's.
func DockerHost(ctx context.Context) (record.Host, error) {
	api, err := connect(ctx)
	if err != nil {
		return record.Host{}, err
	}
	defer api.Close()
	facts, err := askDaemon(ctx, api)
	return facts.host, err
}

// ImagePresent reports whether the daemon has an image, and its id. Nothing is pulled.
func ImagePresent(ctx context.Context, image string) (id string, present bool, err error) {
	api, err := connect(ctx)
	if err != nil {
		return "", false, err
	}
	defer api.Close()
	found, err := api.ImageInspect(ctx, image)
	if errdefs.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look for image %s: %w", image, err)
	}
	return found.ID, true, nil
}

func imageError(image string, err error) error {
	if image == "" {
		return errors.New("no image for it on this daemon (run: make setup, or make images)")
	}
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("image %s is not on this daemon, and a run never pulls: run make images, or docker pull %s",
			image, image)
	}
	return fmt.Errorf("look for image %s: %w", image, err)
}

// daemonFacts is what a run needs to know of its daemon.
type daemonFacts struct {
	host record.Host
}

func askDaemon(ctx context.Context, api *client.Client) (daemonFacts, error) {
	bounded, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	result, err := api.Info(bounded, client.InfoOptions{})
	if err != nil {
		return daemonFacts{}, fmt.Errorf("ask the Docker daemon what it is: %w", err)
	}
	info := result.Info
	version, _ := strconv.Atoi(info.CgroupVersion) // an old daemon does not say: 0
	host := record.Host{
		OS: info.OSType, Arch: goArch(info.Architecture), Kernel: info.KernelVersion, CPUs: info.NCPU,
		MemoryBytes: info.MemTotal, CgroupVersion: version, Docker: info.ServerVersion,
	}
	if here := localHost(); runtime.GOOS == "linux" && here.Kernel == host.Kernel {
		host.CPUModel = here.CPUModel
	}
	return daemonFacts{host: host}, nil
}

// goArch spells the daemon's machine names as Go does.
func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

// heartbeat closes lost when the daemon has not answered for lostAfter. Its death by refusal
// counts at once, after a second look.
func (r *containers) heartbeat(ctx context.Context) {
	ticker := time.NewTicker(beatPause)
	defer ticker.Stop()
	lastAnswer, refused := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := ping(ctx, r.client)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			lastAnswer, refused = time.Now(), 0
			continue
		case client.IsErrConnectionFailed(err):
			refused++
		}
		if refused >= 3 || time.Since(lastAnswer) > lostAfter {
			r.lostWhy = err.Error()
			close(r.lost)
			return
		}
	}
}

func (r *containers) isLost() bool {
	select {
	case <-r.lost:
		return true
	default:
		return false
	}
}
