package report

import (
	"fmt"
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/report/stat"
)

// arm is one side of the comparison with all its runs, in the order they were made.
type arm struct {
	name string
	runs []record.Run
}

// arms groups runs, in the order in which the arms appear: nothing is ranked.
func arms(r record.Record) (all []arm) {
	for _, run := range r.Runs {
		i := slices.IndexFunc(all, func(a arm) bool { return a.name == run.Arm })
		if i < 0 {
			all, i = append(all, arm{name: run.Arm}), len(all)
		}
		all[i].runs = append(all[i].runs, run)
	}
	return all
}

// measured reports whether a run came to its end, whatever its verdict.
func measured(run record.Run) bool { return run.Error == "" && run.Verdict != "" }

// accounted reports whether a run has a ledger: one that ended earlier has zeros that mean nothing.
func accounted(run record.Run) bool { return len(run.Ledger.Laws) > 0 }

func (a arm) measured() (runs []record.Run) {
	for _, run := range a.runs {
		if measured(run) {
			runs = append(runs, run)
		}
	}
	return runs
}

// asked is the last run whose server said what it is, or else the last run.
func (a arm) asked() record.Run {
	for _, run := range slices.Backward(a.runs) {
		if run.Engine.Name != "" {
			return run
		}
	}
	return a.runs[len(a.runs)-1]
}

// partial reports whether not everything could be read back, so that counts of rows are bounds.
func partial(run record.Run) bool {
	return run.StoredAfterDrain == nil || run.Ranges != nil && run.Ranges.Read < run.Ranges.Asked
}

func whyPartial(run record.Run) string {
	if noStore(run) {
		return whyNoStore
	}
	if run.Ranges != nil && run.Ranges.Read < run.Ranges.Asked {
		return fmt.Sprintf("read-back incomplete: %d of %d ranges; %s spans were read, the rest is not known",
			run.Ranges.Read, run.Ranges.Asked, whole(run.Ledger.Stored).Text)
	}
	return "not everything could be read back: " + strings.Join(run.Reasons, "; ")
}

// source is where the figure comes from that arms are compared on.
type source struct {
	column Column
	value  func(record.Run) *int64
	note   string // first lines: which source, and why not the better one
}

var (
	byWriteTime = source{column: colStoredInWindow, value: func(r record.Run) *int64 { return r.StoredInWindow }}
	byCounter   = source{column: colSavedInWindow, value: func(r record.Run) *int64 { return r.SavedInWindowCounter }}
)

// pickSource takes the best source that every measured run has: figures of two sources are never
// set against each other.
func pickSource(all []arm) source {
	all = deciding(all)
	without := lacking(all, byWriteTime)
	if len(without) == 0 {
		return byWriteTime
	}
	if len(lacking(all, byCounter)) == 0 {
		s := byCounter
		s.note = fmt.Sprintf("The headline, and any comparison, is spans saved in the window by the collector's own "+
			"counter: no figure by write time for %s.",
			strings.Join(without, ", "))
		return s
	}
	s := byWriteTime
	if len(all) <= 1 {
		return s // nothing to compare; its footnote says why the figure is missing
	}
	s.note = fmt.Sprintf("No source of stored spans is there for every arm (by write time not for %s; by the "+
		"collector's counter not for %s): the arms can't be compared on it.",
		strings.Join(without, ", "), strings.Join(lacking(all, byCounter), ", "))
	return s
}

// lacking names the arms with a measured run that has no figure of this source.
func lacking(all []arm, s source) (names []string) {
	for _, a := range all {
		if slices.ContainsFunc(a.measured(), func(run record.Run) bool { return s.value(run) == nil }) {
			names = append(names, a.name)
		}
	}
	return names
}

// perSecond divides the same figure that stands in the table, so that the two can't disagree.
func (s source) perSecond(run record.Run) *float64 {
	value := s.value(run)
	if value == nil || run.WindowS <= 0 {
		return nil
	}
	rate := float64(*value) / run.WindowS
	return &rate
}

// spread is the median of the known values of several rounds, with its 95 % interval, or with too
// few of them their range.
type spread struct {
	median, least, most float64
	interval            bool
	n, of               int
}

func spreadOf(runs []record.Run, value func(record.Run) *float64) spread {
	s := spread{of: len(runs)}
	var known []float64
	for _, run := range runs {
		if v := value(run); v != nil {
			known = append(known, *v)
		}
	}
	if s.n = len(known); s.n == 0 {
		return s
	}
	summary := stat.Summarize(known)
	s.median = summary.Median
	if summary.Lo != nil {
		s.least, s.most, s.interval = *summary.Lo, *summary.Hi, true
		return s
	}
	s.least, s.most = slices.Min(known), slices.Max(known)
	return s
}

func asFloat(value func(record.Run) *int64) func(record.Run) *float64 {
	return func(run record.Run) *float64 {
		v := value(run)
		if v == nil {
			return nil
		}
		f := float64(*v)
		return &f
	}
}
