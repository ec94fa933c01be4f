package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The figures are those that benchstat documents for its defaults: 3 + 3 can't be told apart,
// 4 + 4 can, a median's 95 % interval needs six.
func TestTooFewRoundsSayHowManyAreNeeded(t *testing.T) {
	for _, test := range []struct {
		n     int
		alpha float64
		need  int
		p     float64
	}{
		{1, Alpha, 4, 1}, {2, Alpha, 4, 1.0 / 3}, {3, Alpha, 4, 0.1}, {4, Alpha, 0, 2.0 / 70}, {4, Alpha / 2, 5, 2.0 / 70}, {5, Alpha / 2, 0, 2.0 / 252},
	} {
		var old, new []float64
		for i := range test.n {
			old, new = append(old, 100+float64(i)), append(new, 200+float64(i))
		}
		d := Compare(old, new, test.alpha)
		if d.Need != test.need || d.Real() != (test.need == 0) || math.Abs(d.P-test.p) > 1e-9 {
			t.Errorf("%d rounds a side at alpha %v: need %d, real %v, p %v; want need %d, p %v", test.n, test.alpha, d.Need, d.Real(), d.P, test.need, test.p)
		}
		if d.Need > 0 && d.Lo != nil {
			t.Errorf("%d rounds a side give an interval", test.n)
		}
	}
	if s := Summarize([]float64{1, 2, 3, 4, 5}); s.Median != 3 || s.Lo != nil {
		t.Errorf("five rounds: %+v, want no interval", s)
	}
	if s := Summarize([]float64{6, 1, 2, 3, 4, 5}); s.Median != 3.5 || s.Lo == nil || *s.Lo != 1 || *s.Hi != 6 {
		t.Errorf("six rounds: %+v", s)
	}
}

// Unequal numbers of rounds, as when a noisy arm was given more.
func TestUnequalRounds(t *testing.T) {
	d := Compare([]float64{10, 11, 12}, []float64{20, 21, 22, 23, 24}, Alpha)
	if d.Need != 0 || !d.Real() || d.Lo == nil || *d.Lo <= 0 {
		t.Errorf("3 + 5 rounds that are wholly apart: %+v", d)
	}
}

// The interval holds no difference exactly when the test calls one.
func TestIntervalAgreesWithTest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	calls := 0
	for range 2000 {
		n1, n2 := 4+r.IntN(8), 4+r.IntN(8)
		old, new := make([]float64, n1), make([]float64, n2)
		for i := range old {
			old[i] = 100 * math.Exp(0.1*r.NormFloat64())
		}
		shift := 0.3 * r.Float64()
		for i := range new {
			new[i] = 100 * math.Exp(shift+0.1*r.NormFloat64())
		}
		d := Compare(old, new, Alpha)
		apart := *d.Lo > 0 || *d.Hi < 0
		if apart != d.Real() {
			t.Fatalf("p %v, interval %v to %v of %v and %v", d.P, *d.Lo, *d.Hi, old, new)
		}
		if apart {
			calls++
		}
	}
	if calls < 200 || calls > 1800 {
		t.Errorf("%d of 2000 were apart: the test tries only one side", calls)
	}
}

// In 95 of 100 repeats the interval holds the true ratio.
func TestIntervalCoversTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	covered := 0
	const repeats = 2000
	for range repeats {
		old, new := make([]float64, 6), make([]float64, 6)
		for i := range old {
			old[i], new[i] = 100*math.Exp(0.1*r.NormFloat64()), 120*math.Exp(0.1*r.NormFloat64())
		}
		if d := Compare(old, new, Alpha); *d.Lo <= 0.2 && *d.Hi >= 0.2 {
			covered++
		}
	}
	if covered < repeats*94/100 {
		t.Errorf("the interval held the true difference in %d of %d repeats", covered, repeats)
	}
}

func TestZerosAndEqualRounds(t *testing.T) {
	zero := []float64{0, 0, 0, 0}
	if d := Compare(zero, zero, Alpha); d.Real() || d.Relative != nil || d.Lo != nil {
		t.Errorf("all zero: %+v", d)
	}
	if d := Compare(zero, []float64{1, 2, 3, 4}, Alpha); !d.Real() || d.Relative != nil {
		t.Errorf("from zero: %+v, want a real difference without a share", d)
	}
	same := []float64{7, 7, 7, 7}
	if d := Compare(same, same, Alpha); d.Real() || *d.Relative != 0 || *d.Lo != 0 || *d.Hi != 0 {
		t.Errorf("all equal: %+v", d)
	}
	if d := Compare(nil, same, Alpha); d.Real() || d.Need == 0 {
		t.Errorf("no round on one side: %+v", d)
	}
}

func TestCriticalIsTheTests(t *testing.T) {
	for _, n := range []int{4, 5, 7, 10, 20, 60} {
		k := critical(n, n, Alpha)
		if k < 0 || k >= n*n/2 {
			t.Errorf("critical(%d) = %d", n, k)
		}
	}
	if k := critical(5, 5, 0.05); k != 2 { // printed in every table of Mann and Whitney's U
		t.Errorf("critical U of 5 + 5 at 5 %% is %d, tables say 2", k)
	}
	if k := critical(10, 10, 0.05); k != 23 {
		t.Errorf("critical U of 10 + 10 at 5 %% is %d, tables say 23", k)
	}
}

func TestNoiseUnknownPlansNothing(t *testing.T) {
	noise := NoiseOf([]float64{5}, nil)
	if _, ok := noise.Plan(0.2, Alpha); ok {
		t.Error("a plan without noise")
	}
	if _, ok := noise.Detectable(10, Alpha); ok {
		t.Error("a detectable effect without noise")
	}
	if _, ok := NoiseOf([]float64{1, 2, 3}).Detectable(3, Alpha); ok {
		t.Error("three rounds detect something")
	}
}

// More noise or a smaller effect needs more rounds, and what is detectable shrinks with rounds.
func TestPlansAreMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	values := make([]float64, 20)
	for i := range values {
		values[i] = 1000 * (1 + 0.1*r.NormFloat64())
	}
	noise := NoiseOf(values)
	few, ok := noise.Plan(0.5, Alpha)
	many, ok2 := noise.Plan(0.1, Alpha)
	if !ok || !ok2 || few >= many || few < 4 {
		t.Errorf("50 %% needs %d rounds, 10 %% needs %d", few, many)
	}
	at5, _ := noise.Detectable(5, Alpha)
	at20, _ := noise.Detectable(20, Alpha)
	if at5 <= at20 || at20 <= 0 {
		t.Errorf("5 rounds detect %v, 20 detect %v", at5, at20)
	}
	if again, _ := noise.Detectable(5, Alpha); again != at5 {
		t.Errorf("the same noise gives %v, then %v", at5, again)
	}
	if n, ok := (Noise{0, 0, 0}).Plan(0.01, Alpha); !ok || n != 4 {
		t.Errorf("without any noise %d rounds, want the test's least, 4", n)
	}
}
