//go:build unix

package load

import (
	"syscall"
	"time"
)

// cpuSeconds is the user and system time of this process so far; 0 when the kernel does not tell.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return (time.Duration(usage.Utime.Nano()) + time.Duration(usage.Stime.Nano())).Seconds()
}
