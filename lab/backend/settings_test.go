package backend

import "testing"

// Both engines' spellings of one setting become one.
func TestCommitLogIsSpelledAlike(t *testing.T) {
	for _, test := range []struct{ mode, period, want string }{
		{"periodic", "10000ms", "periodic, 10s"}, {"periodic", "10000", "periodic, 10s"}, {"periodic", "10s", "periodic, 10s"},
		{"periodic", "", "periodic"}, {"batch", "2ms", "batch"}, {"", "10s", ""}, {"periodic", "0", "periodic"},
	} {
		if got := commitLog(test.mode, test.period); got != test.want {
			t.Errorf("%q and %q give %q, want %q", test.mode, test.period, got, test.want)
		}
	}
}
