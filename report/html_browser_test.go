package report

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser starts a headless Chromium, or skips with the reason; in CI a missing one is a failure.
func browser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, needs time: not with -short")
	}
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI=true, but there is no Chromium: install the package chromium")
		}
		t.Skip("SKIPPED, needs Chromium: not installed here")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1200, 900))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses root
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// watched collects what a page must not do: requests, console messages, exceptions, dialogs.
type watched struct {
	mu    sync.Mutex
	own   string
	seen  []string
	asked int
}

func (w *watched) event(ev any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		w.asked++
		if e.Request.URL != w.own && !strings.HasPrefix(e.Request.URL, "data:") {
			w.seen = append(w.seen, "request of "+e.Request.URL)
		}
	case *runtime.EventConsoleAPICalled:
		w.seen = append(w.seen, fmt.Sprintf("console %s %v", e.Type, e.Args))
	case *runtime.EventExceptionThrown:
		w.seen = append(w.seen, "exception: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		w.seen = append(w.seen, "log: "+e.Entry.Text)
	case *page.EventJavascriptDialogOpening:
		w.seen = append(w.seen, "dialog: "+e.Message)
	}
}

// TestIntegrationHTMLInChromium opens every example, foreign text and all, in a real browser: it
// renders without a request, a message or an error, in light and dark, on a phone and in print,
// and its tables sort. Pictures go to the folder named by
// REPORT_SCREENSHOTS when it is set.
func TestIntegrationHTMLInChromium(t *testing.T) {
	ctx := browser(t)
	dir := t.TempDir()
	examples := records()
	examples["rounds"] = tenRounds()
	for name, r := range examples {
		path := filepath.Join(dir, name+".html")
		if err := os.WriteFile(path, []byte(htmlOf(t, r)), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { openPage(t, ctx, name, path) })
	}
}

// TestIntegrationChromiumSeesFaults: the checks above would see a request, a message and an exception.
func TestIntegrationChromiumSeesFaults(t *testing.T) {
	ctx := browser(t)
	path := filepath.Join(t.TempDir(), "faults.html")
	const faults = `<!DOCTYPE html><img src="http://127.0.0.1:9/x.png"><script>console.error("planted"); undefined.x</script>`
	if err := os.WriteFile(path, []byte(faults), 0o644); err != nil {
		t.Fatal(err)
	}
	w := &watched{own: (&url.URL{Scheme: "file", Path: path}).String()}
	if err := chromedp.Listen(ctx, w.event); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, watching(), chromedp.Navigate(w.own)); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := strings.Join(w.seen, "\n")
	for _, want := range []string{"request of http://127.0.0.1:9/x.png", "console error", "exception: "} {
		if !strings.Contains(seen, want) {
			t.Errorf("not seen: %s; seen:\n%s", want, seen)
		}
	}
}

// watching switches on the events that watched collects.
func watching() chromedp.Action[chromedp.Void] {
	return chromedp.Steps(command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}),
		command(runtime.Enable, cdp.Empty{}), command(page.Enable, page.EnableParams{}))
}

func openPage(t *testing.T, ctx context.Context, name, path string) {
	ctx, cancel := chromedp.NewContext(ctx) // a tab of its own
	defer cancel()
	address := (&url.URL{Scheme: "file", Path: path}).String()
	w := &watched{own: address}
	if err := chromedp.Listen(ctx, w.event); err != nil {
		t.Fatal(err)
	}
	run := func(steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, steps...); err != nil {
			t.Fatal(err)
		}
	}
	run(watching(), chromedp.Navigate(address))
	if headline := value(t, ctx, chromedp.Text("h1")); headline == "" {
		t.Error("no headline")
	}
	picture(t, ctx, name+"-light")
	dark := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}
	run(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: dark}))
	picture(t, ctx, name+"-dark")
	for _, width := range []int64{375, 1200} {
		run(chromedp.EmulateViewport(width, 844))
		if value(t, ctx, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > innerWidth + 1")) {
			t.Errorf("the page is wider than a screen of %d", width)
		}
		picture(t, ctx, fmt.Sprintf("%s-%d", name, width))
	}
	if sorted := value(t, ctx, chromedp.Evaluate[string](sortsByFigures)); sorted != "ok" {
		t.Error(sorted)
	}
	if focused := value(t, ctx, chromedp.Evaluate[bool](focusesAHead)); focused {
		run(chromedp.KeyEvent("\r"))
		if !value(t, ctx, chromedp.Evaluate[bool](`document.activeElement.closest("th").hasAttribute("aria-sort")`)) {
			t.Error("the Enter key on a column's head does not sort")
		}
	}
	if printed := value(t, ctx, chromedp.PrintToPDF()); len(printed) < 10_000 {
		t.Errorf("printed: %d bytes", len(printed))
	}
	w.check(t)
}

func (w *watched) check(t *testing.T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked == 0 {
		t.Error("not even the request of the page was seen: the check sees nothing")
	}
	for _, seen := range w.seen {
		t.Error(seen)
	}
}

func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

func value[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sortsByFigures clicks on the head of a column of figures in the first table with several rows, and looks.
const sortsByFigures = `(() => {
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (body.rows.length < 2) continue;
    const heads = [...table.tHead.rows[0].cells];
    const i = heads.findIndex((h, i) => !h.classList.contains("left") &&
      [...body.rows].every((r) => r.cells[i].dataset.v !== "" && !Number.isNaN(Number(r.cells[i].dataset.v))));
    if (i < 0) continue;
    const button = heads[i].querySelector("button");
    if (!button) return "no button on a column of figures";
    const values = () => [...body.rows].map((r) => Number(r.cells[i].dataset.v));
    const ordered = (up) => values().every((v, j, all) => j === 0 || (up ? all[j - 1] <= v : all[j - 1] >= v));
    button.click();
    if (!ordered(false)) return "not in falling order: " + values();
    button.click();
    if (!ordered(true)) return "not in rising order: " + values();
    return heads[i].getAttribute("aria-sort") === "ascending" ? "ok" : "aria-sort is " + heads[i].getAttribute("aria-sort");
  }
  return "ok";
})()`

// focusesAHead puts the focus where the Tab key would: on the head of the last column of a table
// that sorts. A picture without one has only tables of one row.
const focusesAHead = `(() => {
  const head = [...document.querySelectorAll("th:last-child")].find((h) => h.querySelector("button") && !h.hasAttribute("aria-sort"));
  if (!head) return false;
  head.querySelector("button").focus();
  return document.activeElement === head.querySelector("button");
})()`

// picture saves a screenshot of the whole page for people to look at.
func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("REPORT_SCREENSHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), value(t, ctx, chromedp.FullScreenshot(100)), 0o644); err != nil {
		t.Fatal(err)
	}
}
