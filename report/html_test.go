package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"jaegerlab/lab/record"
)

// exampleSeries are samples of a run: before the window, the window and a drain.
func exampleSeries(run record.Run) Series {
	node := "cassandra-1"
	if len(run.Nodes) > 0 {
		node = run.Nodes[0].Name
	}
	s := Series{}
	for at := -2.0; at < run.WindowS+20; at++ {
		inside := min(max(at, 0), run.WindowS)
		add := func(node, metric string, value float64) {
			key := SeriesKey{node, metric}
			s[key] = append(s[key], Sample{at, value})
		}
		add("load", "generated", 900*inside)
		add("load", "acked", 880*inside)
		add("collector", "saved", 700*min(max(at, 0), run.WindowS+12))
		add("collector", "queue_size", max(0, 2000-20*math.Abs(at-run.WindowS)))
		for i, name := range []string{node, "cassandra-2", "collector"} {
			add(name, "cpu", float64(i+1)*0.4*(at+2))
			add(name, "throttled", 0.1*inside)
			add(name, "memory", float64(600+100*i)*(1<<20))
		}
	}
	return s
}

func seriesOf(r record.Record) map[string]Series {
	series := map[string]Series{}
	for _, run := range r.Runs {
		if run.WindowS > 0 {
			series[run.Folder] = exampleSeries(run)
		}
	}
	return series
}

func htmlOf(t testing.TB, r record.Record) string {
	t.Helper()
	series, tails := seriesOf(r), map[string]string{}
	for _, run := range r.Runs {
		for _, n := range run.Nodes {
			tails[n.Log] = "INFO one\nWARN </pre><script>alert(2)</script> two\n"
		}
	}
	var text bytes.Buffer
	if err := HTML(&text, OfSeries(r, series), r, series, tails); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// elements walks the page as a browser would read it.
func elements(t testing.TB, page string) (all []*html.Node) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// TestHTMLIsInert: whatever foreign text says, the page has one script, its own, loads nothing and
// links only within itself.
func TestHTMLIsInert(t *testing.T) {
	for name, r := range records() {
		scripts := 0
		for _, n := range elements(t, htmlOf(t, r)) {
			switch n.Data {
			case "script":
				scripts++
			case "img", "iframe", "object", "embed", "form", "base":
				t.Errorf("%s: the page has a <%s>", name, n.Data)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
					t.Errorf("%s: <%s %s=%q>", name, n.Data, a.Key, a.Val)
				}
				linked := a.Key == "href" || a.Key == "src" || a.Key == "action"
				if linked && !strings.HasPrefix(a.Val, "#") && a.Val != "data:," {
					t.Errorf("%s: <%s> goes to %q", name, n.Data, a.Val)
				}
			}
		}
		if scripts != 1 {
			t.Errorf("%s: %d scripts, want the page's own", name, scripts)
		}
	}
}

// TestHTMLShowsForeignTextAsText: it is there to be read.
func TestHTMLShowsForeignTextAsText(t *testing.T) {
	page := htmlOf(t, hostileRecord())
	var body *html.Node
	for _, n := range elements(t, page) {
		if n.Data == "body" {
			body = n
		}
	}
	shown := textOf(body)
	for _, want := range []string{"<script>alert(1)</script>", "**bold**", `\x1b[31m`, `\u202e`, "STAND-IN", "</pre><script>alert(2)</script> two"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	for _, invisible := range []string{"\x1b", "\u202e", "\x00"} {
		if strings.Contains(page, invisible) {
			t.Errorf("the page holds %q", invisible)
		}
	}
}

// TestHTMLHasEveryTable: all figures of the document, each with its value for sorting, and every footnote.
func TestHTMLHasEveryTable(t *testing.T) {
	for name, r := range records() {
		cells, rows, notes := map[string]int{}, 0, map[string]bool{}
		ids := map[string]bool{}
		for _, n := range elements(t, htmlOf(t, r)) {
			switch n.Data {
			case "td":
				plain, _ := attribute(n, "data-v")
				cells[plain]++
			case "tr":
				rows++
			}
			if id, ok := attribute(n, "id"); ok {
				if ids[id] {
					t.Errorf("%s: two elements with id %q", name, id)
				}
				ids[id], notes[id] = true, true
			}
		}
		want := 0
		for _, table := range OfSeries(r, seriesOf(r)).Tables {
			want += len(table.Rows) + 1
			for _, row := range table.Rows {
				for _, c := range row {
					if cells[c.Plain] == 0 {
						t.Errorf("%s: %s: no cell with value %q", name, table.Title, c.Plain)
					}
				}
			}
			for _, f := range table.Footnotes {
				if !notes[fmt.Sprintf("note-%d", f.Number)] {
					t.Errorf("%s: %s: footnote %d is missing", name, table.Title, f.Number)
				}
			}
		}
		if rows != want {
			t.Errorf("%s: %d rows, want %d", name, rows, want)
		}
	}
}

// TestHTMLDescribesPictures: each chart has a name and a text that says what it shows.
func TestHTMLDescribesPictures(t *testing.T) {
	for name, r := range records() {
		all := elements(t, htmlOf(t, r))
		texts := map[string]string{}
		for _, n := range all {
			if id, ok := attribute(n, "id"); ok {
				texts[id] = textOf(n)
			}
		}
		pictures := 0
		for _, n := range all {
			if n.Data != "svg" {
				continue
			}
			if hidden, _ := attribute(n, "aria-hidden"); hidden == "true" {
				continue
			}
			pictures++
			labels, _ := attribute(n, "aria-labelledby")
			for _, id := range strings.Fields(labels) {
				if strings.TrimSpace(texts[id]) == "" {
					t.Errorf("%s: a picture's description %q is missing or empty", name, id)
				}
			}
			if len(strings.Fields(labels)) != 2 {
				t.Errorf("%s: a picture is described by %q, want a name and a text", name, labels)
			}
		}
		if pictures == 0 {
			t.Errorf("%s: no picture", name)
		}
		for _, n := range all {
			for _, a := range n.Attr {
				if strings.Contains(a.Val, "NaN") || strings.Contains(a.Val, "Inf") {
					t.Errorf("%s: <%s %s=%q>: not a number", name, n.Data, a.Key, a.Val)
				}
			}
		}
	}
}

// tenRounds is a comparison of two arms with ten rounds each.
func tenRounds() record.Record {
	r := wholeRecord()
	r.Spec.Rounds = 10
	first, second := r.Runs[0], r.Runs[1]
	r.Runs = nil
	for i := range 10 {
		for _, run := range []record.Run{first, second} {
			run.Round = i + 1
			run.Folder = fmt.Sprintf("%s-round-%d", run.Folder, i+1)
			more := int64(i * 137 % 900)
			if run.StoredInWindow != nil {
				run.StoredInWindow = ptr(*run.StoredInWindow + more)
			}
			run.SavedInWindowCounter = ptr(*run.SavedInWindowCounter + more)
			r.Runs = append(r.Runs, run)
		}
	}
	return r
}

// What the database's write times say is drawn beside the counters, also without a series.
func TestStoredPerSecondIsDrawn(t *testing.T) {
	run := record.Run{WindowS: 3, StoredEachS: []int64{100, 300, 200, 50}}
	c, ok := chartsOf(run, nil)
	if !ok || len(c.Charts) != 1 || c.Charts[0].Lines[0].Name != "stored" || !strings.Contains(c.Charts[0].Summary, "300 spans/s: stored at 2 s") {
		t.Errorf("%+v", c)
	}
}

// longRounds is ten rounds of two arms, half an hour each, whose series are thinned.
func longRounds() (Document, record.Record, map[string]Series) {
	r := tenRounds()
	for i := range r.Runs {
		r.Runs[i].WindowS = 1800
	}
	series := seriesOf(r)
	return OfSeries(r, series), r, series
}

// TestHTMLIsSmall: ten rounds of two arms fit into 2 MB. How long it takes is BenchmarkHTML's to say.
func TestHTMLIsSmall(t *testing.T) {
	doc, r, series := longRounds()
	var text bytes.Buffer
	if err := HTML(&text, doc, r, series, nil); err != nil {
		t.Fatal(err)
	}
	if text.Len() > 2_000_000 {
		t.Errorf("%d bytes, want under 2 MB", text.Len())
	}
}

// BenchmarkHTML renders ten rounds of two arms, tables and page; the figure to reach is 2 s.
func BenchmarkHTML(b *testing.B) {
	_, r, series := longRounds()
	for b.Loop() {
		if err := HTML(io.Discard, OfSeries(r, series), r, series, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRatesOfACounterThatFell(t *testing.T) {
	rates := rate([]Sample{{0, 10}, {1, 30}, {2, 5}, {2, 6}, {4, 26}})
	if len(rates) != 3 || rates[0].Value != 20 || !math.IsNaN(rates[1].Value) || rates[2].Value != 10.5 {
		t.Errorf("rates %v; a fall is not known", rates)
	}
	x, y := axis{lo: 0, hi: 4, from: 0, to: 100}, axis{lo: 0, hi: 20, from: 100, to: 0}
	if parts := pathOf(rates, x, y); len(parts) != 2 {
		t.Errorf("a gap gives %d parts: %q", len(parts), parts)
	}
}

// A sample that came late has the next right behind it: no peak that never was.
func TestRatesOfSamplesCloseTogether(t *testing.T) {
	rates := rate([]Sample{{0, 0}, {1.9, 190}, {1.907, 260}, {3, 300}})
	for _, r := range rates {
		if r.Value > 101 {
			t.Errorf("rates %v", rates)
		}
	}
	if marks := (axis{lo: -0.002, hi: 70, to: 100}).ticks(8, seconds); marks[0].Text != "0 s" {
		t.Errorf("the axis begins with %q", marks[0].Text)
	}
}

// TestThinningKeepsThePeak: the highest queue of a long run is still to be seen.
func TestThinningKeepsThePeak(t *testing.T) {
	run := record.Run{WindowS: 5000}
	series := Series{}
	key := SeriesKey{"collector", "queue_size"}
	for at := range 5000 {
		value := 10.0
		if at == 4321 {
			value = 1999
		}
		series[key] = append(series[key], Sample{float64(at), value})
	}
	t2 := timeline{run: run, series: series, x: timeAxis(run, series)}
	list := t2.plain("queue_size")
	if n := len(list[0].samples); n > mostPoints {
		t.Errorf("%d points", n)
	}
	if c := t2.chart("queue", "spans", brief, list); !strings.Contains(c.Summary, "1,999") {
		t.Errorf("summary %q lacks the peak", c.Summary)
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, test := range []struct {
		hi   float64
		want string
	}{{0.7, "0 0.2 0.4 0.6"}, {1999, "0 500 1,000 1,500"}, {61234, "0 20 k 40 k 60 k"}} {
		var texts []string
		for _, mark := range (axis{lo: 0, hi: test.hi, from: 0, to: 100}).ticks(4, brief) {
			texts = append(texts, mark.Text)
		}
		if got := strings.Join(texts, " "); got != test.want {
			t.Errorf("to %v: %s, want %s", test.hi, got, test.want)
		}
	}
}
