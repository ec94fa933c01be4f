package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every knob that takes a number keeps to the range that the README's table states: its ends are
// taken, what is beyond them and what is no whole number is refused by name, with the range.
func TestEveryNumberKeepsToItsRange(t *testing.T) {
	ends := regexp.MustCompile(`^(\d+) to (\d+)`)
	seen := 0
	for _, s := range Settings() {
		found := ends.FindStringSubmatch(s.Accepted)
		if found == nil {
			continue
		}
		seen++
		low, _ := strconv.ParseUint(found[1], 10, 64)
		high, _ := strconv.ParseUint(found[2], 10, 64)
		bad := []string{"-1", "-9999999999", "abc", "1.5", "1e3", "0x10", "NaN", "Inf", "1,000", "10s", "١", "1 0", " 1",
			"99999999999999999999", "340282366920938463463374607431768211456"}
		if low > 0 {
			bad = append(bad, strconv.FormatUint(low-1, 10))
		}
		if high+1 > high {
			bad = append(bad, strconv.FormatUint(high+1, 10))
		}
		for _, value := range bad {
			_, err := FromEnv([]string{s.Name + "=" + value})
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s=%q: accepted: %s", s.Name, value, found[0])) {
				t.Errorf("%s=%q: %v, want it refused with its range", s.Name, value, err)
			}
		}
		for _, value := range []string{found[1], found[2]} {
			_, err := FromEnv([]string{s.Name + "=" + value})
			if err != nil && strings.Contains(err.Error(), s.Name+"=\""+value+"\": accepted: "+found[0]) {
				t.Errorf("%s=%q, an end of its range, is refused: %v", s.Name, value, err)
			}
		}
	}
	if seen < 19 {
		t.Errorf("only %d settings state a range", seen)
	}
}

// Every knob with words keeps to its words; none takes what is no value at all.
func TestEveryWordIsRefusedUnlessKnown(t *testing.T) {
	free := []string{"LAB_IMAGE_", "LAB_RESULTS", "LAB_RESUME", "LAB_CACHE"} // any text is a path or an image
	for _, s := range Settings() {
		skip := false
		for _, prefix := range free {
			skip = skip || strings.HasPrefix(s.Name, prefix)
		}
		if skip || regexp.MustCompile(`^\d+ to`).MatchString(s.Accepted) {
			continue
		}
		for _, value := range []string{"-1", "0x", "none at all", "9e99", ";"} {
			if _, err := FromEnv([]string{s.Name + "=" + value}); err == nil || !strings.Contains(err.Error(), s.Name) {
				t.Errorf("%s=%q: %v, want it refused by name", s.Name, value, err)
			}
		}
	}
}
