package report

import (
	"fmt"
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/report/stat"
)

// Two kinds of arms say what could be reached and are never ranked as stores: null, a black hole
// in the collector's place (the generator's ceiling), and, beside other stores, memory behind the
// same collector (the collector's: it does nothing with a span but keep it).

func (a arm) engine() spec.Engine { return a.asked().Spec.Backend.Engine }

// noStore reports whether a run's spans went where nothing stores them.
func noStore(run record.Run) bool { return run.Spec.Backend.Engine == spec.Null }

const whyNoStore = "nothing is stored: a black hole stands in the collector's place and counts spans"

// stores are the arms that can be compared, memory last: it is no base for others.
func stores(all []arm) []arm {
	var others, memory []arm
	for _, a := range all {
		switch a.engine() {
		case spec.Null:
		case spec.Memory:
			memory = append(memory, a)
		default:
			others = append(others, a)
		}
	}
	return append(others, memory...)
}

// deciding are the arms whose figures decide on what is compared: a ceiling has no say.
func deciding(all []arm) []arm {
	compared := stores(all)
	if n := slices.IndexFunc(compared, func(a arm) bool { return a.engine() == spec.Memory }); n > 0 {
		return compared[:n]
	}
	return compared
}

// ceilings says what generator and collector reached without a store, and how much of that each
// arm did; "" where no arm tells.
func ceilings(all []arm, s source) string {
	var heights, reached []string
	for _, a := range all {
		run := a.asked()
		switch rate := ceilingOf(a); {
		case rate == nil:
		case a.engine() == spec.Null:
			heights = append(heights, fmt.Sprintf("generator %s spans/s (%s into a black hole)", fixed(*rate, 0).Text, run.Client))
		case len(deciding(all)) < len(stores(all)):
			heights = append(heights, fmt.Sprintf("collector %s spans/s (%s, %s, on memory)", fixed(*rate, 0).Text, run.Spec.Collector,
				run.Client))
		}
	}
	if heights == nil {
		return ""
	}
	for _, a := range deciding(all) {
		if of := reaches(a, all, s); len(of) > 0 {
			reached = append(reached, fmt.Sprintf("%s reaches %s", a.name, strings.Join(of, " and ")))
		}
	}
	text := "Ceilings, never ranked as stores: " + strings.Join(heights, ", ") + "."
	if reached != nil {
		text += " " + strings.Join(reached, "; ") + "."
	}
	return text
}

// reaches lists what an arm reaches of the ceilings that hold for it.
func reaches(a arm, all []arm, s source) (of []string) {
	own := medianOf(a, s.perSecond)
	for _, c := range all {
		height := ceilingOf(c)
		if own == nil || height == nil || *height <= 0 || c.name == a.name || c.asked().Client != a.asked().Client {
			continue
		}
		share := fmt.Sprintf("%.0f %%", 100**own / *height)
		switch {
		case c.engine() == spec.Null:
			of = append(of, share+" of the generator's")
		case c.asked().Spec.Collector == a.asked().Spec.Collector:
			of = append(of, share+" of the collector's")
		}
	}
	return of
}

// ceilingOf is spans/s of an arm that is a ceiling, the median of its rounds; nil for any other.
func ceilingOf(a arm) *float64 {
	switch a.engine() {
	case spec.Null:
		arrived := source{value: func(run record.Run) *int64 { return run.ArrivedInWindow }}
		return medianOf(a, arrived.perSecond)
	case spec.Memory:
		return medianOf(a, byCounter.perSecond)
	}
	return nil
}

func medianOf(a arm, value func(record.Run) *float64) *float64 {
	var known []float64
	for _, run := range a.measured() {
		if v := value(run); v != nil {
			known = append(known, *v)
		}
	}
	if known == nil {
		return nil
	}
	median := stat.Summarize(known).Median
	return &median
}
