package experiments

import "testing"

// Question: does the lab find a difference where there is none?
// Method: one arm twice, under two names, in as many rounds as a comparison of backends would
// take, in seeded random order; nothing is meant to differ. The window is short so that ten runs fit
// go test's ten minutes.
// Changes our mind: a winner in more than one of twenty repeats.
func TestAA(t *testing.T) {
	onlyWhenNamed(t)
	compare(t, experiment{Name: "aa", Settings: []string{"LAB_BACKENDS=badger", "LAB_ROUNDS=5", "DURATION_S=5"}, Copies: 2})
}
