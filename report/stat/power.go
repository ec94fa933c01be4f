package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Target is how often a planned comparison must find the effect it is planned for.
const Target = 0.9

const (
	mostRounds = 200  // what LAB_ROUNDS accepts: a plan that nobody can run is no plan
	draws      = 1000 // simulated comparisons for one answer
	// margin is two standard errors of a share of Target in so many draws: the answer must be
	// good, not look good.
	margin = 0.019
)

// Noise is how far rounds of one arm lie from the arm's median, as shares of it: what repeats of
// one configuration measured on this machine. Empty or nil = not known.
type Noise []float64

// lowest keeps a widened share above a figure of nothing at all.
const lowest = -0.99

// NoiseOf pools the rounds of several arms, each against its own median. A median fits its own
// few rounds too well, so the shares are widened by sqrt(n / (n - 1)).
func NoiseOf(arms ...[]float64) Noise {
	var noise Noise
	for _, values := range arms {
		if len(values) < 2 {
			continue
		}
		median := Summarize(values).Median
		if median <= 0 {
			continue
		}
		n := float64(len(values))
		for _, v := range values {
			noise = append(noise, max((v/median-1)*math.Sqrt(n/(n-1)), lowest))
		}
	}
	return noise
}

// Power is the share of simulated comparisons, of rounds each of two arms that differ by effect
// (0.2 = 20 %), in which the test finds the difference. Rounds are drawn from the noise with a
// fixed seed, so the same record always gives the same answer.
func (noise Noise) Power(rounds int, effect, alpha float64) float64 {
	k := critical(rounds, rounds, alpha)
	if k < 0 || len(noise) == 0 {
		return 0
	}
	r := rand.New(rand.NewPCG(uint64(rounds), 0x6a61656765726c61)) // any fixed numbers
	old, new := make([]float64, rounds), make([]float64, rounds)
	found := 0
	for range draws {
		for i := range rounds {
			old[i] = 1 + noise[r.IntN(len(noise))]
			new[i] = (1 + effect) * (1 + noise[r.IntN(len(noise))])
		}
		if u := pairsBelow(new, old); min(u, float64(rounds*rounds)-u) <= float64(k) {
			found++
		}
	}
	return float64(found) / draws
}

// pairsBelow is Mann and Whitney's U: pairs in which the first is smaller, ties counted half. It
// sorts both.
func pairsBelow(first, second []float64) (u float64) {
	slices.Sort(first)
	slices.Sort(second)
	below, equal := 0, 0 // of second: smaller than, and not greater than, the one at hand
	for _, a := range first {
		for below < len(second) && second[below] < a {
			below++
		}
		for equal = max(equal, below); equal < len(second) && second[equal] == a; {
			equal++
		}
		u += float64(len(second)-equal) + float64(equal-below)/2
	}
	return u
}

// Plan says how many rounds each arm needs so that a difference of effect (0.2 = 20 %) is found
// in nine of ten comparisons; ok is false when the noise is not known or 200 rounds are too few.
func (noise Noise) Plan(effect, alpha float64) (rounds int, ok bool) {
	if len(noise) == 0 || effect == 0 {
		return 0, false
	}
	enough := func(n int) bool { return noise.Power(n, effect, alpha) >= Target+margin }
	hi := Rounds(alpha)
	lo := hi - 1 // never enough
	for !enough(hi) {
		if lo, hi = hi, 2*hi; lo >= mostRounds {
			return 0, false
		}
	}
	for hi-lo > 1 {
		if middle := (lo + hi) / 2; enough(middle) {
			hi = middle
		} else {
			lo = middle
		}
	}
	for !enough(hi + 1) { // power climbs in steps; one lucky step is not enough
		hi++
	}
	return hi, hi <= mostRounds
}

// Detectable is the smallest difference, in steps of a tenth of a per cent, that so many rounds of
// each arm find in nine of ten comparisons; ok is false when the noise is not known, the rounds
// are fewer than the test needs, or not even a factor of 16 is found.
func (noise Noise) Detectable(rounds int, alpha float64) (effect float64, ok bool) {
	if len(noise) == 0 || rounds < Rounds(alpha) {
		return 0, false
	}
	const most, step = 16.0, 0.001
	enough := func(effect float64) bool { return noise.Power(rounds, effect, alpha) >= Target+margin }
	hi := step
	for !enough(hi) {
		if hi *= 2; hi > most {
			return 0, false
		}
	}
	for lo := hi / 2; hi-lo > step; {
		if middle := (lo + hi) / 2; enough(middle) {
			hi = middle
		} else {
			lo = middle
		}
	}
	return math.Ceil(hi/step) * step, true
}
