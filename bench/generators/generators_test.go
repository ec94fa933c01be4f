package generators

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"jaegerlab/bench"
)

func row(name string, spans ...float64) (r bench.Row) {
	r.Name = name
	for _, s := range spans {
		r.Add(spansPerS, s)
	}
	return r
}

// A ratio is to the peer's fastest row, round by round, and its lines are the last ones.
func TestRatiosAreToTheFastestRow(t *testing.T) {
	lines := ratios([]bench.Row{
		row(labGRPC, 1000, 3000), row(ceilingGRPC, 2000, 3000), row(labHTTP, 900, 900),
		row("tracegen/otlp-grpc/services=1", 50, 60), row("tracegen/otlp-grpc/services=4", 100, 100),
		row("tracegen/otlp-grpcs", 9999), row("tracegen/otlp-http/services=1", 90, 90),
	})
	want := []string{"generator ratio to tracegen over HTTP: 10.00", "generator ratio to tracegen: 20.00",
		"generator ratio to ceiling: 0.75"}
	if !slices.Equal(lines[1:], want) || !strings.Contains(lines[0], "tracegen/otlp-grpc/services=4") {
		t.Errorf("%q, want %q at the end", lines, want)
	}
	if lines = ratios([]bench.Row{row(labGRPC, 1)}); !strings.HasSuffix(lines[2], ": n/a") {
		t.Errorf("without a peer: %q", lines)
	}
}

// What --only matches nothing of is refused with the rows that there are, and a peer without a row
// is not built.
func TestOnlyChosenRowsAndTheirPeers(t *testing.T) {
	all := contestants("jaegerlab", nil)
	if _, err := chosen(all, regexp.MustCompile("nothing")); err == nil || !strings.Contains(err.Error(), labGRPC) {
		t.Errorf("the error does not list the rows: %v", err)
	}
	own, err := chosen(all, regexp.MustCompile("^lab/"))
	if err != nil || len(own) != 4 {
		t.Fatalf("%d rows, %v", len(own), err)
	}
	paths, _, err := buildPeers(t.Context(), own, func(string, ...any) { t.Error("something is built") })
	if err != nil || len(paths) != 0 {
		t.Errorf("built %v, %v", paths, err)
	}
}
