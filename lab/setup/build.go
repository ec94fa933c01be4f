package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// buildLimit bounds one build with an empty module and build cache.
const buildLimit = 40 * time.Minute

// platform is what a binary is built for: this machine, or linux on the Docker daemon's
// architecture.
type platform struct {
	os, arch string
}

func thisPlatform() platform { return platform{runtime.GOOS, runtime.GOARCH} }

// builder builds programs of the table into the cache.
type builder struct {
	root  string // of the checkout
	cache string
	say   Say
}

func newBuilder(say Say) (builder, error) {
	root, err := checkout()
	if err != nil {
		return builder{}, err
	}
	cache, err := CacheDir()
	if err != nil {
		return builder{}, err
	}
	return builder{root: root, cache: cache, say: say}, nil
}

// path is where a program of a pinned version is kept.
func (b builder) path(p program, on platform) string {
	return filepath.Join(b.cache, "bin", strings.Join([]string{p.name, p.version, on.os, on.arch}, "-"))
}

// stamp is what a binary was built from: the pinned modules and the flags. A changed pin gives
// another stamp, and with it a new build under the same name.
func (b builder) stamp(p program) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(b.root, p.folder, name))
		if err != nil {
			return "", fmt.Errorf("read the pinned versions of %s: %w", p.name, err)
		}
		sum.Write(data)
	}
	fmt.Fprintln(sum, p.pkg, p.tags, p.ldflags)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// built returns the path of an up-to-date binary, or why there is none.
func (b builder) built(p program, on platform) (path, why string, err error) {
	want, err := b.stamp(p)
	if err != nil {
		return "", "", err
	}
	path = b.path(p, on)
	if _, err := os.Stat(path); err != nil {
		return path, "not built yet", nil
	}
	seen, err := os.ReadFile(path + ".stamp")
	if err != nil || strings.TrimSpace(string(seen)) != want {
		return path, "built from other pinned versions", nil
	}
	return path, "", nil
}

// build makes an up-to-date binary and returns its path. A pinned program that is up to date is
// left alone; a program of the checkout is built each time, which is quick when nothing changed.
func (b builder) build(ctx context.Context, p program, on platform) (string, error) {
	if err := os.MkdirAll(filepath.Join(b.cache, "bin"), 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w; LAB_CACHE names another cache folder", p.name, err)
	}
	if p.fromCheckout() {
		return b.buildCheckout(ctx, p, on)
	}
	path, why, err := b.built(p, on)
	if err != nil || why == "" {
		return path, err
	}
	stamp, err := b.stamp(p)
	if err != nil {
		return "", err
	}
	aside := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	defer os.Remove(aside) // gone already when the build went well
	started := time.Now()
	if err := b.compile(ctx, p, on, aside); err != nil {
		return "", err
	}
	// The stamp goes first: a binary without its stamp is rebuilt, the other way round it would lie.
	if err := os.Remove(path + ".stamp"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("build %s: %w", p.name, err)
	}
	if err := os.Rename(aside, path); err != nil {
		return "", fmt.Errorf("build %s: %w", p.name, err)
	}
	if err := writeFile(path+".stamp", strings.NewReader(stamp+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("build %s: write its stamp: %w", p.name, err)
	}
	b.say("built %s %s for %s/%s in %s", p.name, p.version, on.os, on.arch, time.Since(started).Round(time.Second))
	return path, nil
}

// buildCheckout builds one of the lab's own programs and keeps it under the hash of its content,
// so that a run that started with it is not changed by the next build.
func (b builder) buildCheckout(ctx context.Context, p program, on platform) (string, error) {
	fixed := filepath.Join(b.cache, "bin", strings.Join([]string{p.name, "checkout", on.os, on.arch}, "-"))
	unlock, err := lockFile(ctx, fixed+".lock", b.say)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.name, err)
	}
	defer unlock()
	if err := b.compile(ctx, p, on, fixed); err != nil {
		return "", err
	}
	hash, err := fileHash(fixed)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.name, err)
	}
	path := filepath.Join(b.cache, "bin", strings.Join([]string{p.name, hash[:12], on.os, on.arch}, "-"))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	file, err := os.Open(fixed)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.name, err)
	}
	defer file.Close()
	if err := writeFile(path, file, 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", p.name, err)
	}
	b.forget(p, path)
	return path, nil
}

// forget removes copies of a checkout program that no run of the last day can be using.
func (b builder) forget(p program, keep string) {
	old, _ := filepath.Glob(filepath.Join(b.cache, "bin", p.name+"-*")) // the pattern is a constant one
	for _, path := range old {
		info, err := os.Stat(path)
		if err == nil && path != keep && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.Remove(path) // a copy left behind costs only space
		}
	}
}

// compile runs go build. CGO is off so that the same binary runs in an image made FROM scratch.
func (b builder) compile(ctx context.Context, p program, on platform, out string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("build %s: no go command in PATH; install Go 1.26 or newer (https://go.dev/dl)", p.name)
	}
	argv := []string{goTool, "build", "-trimpath", "-v", fmt.Sprintf("-p=%d", buildJobs()), "-o", out}
	if p.fromCheckout() {
		argv = append(argv, "-buildvcs=false") // content decides, not the commit
	}
	ldflags := "-s -w"
	if p.ldflags != "" {
		ldflags += " " + p.ldflags
	}
	argv = append(argv, "-ldflags", ldflags)
	if p.tags != "" {
		argv = append(argv, "-tags", p.tags)
	}
	argv = append(argv, p.pkg)
	return job{
		what: strings.TrimSpace("build " + p.name + " " + p.version), hint: "a first build takes about " + p.first,
		dir: filepath.Join(b.root, p.folder), argv: argv, limit: buildLimit,
		env:   []string{"CGO_ENABLED=0", "GOOS=" + on.os, "GOARCH=" + on.arch, "GOWORK=off"},
		count: "packages", isCount: func(line string) bool { return !strings.HasPrefix(line, "go: ") },
	}.run(ctx, b.say)
}

// buildJobs bounds how many packages are compiled at once: one a CPU, and about 1.5 GiB of memory
// for each, which is what linking Jaeger takes.
func buildJobs() int {
	jobs := runtime.NumCPU()
	if free, err := memoryAvailable(os.ReadFile); err == nil {
		jobs = min(jobs, int(free/(3<<29)))
	}
	return max(jobs, 1)
}

func fileHash(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
