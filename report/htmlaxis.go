package report

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The drawing area of a chart, in units of its view box.
const (
	chartW, chartH                     = 640.0, 200.0
	padLeft, padRight, padTop, padFoot = 62.0, 24.0, 12.0, 26.0
	plotW                              = chartW - padLeft - padRight
	plotH                              = chartH - padTop - padFoot
)

// tick is one mark of an axis at a position of the view box.
type tick struct {
	At   float64
	Text string
}

// axis maps values to positions.
type axis struct {
	lo, hi   float64
	from, to float64
	log      bool
}

func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		v, lo, hi = math.Log10(max(v, a.lo)), math.Log10(a.lo), math.Log10(a.hi)
	}
	if hi == lo {
		return a.from
	}
	return round1(a.from + (v-lo)/(hi-lo)*(a.to-a.from))
}

// ticks are round values: of 1, 2 and 5 times a power of ten, or the powers of ten themselves.
func (a axis) ticks(most int, format func(float64) string) (marks []tick) {
	if a.log {
		for e := math.Ceil(math.Log10(a.lo) - 1e-9); e <= math.Log10(a.hi)+1e-9; e++ {
			marks = append(marks, tick{a.at(math.Pow(10, e)), format(math.Pow(10, e))})
		}
		return marks
	}
	step := niceStep((a.hi - a.lo) / float64(most))
	for v := math.Ceil(a.lo/step) * step; v <= a.hi+step*1e-9; v += step {
		if math.Abs(v) < step*1e-9 {
			v = 0 // never "-0"
		}
		marks = append(marks, tick{a.at(v), format(v)})
	}
	return marks
}

func niceStep(rough float64) float64 {
	if rough <= 0 || math.IsNaN(rough) || math.IsInf(rough, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= rough {
			return factor * power
		}
	}
	return 10 * power
}

func round1(v float64) float64 { return math.Round(v*10) / 10 }

// brief is a number for an axis: 1,200; 0.25; 3.2 k.
func brief(v float64) string {
	abs := math.Abs(v)
	switch {
	case abs >= 1e9:
		return trim(v/1e9) + " G"
	case abs >= 1e6:
		return trim(v/1e6) + " M"
	case abs >= 1e4:
		return trim(v/1e3) + " k"
	}
	return grouped(trim(v))
}

// seconds is a moment on the axis of time.
func seconds(v float64) string { return brief(v) + " s" }

// tookText is a time in milliseconds, in the unit that it is read in.
func tookText(ms float64) string {
	switch {
	case ms >= 1000:
		return brief(ms/1000) + " s"
	case ms < 1:
		return brief(ms*1000) + " µs"
	}
	return brief(ms) + " ms"
}

// capital begins a heading.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

func trim(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// line is one series of a chart, ready to draw. A gap in the samples starts another part.
type line struct {
	Name  string
	Class string // which colour: c1 to c8, and a dash pattern beyond
	Parts []string
	Last  string // the last value, for the table beside the chart
}

// pathOf turns samples into coordinates; NaN is a gap.
func pathOf(samples []Sample, x, y axis) (parts []string) {
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			parts = append(parts, strings.TrimSpace(b.String()))
			b.Reset()
		}
	}
	for _, s := range samples {
		if math.IsNaN(s.Value) {
			flush()
			continue
		}
		b.WriteString(strconv.FormatFloat(x.at(s.AtS), 'f', -1, 64) + "," + strconv.FormatFloat(y.at(s.Value), 'f', -1, 64) + " ")
	}
	flush()
	return parts
}

const colours = 8

func colour(i int) string {
	class := "c" + strconv.Itoa(i%colours+1)
	if i >= colours {
		class += " dashed"
	}
	return class
}
