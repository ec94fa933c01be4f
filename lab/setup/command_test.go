package setup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestJobErrorHoldsTheTail(t *testing.T) {
	j := job{what: "build it", argv: []string{"sh", "-c", "seq 1 50; echo planted >&2; exit 3"}, limit: time.Minute}
	err := j.run(t.Context(), t.Logf)
	if err == nil {
		t.Fatal("a command that ended with 3 passed")
	}
	for _, part := range []string{"build it", "exit status 3", "planted", "50"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not hold %q:\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), "\n  10\n") {
		t.Error("the error holds more than the tail")
	}
}

// The whole process group ends with the job: a grandchild that holds the output open can't keep it.
func TestJobEndsWithItsChildren(t *testing.T) {
	for name, limit := range map[string]time.Duration{"limit": 50 * time.Millisecond, "cancelled": time.Hour} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			started := time.Now()
			err := job{what: "wait", argv: []string{"sh", "-c", "sleep 60 & wait"}, limit: limit}.run(ctx, t.Logf)
			if err == nil || time.Since(started) > 4*time.Second {
				t.Errorf("ended after %s with %v", time.Since(started), err)
			}
			if name == "limit" && !strings.Contains(err.Error(), "not done after 50ms") {
				t.Errorf("the error does not name the limit: %v", err)
			}
		})
	}
}

func TestProgressText(t *testing.T) {
	start := time.Now()
	p := &progress{started: start, job: job{what: "build jaeger", hint: "5 minutes", count: "packages",
		isCount: func(line string) bool { return !strings.HasPrefix(line, "go: ") }}}
	for _, chunk := range []string{"go: downloading x\nnet", "/http\n", "example.org/last\n"} {
		if _, err := p.Write([]byte(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	want := "build jaeger: 1m5s, 2 packages, now example.org/last (5 minutes)"
	if got := p.text(start.Add(65 * time.Second)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestProgressIsSaid(t *testing.T) {
	said := make(chan string, 1)
	say := func(format string, args ...any) {
		select {
		case said <- args[0].(string):
		default:
		}
	}
	p := &progress{started: time.Now(), job: job{what: "pull"}}
	stop := p.every(time.Millisecond, say)
	if line := <-said; !strings.HasPrefix(line, "pull: ") {
		t.Errorf("said %q", line)
	}
	stop()
}

func TestWriteFileLeavesNothingHalf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := writeFile(path, strings.NewReader("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, brokenReader{}, 0o644); err == nil {
		t.Error("a broken source passed")
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "old" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("planted") }
