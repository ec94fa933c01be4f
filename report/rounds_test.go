package report

import (
	"math"
	"math/rand/v2"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/report/stat"
)

// recordedRounds are real rounds of one arm (testdata/rounds/record.json), measured one after another
// on a machine with two CPUs that other work shared.
func recordedRounds(t *testing.T) []float64 {
	t.Helper()
	r, err := record.Load("testdata/rounds")
	if err != nil {
		t.Fatal(err)
	}
	values, all := quantitySaved.values(r.Runs)
	if !all || len(values) < 8 {
		t.Fatalf("the recorded rounds give %d values", len(values))
	}
	return values
}

// draw takes rounds at random, again and again the same ones in every run of the test.
func draw(r *rand.Rand, from []float64, n int, factor float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = from[r.IntN(len(from))] * factor
	}
	return values
}

// binomialBound is what a count of successes exceeds in fewer than one of a thousand tests.
func binomialBound(n int, p float64) int {
	return int(math.Ceil(float64(n)*p + 3.1*math.Sqrt(float64(n)*p*(1-p))))
}

// The same configuration against itself: the risk of naming a winner is at most 5 %, at every
// number of rounds and with several rivals.
func TestAANamesNoMoreWinnersThanTheTestAllows(t *testing.T) {
	recorded := recordedRounds(t)
	for _, n := range []int{4, 5, 6, 10} {
		r := rand.New(rand.NewPCG(47, uint64(n)))
		const draws = 1000
		winners, ofThree := 0, 0
		for range draws {
			base := draw(r, recorded, n, 1)
			if stat.Compare(base, draw(r, recorded, n, 1), stat.Alpha).Real() {
				winners++
			}
			shared := stat.Alpha / 2
			first := stat.Compare(base, draw(r, recorded, n, 1), shared).Real()
			if second := stat.Compare(base, draw(r, recorded, n, 1), shared).Real(); first || second {
				ofThree++
			}
		}
		bound := binomialBound(draws, stat.Alpha)
		t.Logf("n=%d: %d of %d draws of two arms, %d of three, call a difference (at most %d)", n, winners, draws, ofThree, bound)
		if winners > bound || ofThree > bound {
			t.Errorf("n=%d: %d and %d of %d A/A draws call a difference, a test at 5 %% allows %d", n, winners, ofThree, draws, bound)
		}
	}
}

// A difference that is there is found in nine of ten comparisons with as many rounds as planned.
func TestAPlantedEffectIsFound(t *testing.T) {
	recorded := recordedRounds(t)
	noise := stat.NoiseOf(recorded)
	for _, effect := range []float64{0.2, 0.5, -0.2} {
		n, ok := noise.Plan(effect, stat.Alpha)
		if !ok {
			t.Fatalf("no plan for %v", effect)
		}
		r := rand.New(rand.NewPCG(20, uint64(n)))
		const draws = 1000
		found := 0
		for range draws {
			if stat.Compare(draw(r, recorded, n, 1), draw(r, recorded, n, 1+effect), stat.Alpha).Real() {
				found++
			}
		}
		t.Logf("%+.0f %%: planned %d rounds, found in %d of %d draws", 100*effect, n, found, draws)
		if found < draws*9/10 {
			t.Errorf("a planted effect of %v was found in %d of %d draws of the planned %d rounds", effect, found, draws, n)
		}
	}
}
