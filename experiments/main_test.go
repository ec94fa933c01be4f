package experiments

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"jaegerlab/bench/exporters"
	"jaegerlab/lab"
	"jaegerlab/lab/spec"
	"jaegerlab/report"
)

// tearDownTime is what a run keeps for itself before go test's deadline.
const tearDownTime = 30 * time.Second

// experiment is a comparison: its settings, and what they can't say. What it leaves out, the
// environment or the defaults give; what the environment names wins.
type experiment struct {
	Name      string
	Settings  []string // NAME=value, the environment's own spelling
	Treatment []string // what the arms are meant to differ in; anything else that differs forbids a winner
	Copies    int      // of every arm, to compare it with itself
}

// spec lays the environment over the experiment's settings.
func (e experiment) spec() (spec.Spec, error) {
	settings := slices.Clone(e.Settings)
	if target := os.Getenv("LAB_TARGET"); target != "" { // it brings its own database and collector
		settings = slices.DeleteFunc(settings, func(line string) bool {
			name, _, _ := strings.Cut(line, "=")
			return name == "LAB_BACKENDS" || name == "LAB_COLLECTOR"
		})
		for _, line := range e.Settings {
			if !slices.Contains(settings, line) && strings.Contains(line, ",") {
				return spec.Spec{}, fmt.Errorf("LAB_TARGET=%q: experiment %s compares stacks that the lab starts (%s); with a "+
					"target run TestBackends (the default) or TestAA", target, e.Name, line)
			}
		}
	}
	s, err := spec.FromEnv(inRoot(append(settings, os.Environ()...))) // of two lines with one name the later counts
	s.Experiment, s.Treatment, s.Copies = e.Name, append([]string{}, e.Treatment...), e.Copies
	s.Results = fromRoot(cmp.Or(s.Results, "results"))
	return s, err
}

// compare runs an experiment and prints its tables. A measured run passes whatever its verdict;
// an incomplete or refused one fails.
func compare(t *testing.T, e experiment) {
	t.Helper()
	uncached(t)
	s, err := e.spec()
	if err != nil {
		t.Fatalf("experiment %s is refused:\n%v", e.Name, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // go test, killed or piped into head, must not end this process before its tear-down
	options := lab.Options{Console: lab.OpenConsole(), Resume: fromRoot(os.Getenv("LAB_RESUME"))}
	if deadline, ok := t.Deadline(); ok {
		options.Deadline = deadline.Add(-tearDownTime)
	}
	result, err := lab.Run(ctx, s, options)
	if result.Dir != "" {
		show(t, options.Console, result)
	}
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		t.Fatalf("experiment %s was interrupted; what was measured is saved in %s", e.Name, result.Dir)
	case err != nil:
		t.Fatalf("experiment %s: %v", e.Name, err)
	}
}

// inRoot reads the paths of LAB_TARGET and LAB_COLLECTOR as fromRoot says.
func inRoot(environ []string) []string {
	for i, line := range environ {
		switch name, value, _ := strings.Cut(line, "="); name {
		case "LAB_TARGET":
			environ[i] = name + "=" + fromRoot(value)
		case "LAB_COLLECTOR":
			words := strings.Split(value, ",")
			for k, word := range words {
				if word = strings.TrimSpace(word); spec.IsFile(word) {
					words[k] = fromRoot(word)
				}
			}
			environ[i] = name + "=" + strings.Join(words, ",")
		}
	}
	return environ
}

// fromRoot reads a path as users type it, in the checkout's root; go test runs in this package's folder.
func fromRoot(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join("..", path)
}

// show prints the tables to the console and, for -v and logs, to the test's output.
func show(t *testing.T, console *lab.Console, result lab.Result) {
	doc, err := report.Render(result.Dir)
	if err != nil {
		t.Errorf("render the report of %s: %v", result.Dir, err)
		return
	}
	if err := report.Terminal(console, doc); err != nil {
		t.Errorf("print the tables: %v", err)
	}
	console.Say("report: %s", filepath.Join(result.Dir, "report.md"))
}

// onlyWhenNamed skips an experiment unless -run names one: plain go test runs backends alone.
func onlyWhenNamed(t *testing.T) {
	if f := flag.Lookup("test.run"); f == nil || f.Value.String() == "" {
		t.Skipf("runs when named: go test ./experiments -run '%s$'", t.Name())
	}
}

// stamp is a file inside the module that every experiment reads. go test refuses to cache a result
// that depends on a file changed within the last seconds, and it does not see which LAB_ values
// were read: an experiment that did not run must never look like one that passed.
const stamp = ".ran"

// uncached makes this test depend on the stamp: go test notes the files that tests open.
func uncached(t *testing.T) {
	t.Helper()
	if err := touch(); err != nil {
		t.Fatalf("keep go test from caching: %v", err)
	}
	if _, err := os.ReadFile(stamp); err != nil {
		t.Fatalf("keep go test from caching: %v", err)
	}
}

// TestMain renews the stamp when the tests are over, however long they took.
func TestMain(m *testing.M) {
	if kind := os.Getenv(exporters.HoleEnv); kind != "" { // this process is a black hole of the experiment exporters
		if err := exporters.ServeHole(kind, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if err := touch(); err != nil {
		fmt.Fprintln(os.Stderr, "keep go test from caching:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func touch() error {
	return os.WriteFile(stamp, []byte(time.Now().UTC().Format(time.RFC3339Nano)), 0o644)
}
