package lab

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

// plainEvery is how often a live line is printed where no terminal can rewrite it.
const plainEvery = 10 * time.Second

// Console is where progress goes: one live line that rewrites itself on a terminal, plain lines
// elsewhere. It is safe for concurrent use.
type Console struct {
	mu      sync.Mutex
	out     io.Writer
	live    bool
	width   int // of the live line on screen
	printed time.Time
	now     func() time.Time
}

// NewConsole writes plain lines to out, or a live line when live.
func NewConsole(out io.Writer, live bool) *Console {
	return &Console{out: out, live: live, now: time.Now}
}

// OpenConsole picks the best console: standard error when it is a terminal; else the controlling
// terminal, which go test hides from its tests; else plain lines to standard error.
func OpenConsole() *Console {
	if isatty.IsTerminal(os.Stderr.Fd()) {
		return NewConsole(os.Stderr, true)
	}
	if tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
		return NewConsole(tty, true)
	}
	return NewConsole(os.Stderr, false)
}

// Say prints one line that stays.
func (c *Console) Say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	fmt.Fprintf(c.out, format+"\n", args...)
	c.printed = c.now()
}

// Live shows the current state: the line is replaced by the next one, and printed at most every
// ten seconds where nothing can be replaced.
func (c *Console) Live(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	if c.live {
		c.clear()
		fmt.Fprint(c.out, line)
		c.width = len(line)
		return
	}
	if c.now().Sub(c.printed) >= plainEvery {
		fmt.Fprintln(c.out, line)
		c.printed = c.now()
	}
}

// Write prints text that stays, such as the final tables.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	return c.out.Write(p)
}

func (c *Console) clear() {
	if c.live && c.width > 0 {
		fmt.Fprint(c.out, "\r", strings.Repeat(" ", c.width), "\r")
		c.width = 0
	}
}
