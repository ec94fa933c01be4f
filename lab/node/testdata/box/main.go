// Command box is the one static program in the image that the docker runtime is tested with. It
// is built by the test; its first argument, or its name, says what it does.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

func run() int {
	args := os.Args
	if filepath.Base(args[0]) == "cat" {
		args = append([]string{"box", "cat"}, args[1:]...)
	}
	switch role := args[1]; role {
	case "lines": // COUNT STATUS
		count, _ := strconv.Atoi(args[2])
		out := bufio.NewWriter(os.Stdout)
		for i := range count {
			fmt.Fprintf(out, "line %d\n", i)
		}
		out.Flush()
		status, _ := strconv.Atoi(args[3])
		return status
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		wait()
	case "eat":
		var eaten [][]byte
		for range 1 << 14 {
			piece := make([]byte, 1<<20)
			for i := 0; i < len(piece); i += 4096 {
				piece[i] = 1
			}
			eaten = append(eaten, piece)
		}
		fmt.Println(len(eaten))
	case "serve": // ADDRESS FILE: answers each connection with the file
		listener, err := net.Listen("tcp4", args[2])
		if err != nil {
			fmt.Println(err)
			return 3
		}
		text, err := os.ReadFile(args[3])
		fmt.Println("serving", len(text), err)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return 4
			}
			_, _ = conn.Write(text)
			_ = conn.Close()
		}
	case "ask": // ADDRESS: prints what it answers
		conn, err := net.DialTimeout("tcp4", args[2], 5*time.Second)
		if err != nil {
			fmt.Println(err)
			return 5
		}
		text, _ := bufio.NewReader(conn).ReadString('\n')
		fmt.Println("answer", text)
	case "cat": // FILE
		text, err := os.ReadFile(args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		_, _ = os.Stdout.Write(text)
	}
	return 0
}

func wait() {
	for {
		time.Sleep(time.Hour)
	}
}
