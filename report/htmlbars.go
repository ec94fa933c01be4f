package report

import (
	"fmt"
	"math"

	"jaegerlab/lab/record"
)

// barChart is the headline: one bar an arm, its median, with interval or range and each round.
type barChart struct {
	Title, Summary, Whisker string
	Height                  float64
	Bars                    []bar
	X                       []tick
}

type bar struct {
	Name, Text    string
	Y, Width      float64
	Lo, Hi        float64 // of the whisker; equal: none
	Rounds        []float64
	StandIn       bool
	LabelY, DotsY float64
	Class         string
}

const (
	barH, barGap = 22.0, 26.0
	barLeft      = 8.0
)

// barsOf draws the figure that arms are compared on; nil when no run has it.
func barsOf(all []arm, s source) *barChart {
	c := &barChart{Title: capital(s.column.Name())}
	top := 0.0
	var spreads []spread
	for _, a := range all {
		sp := spreadOf(a.measured(), asFloat(s.value))
		spreads = append(spreads, sp)
		top = max(top, sp.median, sp.most)
		for _, run := range a.measured() {
			if v := s.value(run); v != nil {
				top = max(top, float64(*v)) // a round may lie outside the interval
			}
		}
	}
	if top == 0 {
		return nil
	}
	x := axis{lo: 0, hi: top * 1.04, from: barLeft, to: chartW - padRight}
	for i, a := range all {
		c.Bars = append(c.Bars, barOf(a, s, spreads[i], x, i))
		if sp := spreads[i]; sp.n > 1 && c.Whisker == "" {
			c.Whisker = "The thin line is the range of the rounds"
			if sp.interval {
				c.Whisker = "The thin line is the 95 % interval of the median"
			}
			c.Whisker += ", each dot one round."
		}
		c.Summary += fmt.Sprintf("%s: %s. ", c.Bars[i].Name, c.Bars[i].Text)
	}
	c.Height = float64(len(all))*(barH+barGap) + 30
	c.X = x.ticks(6, brief)
	return c
}

func barOf(a arm, s source, sp spread, x axis, i int) bar {
	y := float64(i)*(barH+barGap) + 20
	b := bar{Name: clean(a.name), Y: y, LabelY: y - 5, DotsY: y + barH/2, Text: notAvailable, StandIn: a.asked().Engine.StandIn, Class: colour(i)}
	if b.StandIn {
		b.Name += " (STAND-IN)"
	}
	if sp.n == 0 {
		return b
	}
	b.Text = fixed(sp.median, 0).Text + " spans"
	b.Width = x.at(sp.median) - barLeft
	if sp.n > 1 {
		b.Lo, b.Hi = x.at(sp.least), x.at(sp.most)
		b.Text += fmt.Sprintf(" (%s to %s)", fixed(sp.least, 0).Text, fixed(sp.most, 0).Text)
		for _, run := range a.measured() {
			if v := s.value(run); v != nil {
				b.Rounds = append(b.Rounds, x.at(float64(*v)))
			}
		}
	}
	return b
}

// curveChart is a latency by percentile: how long 50 %, 90 %, 99 % ... took at most.
type curveChart struct {
	ID, Title, Summary string
	Lines              []line
	X, Y               []tick
}

// curvesOf draws the distributions of all arms.
func curvesOf(all []arm) (charts []curveChart) {
	for i, one := range []struct {
		title string
		of    func(record.Run) *record.Latency
	}{{"Send to store", sendToStore}, {"Request, from sending to the answer", request}} {
		if c, ok := curve(all, one.title, one.of); ok {
			c.ID = fmt.Sprintf("latency-%d", i+1)
			charts = append(charts, c)
		}
	}
	return charts
}

// tails is how far the axis goes: to the slowest of 10^tails. It is logarithmic, so that the tail is seen.
const (
	tails      = 3.0
	curveSteps = 60
)

func curve(all []arm, title string, of func(record.Run) *record.Latency) (curveChart, bool) {
	c := curveChart{Title: title}
	least, most := math.Inf(1), 0.0
	var lines [][]Sample
	var names []string
	var ends []record.Latency
	for _, a := range all {
		samples, whole := percentileCurve(a.measured(), of)
		if samples == nil {
			continue
		}
		lines, names, ends = append(lines, samples), append(names, clean(a.name)), append(ends, whole)
		least, most = min(least, samples[0].Value), max(most, samples[len(samples)-1].Value)
	}
	if lines == nil || most <= 0 {
		return c, false
	}
	least = math.Pow(10, math.Floor(math.Log10(max(least, 0.01))))
	y := axis{lo: least, hi: max(math.Pow(10, math.Ceil(math.Log10(most))), least*10), from: padTop + plotH, to: padTop, log: true}
	x := axis{lo: 0, hi: tails, from: padLeft, to: padLeft + plotW}
	for i, samples := range lines {
		c.Lines = append(c.Lines, line{Name: names[i], Class: colour(i), Parts: pathOf(samples, x, y)})
		c.Summary += fmt.Sprintf("%s: half within %s ms, 99 %% within %s ms. ", names[i], fixed(ends[i].P50, 1).Text, fixed(ends[i].P99, 1).Text)
	}
	for _, mark := range []struct {
		share float64
		text  string
	}{{1, "0 %"}, {0.5, "50 %"}, {0.1, "90 %"}, {0.01, "99 %"}, {0.001, "99.9 %"}} {
		c.X = append(c.X, tick{x.at(-math.Log10(mark.share)), mark.text})
	}
	c.Y = y.ticks(5, func(v float64) string { return tookText(v) })
	return c, true
}

// percentileCurve gives milliseconds by -log10 of the share that took longer, all rounds together.
func percentileCurve(runs []record.Run, of func(record.Run) *record.Latency) (samples []Sample, whole record.Latency) {
	l, err := merged(runs, of)
	if l == nil || err != nil {
		return nil, whole
	}
	h, err := l.Decode()
	if err != nil || h.TotalCount() == 0 {
		return nil, whole
	}
	for step := range curveSteps + 1 {
		at := tails * float64(step) / curveSteps
		us := h.ValueAtQuantile(100 * (1 - math.Pow(10, -at)))
		samples = append(samples, Sample{at, max(float64(us)/1000, 0.01)})
	}
	return samples, *l
}
