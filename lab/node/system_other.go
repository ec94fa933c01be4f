//go:build unix && !linux

package node

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const maxrssUnit = 1 // bytes here

func signalName(sig syscall.Signal) string { return unix.SignalName(sig) }

// parseStart reads "<pid> <start time as ps prints it>".
func parseStart(line string) (processID, error) {
	pidText, start, ok := strings.Cut(strings.TrimSpace(line), " ")
	pid, err := strconv.Atoi(pidText)
	if !ok || err != nil {
		return processID{}, fmt.Errorf("read process line %q: no pid and start time", line)
	}
	return processID{PID: pid, Start: strings.Join(strings.Fields(start), " ")}, nil
}

// processStart identifies a running process; an error when there is none, or only its corpse.
func processStart(pid int) (processID, error) {
	cmd := exec.Command("ps", "-o", "state=,lstart=", "-p", strconv.Itoa(pid))
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	output, err := cmd.Output()
	if err != nil {
		return processID{}, fmt.Errorf("no process %d: %w", pid, err)
	}
	state, start, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	if strings.HasPrefix(state, "Z") {
		return processID{}, fmt.Errorf("process %d has ended and waits for its parent", pid)
	}
	return parseStart(strconv.Itoa(pid) + " " + start)
}

// bootID is not needed here: start times are dates.
func bootID() string { return "" }

// marked can't be told here: other processes' environments are not readable.
func marked(string) []int { return nil }
