package node

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const maxrssUnit = 1024 // the kernel counts ru_maxrss in KiB here

func signalName(sig syscall.Signal) string { return unix.SignalName(sig) }

// parseStart reads pid and start time, in clock ticks since boot, from a line of /proc/PID/stat.
// The command, in brackets, may hold anything.
func parseStart(line string) (processID, error) {
	head, rest, ok := cutLast(line, ")")
	fields := strings.Fields(rest)
	pidText, _, _ := strings.Cut(head, " ")
	pid, err := strconv.Atoi(pidText)
	if !ok || err != nil || len(fields) < 20 {
		return processID{}, fmt.Errorf("read process line %q: no /proc/PID/stat line", line)
	}
	return processID{PID: pid, Start: fields[19]}, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

// processStart identifies a running process; an error when there is none, or only its corpse.
func processStart(pid int) (processID, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processID{}, err
	}
	if _, rest, _ := cutLast(string(line), ")"); strings.HasPrefix(strings.TrimSpace(rest), "Z") {
		return processID{}, errors.New("it has ended and waits for its parent")
	}
	return parseStart(string(line))
}

// bootID differs after each boot: pids and start times of another boot mean nothing.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// marked lists the processes whose environment names this run.
func marked(runID string) []int {
	want := []byte(runMarker + "=" + runID)
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			if bytes.Equal(variable, want) {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
