package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"jaegerlab/lab/record"
)

// runCharts are the time charts of one run; all share the axis of time.
type runCharts struct {
	ID, Title string
	Charts    []timeChart
	Zero      []string // what there is no chart of, because it was zero throughout
}

// timeChart is one quantity over time, with window and drain marked.
type timeChart struct {
	ID, Title, Unit, Summary string
	Lines                    []line
	X, Y                     []tick
	Window, Drain            band
	DrainKnown, Zero         bool
}

// band is a stretch of time, as position and width.
type band struct{ At, Width float64 }

// mostPoints bounds a line of a chart: more can't be seen, and make the page large.
const mostPoints = 120

// chartsOf draws the series of a run; without series there is nothing to draw.
func chartsOf(run record.Run, series Series) (runCharts, bool) {
	if len(series) == 0 && len(run.StoredEachS) == 0 {
		return runCharts{}, false
	}
	t := timeline{run: run, series: series, x: timeAxis(run, series)}
	charts := []timeChart{
		t.chart("Spans per second", "spans/s", brief, append(t.rates("generated", "acked", "saved"), t.stored()...)),
		t.chart("Queue of the collector", "spans", brief, t.plain("queue_size")),
		t.chart("CPU by node", "CPUs", brief, t.rates("cpu")),
		t.chart("Throttled by node", "s/s", brief, t.rates("throttled")),
		t.chart("Memory by node", "MiB", brief, inMiB(t.plain("memory"))),
	}
	c := runCharts{ID: anchor(run.Arm, run.Round), Title: clean(fmt.Sprintf("%s, round %d", run.Arm, run.Round))}
	for i, chart := range charts {
		switch {
		case chart.Zero:
			c.Zero = append(c.Zero, chart.Title)
		case len(chart.Lines) > 0:
			chart.ID = fmt.Sprintf("%s-%d", c.ID, i+1)
			c.Charts = append(c.Charts, chart)
		}
	}
	return c, len(c.Charts)+len(c.Zero) > 0
}

// anchor is a name for an element, of letters and digits only.
func anchor(arm string, round int) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(arm))
	return fmt.Sprintf("run-%s-%d", safe, round)
}

// timeline holds what all charts of a run share.
type timeline struct {
	run    record.Run
	series Series
	x      axis
}

func timeAxis(run record.Run, series Series) axis {
	first, last := 0.0, run.WindowS
	for _, samples := range series {
		if len(samples) > 0 {
			first, last = min(first, samples[0].AtS), max(last, samples[len(samples)-1].AtS)
		}
	}
	last = max(last, float64(len(run.StoredEachS)))
	return axis{lo: first, hi: max(last, first+1), from: padLeft, to: padLeft + plotW}
}

type named struct {
	name    string
	samples []Sample
}

// keys lists the series of a metric by node.
func (t timeline) keys(metric string) (keys []SeriesKey) {
	for key := range t.series {
		if key.Metric == metric {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b SeriesKey) int { return strings.Compare(a.Node, b.Node) })
	return keys
}

// plain are the series of a metric as they were read.
func (t timeline) plain(metric string) (list []named) {
	for _, key := range t.keys(metric) {
		list = append(list, named{key.Node, thin(t.series[key], slices.MaxFunc[[]Sample])})
	}
	return list
}

// inMiB keeps the axis round.
func inMiB(list []named) []named {
	for i, one := range list {
		list[i].samples = slices.Clone(one.samples)
		for j := range one.samples {
			list[i].samples[j].Value /= 1 << 20
		}
	}
	return list
}

// rates are the differences of counters by second. With several metrics a line is named by its
// metric, otherwise by its node.
func (t timeline) rates(metrics ...string) (list []named) {
	for _, metric := range metrics {
		for _, key := range t.keys(metric) {
			name := key.Node
			if len(metrics) > 1 {
				name = metric
			}
			list = append(list, named{name, rate(thinCounter(t.series[key]))})
		}
	}
	return list
}

// stored is the pace of the database's own write times.
func (t timeline) stored() []named {
	if len(t.run.StoredEachS) == 0 {
		return nil
	}
	sum := int64(0)
	counter := []Sample{{}}
	for i, n := range t.run.StoredEachS {
		sum += n
		counter = append(counter, Sample{float64(i + 1), float64(sum)})
	}
	return []named{{"stored", rate(thinCounter(counter))}}
}

// thin keeps at most mostPoints samples: the largest of each stretch, so that no peak is lost.
func thin(samples []Sample, pick func([]Sample, func(a, b Sample) int) Sample) []Sample {
	if len(samples) <= mostPoints {
		return samples
	}
	var kept []Sample
	size := (len(samples) + mostPoints - 1) / mostPoints
	for stretch := range slices.Chunk(samples, size) {
		kept = append(kept, pick(stretch, func(a, b Sample) int { return compareFloat(a.Value, b.Value) }))
	}
	return kept
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// thinCounter keeps the last sample of each stretch, so that a rate is the mean over it.
func thinCounter(samples []Sample) []Sample {
	if len(samples) <= mostPoints {
		return samples
	}
	kept := []Sample{samples[0]}
	size := (len(samples) + mostPoints - 1) / mostPoints
	for stretch := range slices.Chunk(samples[1:], size) {
		kept = append(kept, stretch[len(stretch)-1])
	}
	return kept
}

// leastStep is the shortest time, in seconds, that a rate is drawn over: a sample that came late has the
// next one right behind it, and a few spans within milliseconds would be the highest peak of all.
const leastStep = 0.5

// rate gives the growth a second; where the counter fell, nothing is known.
func rate(samples []Sample) (rates []Sample) {
	before := 0
	for i := 1; i < len(samples); i++ {
		took := samples[i].AtS - samples[before].AtS
		grown := samples[i].Value - samples[before].Value
		if took <= 0 || took < leastStep && grown >= 0 {
			continue
		}
		before = i
		value := grown / took
		if grown < 0 {
			value = math.NaN()
		}
		rates = append(rates, Sample{samples[i].AtS, value})
	}
	return rates
}

func (t timeline) chart(title, unit string, format func(float64) string, list []named) timeChart {
	top, peak := 0.0, ""
	for _, one := range list {
		for _, s := range one.samples {
			if s.Value > top {
				top, peak = s.Value, fmt.Sprintf("The highest is %s %s: %s at %.0f s.", format(s.Value), unit, clean(one.name), s.AtS)
			}
		}
	}
	if top == 0 {
		return timeChart{Title: title, Zero: len(list) > 0}
	}
	y := axis{lo: 0, hi: top * 1.05, from: padTop + plotH, to: padTop}
	c := timeChart{Title: title, Unit: unit, X: t.x.ticks(8, seconds), Y: y.ticks(4, format)}
	for i, one := range list {
		if parts := pathOf(one.samples, t.x, y); parts != nil {
			last := one.samples[len(one.samples)-1]
			c.Lines = append(c.Lines, line{Name: clean(one.name), Class: colour(i), Parts: parts, Last: format(last.Value)})
		}
	}
	c.Summary = fmt.Sprintf("%d lines over %.0f s; the window is from 0 to %.0f s. %s", len(c.Lines), t.x.hi-t.x.lo, t.run.WindowS, peak)
	start, end := t.x.at(0), t.x.at(t.run.WindowS)
	c.Window = band{start, end - start}
	if t.run.DrainS != nil {
		c.Drain, c.DrainKnown = band{end, max(t.x.at(min(t.run.WindowS+*t.run.DrainS, t.x.hi))-end, 0)}, true
	}
	return c
}
