package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// progressEvery is how often long work says what it is doing.
const progressEvery = 5 * time.Second

// tailLines is how much of a command's output an error text keeps.
const tailLines = 15

// job is one external command that may take long.
type job struct {
	what    string // "build jaeger 2.13.0": action and object, for progress and errors
	hint    string // what to expect: "a first build takes 5 to 8 minutes"
	dir     string
	env     []string // beside the lab's own environment and LC_ALL=C
	argv    []string
	limit   time.Duration // the longest it may take
	count   string        // what one line of output stands for ("packages"); "" = lines are not counted
	isCount func(line string) bool
	brief   func(line string) string // what progress shows of the last line; nil = all of it
}

// run runs the command in its own process group, so that Ctrl-C reaches it through ctx only and
// its children end with it. Every few seconds it says how far it is.
func (j job) run(ctx context.Context, say Say) error {
	ctx, cancel := context.WithTimeout(ctx, j.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, j.argv[0], j.argv[1:]...)
	cmd.Dir = j.dir
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), j.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out := &progress{job: j, started: time.Now()}
	cmd.Stdout, cmd.Stderr = out, out

	stop := out.every(progressEvery, say)
	err := cmd.Run()
	stop()
	out.flush()
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("not done after %s", j.limit)
	} else if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("%s: %w; command: %s; last output:\n%s", j.what, err, strings.Join(j.argv, " "), out.tail())
}

// progress keeps the last lines of a command's output and counts what it has done.
type progress struct {
	job     job
	started time.Time

	mu      sync.Mutex
	partial string
	lines   []string
	counted int
}

// Write takes output as it comes.
func (p *progress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.partial + string(data)
	for {
		line, rest, found := strings.Cut(text, "\n")
		if !found {
			p.partial = text
			return len(data), nil
		}
		p.line(line)
		text = rest
	}
}

func (p *progress) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.partial != "" {
		p.line(p.partial)
		p.partial = ""
	}
}

func (p *progress) line(line string) {
	if p.job.isCount != nil && p.job.isCount(line) {
		p.counted++
	}
	p.lines = append(p.lines, line)
	if len(p.lines) > tailLines {
		p.lines = p.lines[1:]
	}
}

func (p *progress) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "  " + strings.Join(p.lines, "\n  ")
}

// text is one line of progress: what, for how long, how far, what to expect.
func (p *progress) text(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%s: %s", p.job.what, now.Sub(p.started).Round(time.Second))
	if p.counted > 0 {
		text += fmt.Sprintf(", %d %s", p.counted, p.job.count)
	}
	if len(p.lines) > 0 {
		last := p.lines[len(p.lines)-1]
		if p.job.brief != nil {
			last = p.job.brief(last)
		}
		if last = strings.TrimSpace(last); last != "" {
			text += ", now " + shorten(last, 70)
		}
	}
	if p.job.hint != "" {
		text += " (" + p.job.hint + ")"
	}
	return text
}

// every says the progress again and again until the returned function is called.
func (p *progress) every(interval time.Duration, say Say) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				say("%s", p.text(now))
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit-3] + "..."
}

// output runs a quick command and returns what it printed, stdout and stderr together.
func output(ctx context.Context, limit time.Duration, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	data, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s", limit)
	}
	return string(data), err
}

// writeFile writes aside, then renames: a reader never sees half a file.
func writeFile(path string, data io.Reader, mode os.FileMode) (err error) {
	aside := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	file, err := os.OpenFile(aside, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(aside) // the error that matters is the one returned
		}
	}()
	buffered := bufio.NewWriter(file)
	_, err = io.Copy(buffered, data)
	if err = errors.Join(err, buffered.Flush(), file.Close()); err != nil {
		return err
	}
	return os.Rename(aside, path)
}
