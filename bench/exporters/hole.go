package exporters

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"jaegerlab/lab/protocol/sink"
)

// HoleEnv names the variable that makes a program a black hole instead: its own process, so that
// what it allocates is not counted as an exporter's.
const HoleEnv = "JAEGERLAB_BLACK_HOLE"

// Kinds of black holes: names of the collector's ports.
const (
	holeUDP      = "thrift-udp"
	holeThrift   = "thrift-http"
	holeOTLP     = "otlp-grpc"
	holeOTLPHTTP = "otlp-http"
)

// counts are what a black hole has taken since its start.
type counts struct {
	Requests, Bytes, Spans int64
}

func (c counts) since(before counts) counts {
	return counts{c.Requests - before.Requests, c.Bytes - before.Bytes, c.Spans - before.Spans}
}

// ServeHole is the program of a black hole of this kind: it writes its address in a line, and for
// every line that it reads its counts. It ends when its input does.
func ServeHole(kind string, in io.Reader, out io.Writer) error {
	s := &sink.Sink{Count: true}
	if err := s.Open(kind); err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintln(out, s.Addr())
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := json.NewEncoder(out).Encode(counts{s.Requests(), s.Bytes(), s.Spans()}); err != nil {
			return err
		}
	}
	return lines.Err()
}

// hole is a running black hole.
type hole struct {
	addr    string
	udp     bool
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// startHole runs this program again as a black hole.
func startHole(self, kind string) (*hole, error) {
	command := exec.Command(self)
	command.Env = append(os.Environ(), HoleEnv+"="+kind)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a black hole: %w", err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a black hole: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start a black hole: %w", err)
	}
	h := &hole{udp: kind == holeUDP, command: command, in: in, out: bufio.NewReader(out)}
	line, err := h.out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a black hole for %s: read its address: %w", kind, err), h.close())
	}
	h.addr = strings.TrimSpace(line)
	return h, nil
}

func (h *hole) counts() (c counts, err error) {
	if _, err := io.WriteString(h.in, "?\n"); err != nil {
		return c, fmt.Errorf("ask the black hole: %w", err)
	}
	line, err := h.out.ReadBytes('\n')
	if err != nil {
		return c, fmt.Errorf("ask the black hole: %w", err)
	}
	return c, json.Unmarshal(line, &c)
}

// settled waits until nothing more comes, at most a second: packets may still be on their way.
func (h *hole) settled() (counts, error) {
	const steady = 30 * time.Millisecond
	last, err := h.counts()
	for deadline := time.Now().Add(time.Second); err == nil && time.Now().Before(deadline); {
		timer := time.NewTimer(steady)
		<-timer.C
		var now counts
		if now, err = h.counts(); now == last {
			break
		}
		last = now
	}
	return last, err
}

func (h *hole) close() error {
	_ = h.in.Close()
	ended := make(chan error, 1)
	go func() { ended <- h.command.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(5 * time.Second):
		_ = h.command.Process.Kill()
		return <-ended
	}
}
