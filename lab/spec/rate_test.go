package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRatesAreRead(t *testing.T) {
	for text, want := range map[string]Rate{
		"":                         nil,
		"5000":                     {{5000, 5000, 0}},
		"0:5000:30":                {{0, 5000, 30}},
		"100:100:10, 0:9e3:2.5,50": {{100, 100, 10}, {0, 9000, 2.5}, {50, 50, 0}},
	} {
		got, err := ParseRate(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

// Zero, negative, huge and non-numeric values are refused with what is accepted.
func TestBadRatesAreRefused(t *testing.T) {
	for _, text := range []string{"0", "-5", "fast", "1e10", "NaN", "Inf", "1:2", "1:2:3:4", "1:2:0", "1:2:-1", "5,6", ",", "5000,",
		"0:0:10", "1:x:3", "0.5"} {
		_, err := ParseRate(text)
		if err == nil || !strings.HasPrefix(err.Error(), "RATE=") || !strings.Contains(err.Error(), "accepted: spans/s") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A rate of which a window would see nothing, or not all, is refused before anything starts.
func TestRatesThatDoNotFitTheWindow(t *testing.T) {
	for _, test := range []struct {
		environ []string
		want    string // "" = accepted
	}{
		{[]string{"RATE=1", "DURATION_S=60"}, ""}, // five requests of 11 spans
		{[]string{"RATE=2", "DURATION_S=5"}, "it offers 10.0 spans in a window of 5 s, and one request has 11"},
		{[]string{"RATE=500", "DURATION_S=2", "TRACES_PER_REQUEST=100"}, "it offers 1000.0 spans in a window of 2 s, and one request has 1100"},
		{[]string{"RATE=0:50000:30,50000", "DURATION_S=60"}, ""},
		{[]string{"RATE=0:50000:30,50000", "DURATION_S=20"}, "its part 2 begins after 30 s, and the window ends after 20 s"},
		{[]string{"RATE=0:50000:30", "DURATION_S=20"}, ""},
		{[]string{"RATE=0:10:10", "DURATION_S=1"}, "it offers 0.5 spans"},
		{[]string{"RATE=10:0:2", "DURATION_S=60"}, "it offers 10.0 spans"},
		{[]string{"RATE=0:10:2", "DURATION_S=3"}, ""}, // 10 in the ramp, 10 after it
	} {
		_, err := FromEnv(test.environ)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.environ, err, test.want)
		}
	}
}

// A named content gives values; what the user sets wins; the original changes nothing.
func TestNamedContents(t *testing.T) {
	for _, name := range acceptedWords("LAB_CONTENT") {
		s, err := FromEnv([]string{"LAB_CONTENT=" + name, "LAB_SHAPE=chain"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Load.Shape != "chain" {
			t.Errorf("%s: the user's own LAB_SHAPE is lost: %+v", name, s.Load)
		}
	}
	if named := acceptedWords("LAB_CONTENT"); len(named) != len(contents) {
		t.Errorf("the setting names %v, but there are %d contents", named, len(contents))
	}
	s, err := FromEnv([]string{"LAB_CONTENT=original"})
	if diff := cmp.Diff(Default(), s); err != nil || diff != "" {
		t.Errorf("original: %v %s", err, diff)
	}
	if s, _ := FromEnv([]string{"LAB_CONTENT=varied"}); s.Load.Services != 10 || s.Load.ErrorPercent != 5 {
		t.Errorf("varied: %+v", s.Load)
	}
	if _, err := FromEnv([]string{"LAB_CONTENT=odd"}); err == nil || !strings.Contains(err.Error(), "original, deep, heavy, varied") {
		t.Errorf("%v", err)
	}
}
