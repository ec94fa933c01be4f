package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// resume takes over an interrupted comparison, or one that is to get more rounds: what it measured
// stays, and every arm that is asked for runs until it has the rounds that are asked for; so a noisy
// arm can be named alone. A run that did not end stays in the record too; its arm gets another one
// under the next number.
func (c *comparison) resume(s spec.Spec, host record.Host, version string) error {
	folder, r, err := record.Open(c.Resume)
	if err == nil {
		err = sameComparison(r, s, host, version)
	}
	if err != nil {
		return fmt.Errorf("resume %s: %w", c.Resume, err)
	}
	c.arms = s.Arms()
	c.folder, c.record = folder, r
	if text := c.addedRounds(s.Rounds); text != "" && !slices.Contains(r.Warnings, text) {
		c.record.Warnings = append(c.record.Warnings, text)
	}
	if len(c.arms) == len(r.Spec.Arms()) {
		c.record.Spec.Rounds = s.Rounds
	}
	c.record.Spec.Keep = s.Keep
	c.spec = c.record.Spec
	c.spec.Rounds = s.Rounds
	c.record.Complete, c.record.Incomplete = false, "still running or killed"
	done := 0
	for _, arm := range c.arms {
		done += c.measured(arm)
	}
	c.Console.Say("resuming %s: %d runs are measured", folder.Dir, done)
	return nil
}

// addedRounds says that arms get more rounds than were planned after some of them could be looked at: no
// test knows why. "" = they get no more.
func (c *comparison) addedRounds(rounds int) string {
	planned := c.record.Spec.Rounds
	seen := slices.ContainsFunc(c.record.Runs, func(run record.Run) bool { return run.Error == "" })
	more := slices.ContainsFunc(c.arms, func(arm spec.Arm) bool { return c.measured(arm) < rounds })
	if rounds <= planned || !seen || !more {
		return ""
	}
	return fmt.Sprintf("rounds were added to the %d that were planned: if that was for what those showed, differences are "+
		"found more often than p says", planned)
}

// sameComparison refuses to put rounds of different measurements into one record.
func sameComparison(r record.Record, s spec.Spec, host record.Host, version string) error {
	if r.Lab != version {
		return fmt.Errorf("it was measured by version %s of the lab, and this is %s: rounds of both can't be one sample; "+
			"start a new comparison and compare the two", r.Lab, version)
	}
	for _, one := range []struct {
		what       string
		then, asks any
	}{
		{"what is measured", measuredBy(r.Spec), measuredBy(s)},
		{"the host", [2]any{r.Host.Arch, r.Host.CPUs}, [2]any{host.Arch, host.CPUs}},
	} {
		then, err := json.Marshal(one.then)
		if err != nil {
			return err
		}
		asks, err := json.Marshal(one.asks)
		if err != nil {
			return err
		}
		if !bytes.Equal(then, asks) {
			return fmt.Errorf("%s differs: it was %s and is %s now; set the same LAB_ values, or start a new comparison",
				one.what, then, asks)
		}
	}
	known := names(r.Spec.Arms())
	for _, arm := range names(s.Arms()) {
		if !slices.Contains(known, arm) {
			return fmt.Errorf("arm %s is not one of its arms, which are %s; name all of them or some with LAB_BACKENDS, "+
				"LAB_COLLECTOR and LAB_CLIENT, or start a new comparison", arm, strings.Join(known, ", "))
		}
	}
	return nil
}

func names(arms []spec.Arm) (all []string) {
	for _, arm := range arms {
		all = append(all, arm.Name())
	}
	return all
}

// measuredBy is a spec without its arms and what changes no figure.
func measuredBy(s spec.Spec) spec.Spec {
	s.Backends, s.Collectors, s.CollectorNames, s.Clients = nil, nil, nil, nil
	s.Rounds, s.Results, s.Keep, s.Named = 0, "", false, false
	return s
}

// lacking names the arms without the rounds that were planned: a resumed comparison need not have run all.
func (c *comparison) lacking() error {
	var lines []error
	for _, arm := range c.record.Spec.Arms() {
		if n := c.measured(arm); n < c.record.Spec.Rounds {
			lines = append(lines, fmt.Errorf("%s has %d of %d rounds", arm.Name(), n, c.record.Spec.Rounds))
		}
	}
	return errors.Join(lines...)
}

// measured counts the runs of an arm that came to their end.
func (c *comparison) measured(arm spec.Arm) (n int) {
	for _, run := range c.record.Runs {
		if run.Arm == arm.Name() && run.Error == "" {
			n++
		}
	}
	return n
}

// nextRound is the number of an arm's next run.
func (c *comparison) nextRound(arm spec.Arm) int {
	next := 1
	for _, run := range c.record.Runs {
		if run.Arm == arm.Name() {
			next = max(next, run.Round+1)
		}
	}
	return next
}
