package lab

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
)

// sizeOf describes the machine that the nodes of a runtime will run on, before any is started.
func sizeOf(ctx context.Context, where spec.Runtime) (record.Host, error) {
	if where == spec.Process {
		return node.LocalHost(), nil
	}
	daemon, err := setup.AskDocker(ctx)
	if err != nil {
		return record.Host{}, err
	}
	return record.Host{
		OS: daemon.OS, Arch: daemon.Arch, CPUs: daemon.CPUs, MemoryBytes: daemon.MemoryBytes,
		CgroupVersion: daemon.CgroupVersion, Docker: daemon.Version,
	}, nil
}

// diskFree is the number of bytes free where results go; -1 when it can't be told.
func diskFree(dir string) int64 {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return -1
	}
	for {
		var stat unix.Statfs_t
		if unix.Statfs(dir, &stat) == nil {
			return int64(stat.Bavail) * int64(stat.Bsize)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return -1
		}
		dir = parent
	}
}

// labVersion is the commit of the checkout, marked when it has changes; else what the build says.
func labVersion(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output(); err == nil {
		return strings.TrimSpace(string(out))
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
