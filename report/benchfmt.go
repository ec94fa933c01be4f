package report

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/report/stat"
)

// BenchName is the comparison in benchstat's format, in a record's folder: one line a round.
//
//	benchstat -col /arm bench.txt          the arms of one comparison
//	benchstat OLD/bench.txt NEW/bench.txt  two comparisons
const BenchName = "bench.txt"

// Benchmarks gives the rounds of a record in the format of golang.org/x/perf/benchfmt. Quantities
// that a run does not have are left out. Loss classes are declared exact, everything else is a
// sample. Percentiles are not there: benchstat would take their median.
func Benchmarks(r record.Record) []byte {
	all := arms(r)
	s := pickSource(all)
	quantities := Quantities(s)
	var out bytes.Buffer
	fmt.Fprintf(&out, "experiment: %s\nprofile: %s\n", benchText(r.Experiment), r.Spec.Profile)
	for _, q := range quantities {
		fmt.Fprintf(&out, "Unit %s", q.Bench)
		if q.Better != stat.Neutral {
			fmt.Fprintf(&out, " better=%s", q.Better)
		}
		if q.Exact {
			out.WriteString(" assume=exact")
		}
		out.WriteByte('\n')
	}
	for _, a := range all {
		for _, run := range a.measured() {
			fmt.Fprintf(&out, "BenchmarkJaeger/arm=%s 1", benchArm(run))
			for _, q := range quantities {
				if v := q.Value(run); v != nil {
					fmt.Fprintf(&out, " %s %s", strconv.FormatFloat(*v, 'g', -1, 64), q.Bench)
				}
			}
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// benchArm is the arm's name without what the format gives a meaning.
func benchArm(run record.Run) string {
	name := run.Arm
	if run.Engine.StandIn {
		name += " STAND-IN"
	}
	var b strings.Builder
	for _, r := range clean(name) {
		switch r {
		case ' ', '/', '=':
			b.WriteByte('_')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func benchText(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
