//go:build unix

package node

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is also every small program that the tests run as a node.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as" {
		os.Exit(helper(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

func helper(role string, args []string) int {
	switch role {
	case "lines": // prints args[0] numbered lines and exits at once with status args[1]
		count, _ := strconv.Atoi(args[0])
		out := bufio.NewWriter(os.Stdout)
		for i := range count {
			fmt.Fprintf(out, "line %d\n", i)
		}
		out.Flush()
		status, _ := strconv.Atoi(args[1])
		return status
	case "stubborn": // ignores the polite signal
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Println("ready")
		block()
	case "parent": // starts a child, in its own session when args[0] is "session", and waits
		cmd := exec.Command(os.Args[0], "as", "stubborn")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: args[0] == "session"}
		if err := cmd.Start(); err != nil {
			return 1
		}
		fmt.Println("child", cmd.Process.Pid)
		block()
	case "eat": // takes memory, 1 MiB at a time, until somebody stops it
		var eaten [][]byte
		for range 1 << 14 {
			piece := make([]byte, 1<<20)
			for i := 0; i < len(piece); i += 4096 {
				piece[i] = 1
			}
			eaten = append(eaten, piece)
		}
		fmt.Println(len(eaten))
	case "listen": // listens on args[0] and serves nothing
		if _, err := net.Listen("tcp4", args[0]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
		fmt.Println("serving")
		block()
	case "thief": // the first time (args[1] does not exist) another program takes the port first
		addr, mark := args[0], args[1]
		if _, err := os.Stat(mark); err != nil {
			_ = os.WriteFile(mark, []byte(addr), 0o644)
			_, _ = net.Listen("tcp4", addr)
		}
		return helper("listen", []string{addr})
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "owner": // a lab process with one node up, to be killed; args: run id, dir
		return owner(args[0], args[1])
	case "dockerlab": // args: run id, image, folder of logs
		return dockerLab(args[0], args[1], args[2])
	}
	return 0
}

func block() {
	for {
		time.Sleep(time.Hour)
	}
}

func owner(runID, dir string) int {
	ctx := context.Background()
	r, err := NewProcess(ctx, ProcessOptions{RunID: runID, Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	n, err := r.Start(ctx, Program{Name: "left", Binary: self(), Args: []string{"as", "parent", "session"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = Wait(ctx, "child", 10*time.Second, n, sees(n, "child"))
	fmt.Println("up", n.(*processNode).pid(), err)
	block()
	return 0
}

func self() Binary { return Binary{Command: []string{os.Args[0]}} }

// sees is a probe for a text in a node's output.
func sees(n Node, text string) func(context.Context) error {
	return func(context.Context) error {
		if !strings.Contains(n.Tail(50), text) {
			return fmt.Errorf("no %q in its output", text)
		}
		return nil
	}
}

func newRuntime(t *testing.T) *processes {
	t.Helper()
	t.Setenv("LAB_CACHE", filepath.Join(t.TempDir(), "cache"))
	r, err := NewProcess(t.Context(), ProcessOptions{
		RunID: fmt.Sprintf("test-%d-%s", os.Getpid(), filepath.Base(t.TempDir())+strings.ReplaceAll(t.Name(), "/", "-")),
		Dir:   filepath.Join(t.TempDir(), "run"), LogDir: filepath.Join(t.TempDir(), "logs"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r.(*processes)
}

func start(t *testing.T, r Runtime, p Program) Node {
	t.Helper()
	if p.Binary.Command == nil && p.Binary.Image == "" {
		p.Binary = self()
	}
	n, err := r.Start(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func await(t *testing.T, n Node, text string) {
	t.Helper()
	if err := Wait(t.Context(), text, 10*time.Second, n, sees(n, text)); err != nil {
		t.Fatal(err)
	}
}

func awaitDone(t *testing.T, n Node) {
	t.Helper()
	select {
	case <-n.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not end; log: %s", n.Name(), n.Tail(10))
	}
}
