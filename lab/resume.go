package lab

import (
	"bytes"
	"encoding/json"
	"fmt"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// resume takes over an interrupted comparison, or one that is to get more rounds: what it measured
// stays, and every arm runs until it has the rounds that are asked for. A run that did not end
// stays in the record too; its arm gets another one under the next number.
func (c *comparison) resume(s spec.Spec, host record.Host, version string) error {
	folder, r, err := record.Open(c.Resume)
	if err == nil {
		err = sameComparison(r, s, host, version)
	}
	if err != nil {
		return fmt.Errorf("resume %s: %w", c.Resume, err)
	}
	r.Spec.Rounds, r.Spec.Keep = s.Rounds, s.Keep
	c.folder, c.record, c.spec = folder, r, r.Spec
	c.record.Complete, c.record.Incomplete = false, "still running or killed"
	done := 0
	for _, arm := range c.spec.Arms() {
		done += c.measured(arm)
	}
	c.Console.Say("resuming %s: %d runs are measured", folder.Dir, done)
	return nil
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
	return nil
}

// measuredBy is a spec without what changes no figure.
func measuredBy(s spec.Spec) spec.Spec {
	s.Rounds, s.Results, s.Keep, s.Named = 0, "", false, false
	return s
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
