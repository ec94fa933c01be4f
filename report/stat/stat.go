// Package stat holds the statistics of a comparison: what several rounds of an arm say, whether
// two arms differ, and what can be told with so many rounds. It is a tool of the step report in
// the flow spec -> run -> record -> report, pure, and knows nothing of the lab: it takes numbers,
// one a round. Medians, their intervals and the test come from golang.org/x/perf/benchmath without
// an assumption on the distribution (Mann-Whitney), so benchstat says the same of the same rounds.
package stat

import (
	"math"
	"math/big"
	"slices"
	"sync"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"
)

// Alpha is the risk of calling a difference where there is none, over all comparisons with one
// baseline; Confidence is that of intervals.
const (
	Alpha      = 0.05
	Confidence = 0.95
)

// MedianRounds is how many rounds the interval of a median needs: with five, the widest that
// order statistics give has less than 95 %.
const MedianRounds = 6

// Direction says which way a quantity is better.
type Direction string

// The directions.
const (
	Higher  Direction = "higher"
	Lower   Direction = "lower"
	Neutral Direction = "neutral"
)

// Summary is what several rounds say of one quantity.
type Summary struct {
	N      int
	Median float64
	Lo, Hi *float64 // 95 % interval of the median; nil with fewer than MedianRounds rounds
}

// Summarize gives median and interval of at least one value, one a round, in any order.
func Summarize(values []float64) Summary {
	s := benchmath.AssumeNothing.Summary(sample(values, Alpha), Confidence)
	summary := Summary{N: len(values), Median: s.Center}
	if !math.IsInf(s.Lo, 0) && !math.IsInf(s.Hi, 0) && !math.IsNaN(s.Lo+s.Hi) {
		summary.Lo, summary.Hi = &s.Lo, &s.Hi
	}
	return summary
}

// sample copies: benchmath sorts in place.
func sample(values []float64, alpha float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.Thresholds{CompareAlpha: alpha})
}

// Difference is how the rounds of one arm differ from those of another.
type Difference struct {
	Old, New Summary
	Relative *float64 // median of new / median of old - 1; nil when the old median is 0
	Lo, Hi   *float64 // interval of the relative difference at 1 - Alpha; nil where it can't be had
	P        float64  // of the test that both come from one distribution
	Alpha    float64
	Need     int // rounds of each arm without which the test can't find any difference; 0 = there are enough
}

// Real reports whether the difference is more than noise: there were rounds enough and p is at
// most alpha.
func (d Difference) Real() bool { return d.Need == 0 && d.P <= d.Alpha }

// Compare tests two arms against each other; alpha is Alpha, or a part of it where one baseline
// has several rivals. Both need at least one value.
//
// The interval is that of the shift of the logarithm (Hodges and Lehmann 1963): order statistics
// of all ratios new / old, cut where the test itself cuts, so that it holds no difference exactly
// when the test calls one.
func Compare(old, new []float64, alpha float64) Difference {
	d := Difference{Old: Summarize(old), New: Summarize(new), Alpha: alpha}
	if d.Old.Median != 0 {
		relative := d.New.Median/d.Old.Median - 1
		d.Relative = &relative
	}
	if leastP(len(old), len(new)) > alpha {
		d.Need = Rounds(alpha)
		d.P = 1
		if len(old) > 0 && len(new) > 0 {
			d.P = test(old, new, alpha)
		}
		return d
	}
	d.P = test(old, new, alpha)
	d.Lo, d.Hi = interval(old, new, alpha)
	return d
}

func test(old, new []float64, alpha float64) float64 {
	return benchmath.AssumeNothing.Compare(sample(old, alpha), sample(new, alpha)).P
}

// interval gives order statistics of all ratios less 1.
func interval(old, new []float64, alpha float64) (lo, hi *float64) {
	if slices.Min(old) <= 0 || slices.Min(new) < 0 {
		return nil, nil
	}
	ratios := make([]float64, 0, len(old)*len(new))
	for _, o := range old {
		for _, n := range new {
			ratios = append(ratios, n/o-1)
		}
	}
	slices.Sort(ratios)
	k := critical(len(old), len(new), alpha)
	return &ratios[k], &ratios[len(ratios)-1-k]
}

// leastP is the smallest p that the test can give for so many rounds: all of one arm above all of
// the other. 3 + 3 give 0.1, 4 + 4 give 0.03.
func leastP(n1, n2 int) float64 {
	if n1 == 0 || n2 == 0 {
		return 1
	}
	ways, _ := new(big.Float).SetInt(new(big.Int).Binomial(int64(n1+n2), int64(n1))).Float64()
	return min(1, 2/ways)
}

// Rounds is how many rounds each of two arms needs before the test can find any difference.
func Rounds(alpha float64) int {
	n := 1
	for leastP(n, n) > alpha {
		n++
	}
	return n
}

// exactLimit is up to where the exact distribution is used, as in benchmath.
const exactLimit = 50

var criticals sync.Map // [3]any{n1, n2, alpha} -> int

// critical is the greatest U of which the two-sided test without ties says p <= alpha; -1 = none.
func critical(n1, n2 int, alpha float64) int {
	key := [3]any{n1, n2, alpha}
	if k, ok := criticals.Load(key); ok {
		return k.(int)
	}
	k := -1
	if n1 <= exactLimit && n2 <= exactLimit {
		exact := stats.UDist{N1: n1, N2: n2}
		for 2*exact.CDF(float64(k+1)) <= alpha {
			k++
		}
	} else {
		a, b := float64(n1), float64(n2)
		deviation := math.Sqrt(a * b * (a + b + 1) / 12)
		k = int(a*b/2 - 0.5 + stats.StdNormal.InvCDF(alpha/2)*deviation)
	}
	criticals.Store(key, k)
	return k
}
