//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	psprocess "github.com/shirou/gopsutil/v4/process"

	"jaegerlab/lab/spec"
)

// runMarker is the environment variable by which even a grandchild that left its process group
// is known as the lab's.
const runMarker = "JAEGERLAB_RUN"

// entry runs in the child before the program: it enters the cgroups, so that not one page or
// thread of the program escapes them, writes pid and start time to disk, so that a lab killed at
// any moment leaves no unknown process, and becomes the program, with the same pid.
// $1 is the state file, then come cgroup folders up to "--", then the program.
const entry = `state=$1; shift
while [ "$1" != -- ]; do
	echo $$ > "$1/cgroup.procs" || exit 125
	shift
done
shift
if [ -r /proc/$$/stat ]; then read -r line < /proc/$$/stat; else line="$$ $(ps -o lstart= -p $$)"; fi
echo "$line" > "$state" || exit 125
exec "$@"`

// wrap turns a command into one that goes through entry, in a process group of its own.
func wrap(cmd *exec.Cmd, stateFile string, group *cgroup) {
	head := append([]string{"/bin/sh", "-c", entry, "jaegerlab", stateFile}, group.folders()...)
	cmd.Args = slices.Concat(head, []string{"--", cmd.Path}, cmd.Args[1:])
	cmd.Path = "/bin/sh"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// signalGroup reaches every process of a group. A group that is gone is no error.
func signalGroup(pid int, sig syscall.Signal) error {
	if pid <= 1 {
		return fmt.Errorf("no process group %d", pid)
	}
	if err := syscall.Kill(-pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EPERM) {
		return err
	}
	return nil
}

// usageOfProcess is what is known without a cgroup: CPU seconds of the program and the children
// it waited for, and its resident memory. Throttling and OOM kills can't be known.
func usageOfProcess(ctx context.Context, pid int) (Usage, error) {
	u := Usage{At: time.Now()}
	process, err := psprocess.NewProcessWithContext(ctx, int32(pid))
	if err != nil {
		return u, err
	}
	if times, err := process.TimesWithContext(ctx); err == nil {
		seconds := times.User + times.System
		u.CPUSeconds = &seconds
	}
	if memory, err := process.MemoryInfoWithContext(ctx); err == nil {
		resident, peak := int64(memory.RSS), int64(memory.HWM)
		u.MemoryBytes = &resident
		if peak > 0 {
			u.MemoryPeakBytes = &peak
		}
	}
	return u, nil
}

// usageAtExit is what the kernel says of a program that has ended, without a cgroup.
func usageAtExit(state *os.ProcessState) Usage {
	u := Usage{At: time.Now()}
	if state == nil {
		return u
	}
	seconds := (state.UserTime() + state.SystemTime()).Seconds()
	u.CPUSeconds = &seconds
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		peak := int64(usage.Maxrss) * maxrssUnit
		u.MemoryPeakBytes = &peak
	}
	return u
}

// exitText says how a program ended: status or signal by name, an OOM kill with its limit, and
// whether the lab asked for it.
func exitText(state *os.ProcessState, usage Usage, limits *spec.Limits, asked bool) string {
	oom := ""
	if usage.OOMKills != nil && *usage.OOMKills > 0 {
		oom = "out of memory"
		if limits != nil && limits.MemoryBytes > 0 {
			oom += " at its limit of " + formatBytes(limits.MemoryBytes)
		}
	}
	text := "ended in an unknown way"
	if status, ok := state.Sys().(syscall.WaitStatus); ok {
		switch {
		case status.Signaled() && status.Signal() == syscall.SIGKILL && oom != "":
			return "killed: " + oom
		case status.Signaled():
			text = fmt.Sprintf("killed by %s (%s)", signalName(status.Signal()), status.Signal())
		default:
			text = fmt.Sprintf("exit status %d", status.ExitStatus())
		}
	}
	if oom != "" {
		text += "; a process of it was killed: " + oom
	}
	if asked {
		text += ", as the lab asked"
	}
	return text
}
