package report

import (
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// targets says, before any figure, which arms ran on a Jaeger and a database that are not the lab's.
func targets(all []arm, say func(string, ...any)) {
	var names []string
	for _, a := range all {
		if name := a.asked().Spec.Target; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names != nil {
		say("TARGET: %s is the user's own Jaeger and database. The lab sent its own spans there and read them back by id; limits, "+
			"CPU and memory of the target are not known, foreign spans were not looked for, and what others sent to its collector "+
			"meanwhile is in the collector's counters.", strings.Join(names, ", "))
	}
}

const ofTarget = "it is the user's own, and can't be seen from here"

// unseen reports whether a node is a target's, of which nothing but its address is known.
func unseen(run record.Run, n record.Node) bool {
	return run.Spec.Target != "" && n.Host == spec.CollectorHost
}

// limitCells are the limits asked for and whether they were in force.
func (b *builder) limitCells(run record.Run, n record.Node) []Cell {
	if unseen(run, n) {
		return []Cell{b.unknown(ofTarget), b.unknown(ofTarget)}
	}
	return []Cell{text(limitsText(n.Asked)), b.inForce(n)}
}
