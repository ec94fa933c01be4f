// Package lab runs a comparison: it takes a spec and leaves a record. Its steps, in their order,
// are Run (what the machine allows, then every round of every arm) and round.measure (start,
// load, drain, read back); each takes what the step before made. It is the conductor of the
// flow spec -> run -> record -> report and the only package that knows all the others.
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
)

// Options are the circumstances of a run, which change no result.
type Options struct {
	Console  *Console
	Deadline time.Time // everything is torn down by then; zero: none
	Hooks    Hooks
	Resume   string // folder of a comparison that is continued; "" = a new one
}

// Result is a comparison on disk.
type Result struct {
	Record record.Record
	Dir    string // "" when nothing was started
}

// Setup builds and fetches what the arms of a spec need on this machine.
func Setup(ctx context.Context, s spec.Spec, say func(string, ...any)) error {
	where, why, err := setup.ResolveRuntime(ctx, s.Runtime)
	if err != nil {
		return err
	}
	say("%s", why)
	s, _, err = s.On(where, runtime.GOOS)
	if err != nil {
		return err
	}
	s, own, err := readCollectors(ctx, s)
	if err != nil {
		return err
	}
	return orWithoutDocker(where, setup.Install(ctx, own.need(s), say))
}

// orWithoutDocker adds the way out to what Docker lacks. The lab does not take it by itself: a
// run of other programs under other limits is not what was asked for.
func orWithoutDocker(where spec.Runtime, err error) error {
	if err == nil || where != spec.Docker || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w\nOr run it without Docker: LAB_RUNTIME=process", err)
}

// Run measures every round of every arm of a spec and returns the record, which is also on disk.
// The error says why the comparison is not complete: refused before it started (no folder), or
// interrupted or broken on the way (a folder with what was measured until then). A verdict is
// no error.
func Run(ctx context.Context, asked spec.Spec, o Options) (Result, error) {
	if !o.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, o.Deadline, errors.New("go test's deadline is near; give it a longer -timeout"))
		defer cancel()
	}
	c, err := prepare(ctx, asked, o)
	if err != nil {
		return Result{}, err
	}
	defer c.unlock()
	c.measureAll(ctx)
	return c.finish(ctx)
}

// comparison is one Run under way.
type comparison struct {
	Options
	spec    spec.Spec
	catalog *setup.Catalog
	own     ownCollectors
	folder  *record.Folder
	record  record.Record
	unlock  func()

	arms     []spec.Arm // that get rounds: all, or those that a resumed comparison names
	schedule schedule
	failed   []error
}

// prepare finds out what this machine allows, and refuses what can't work before anything starts.
func prepare(ctx context.Context, asked spec.Spec, o Options) (*comparison, error) {
	c := &comparison{Options: o}
	where, why, err := setup.ResolveRuntime(ctx, asked.Runtime)
	if err != nil {
		return nil, err
	}
	o.Console.Say("%s", why)
	s, left, err := asked.On(where, runtime.GOOS)
	if err != nil {
		return nil, err
	}
	if s, c.own, err = readCollectors(ctx, s); err != nil {
		return nil, err
	}
	// Before waiting for another run or building anything: a plan that can't fit its time.
	if err := MakePlan(least(s)).Check(record.Host{}, -1, untilDeadline(o.Deadline)); err != nil {
		return nil, err
	}
	if c.unlock, err = node.Lock(ctx, o.Console.Say); err != nil {
		return nil, err
	}
	if err := c.ready(ctx, s, left); err != nil {
		c.unlock()
		return nil, err
	}
	return c, nil
}

// least is what of a spec runs in any case: all that the user named; of default backends one at
// least, since those that this machine lacks are left out.
func least(s spec.Spec) spec.Spec {
	if !s.Named {
		s.Backends = s.Backends[len(s.Backends)-1:]
	}
	return s
}

func (c *comparison) ready(ctx context.Context, s spec.Spec, left []string) error {
	ended, err := node.Sweep(ctx, node.Dead)
	for _, one := range ended {
		c.Console.Say("ended a leftover of an earlier run: %s", one)
	}
	if err != nil {
		return err
	}
	if c.catalog, err = setup.Find(ctx, s.Runtime, s.Images); err != nil {
		return err
	}
	leftOut, err := c.choose(&s, left)
	if err != nil {
		return err
	}
	c.spec, c.arms = s, s.Arms()
	host, err := sizeOf(ctx, s.Runtime)
	if err != nil {
		return err
	}
	plan := MakePlan(s)
	if err := plan.Check(host, diskFree(s.Results), untilDeadline(c.Deadline)); err != nil {
		return err
	}
	c.Console.Say("plan: %s", plan)
	if c.Resume != "" {
		return c.resume(s, host, labVersion(ctx))
	}
	if c.folder, err = record.Create(s.Results, s.Experiment); err != nil {
		return err
	}
	c.record = record.Record{
		Version: record.Version, ID: c.folder.ID, Experiment: s.Experiment, Lab: labVersion(ctx),
		Started: time.Now().UTC(), Spec: s, Host: host, LeftOut: leftOut, Incomplete: "still running or killed",
	}
	return c.save()
}

// choose keeps the backends whose programs are there. What the user named and is missing is an
// error that lists all of it; default backends are left out, with the reason.
func (c *comparison) choose(s *spec.Spec, left []string) ([]record.LeftOut, error) {
	var leftOut []record.LeftOut
	for _, line := range left {
		arm, reason, _ := strings.Cut(line, ": ")
		leftOut = append(leftOut, record.LeftOut{Arm: arm, Reason: reason})
	}
	var kept []spec.Backend
	var absent []setup.Absent
	for _, b := range s.Backends {
		one := *s
		one.Backends = []spec.Backend{b}
		missing := c.catalog.Missing(c.own.need(one).Programs...)
		if len(missing) == 0 {
			kept = append(kept, b)
			continue
		}
		absent = append(absent, missing...)
		leftOut = append(leftOut, record.LeftOut{Arm: b.String(), Reason: missing[0].String()})
	}
	if s.Named && len(absent) > 0 || len(kept) == 0 {
		return nil, orWithoutDocker(s.Runtime, &setup.AbsentError{Items: unique(absent)})
	}
	for _, one := range leftOut {
		c.Console.Say("left out %s: %s", one.Arm, one.Reason)
	}
	s.Backends = kept
	return leftOut, nil
}

// measureAll runs the rounds, saving after each. A failed run does not end the comparison: the
// next arm may be sound. An interrupt does.
func (c *comparison) measureAll(ctx context.Context) {
	done := map[string]int{} // by an earlier session that this one resumes
	for _, arm := range c.arms {
		done[arm.Name()] = c.measured(arm)
	}
	c.plan(done)
	for n := 1; n <= c.spec.Rounds; n++ {
		for _, arm := range c.order(n) {
			if done[arm.Name()] >= n {
				continue
			}
			if ctx.Err() != nil {
				c.failed = append(c.failed, context.Cause(ctx))
				return
			}
			n := c.nextRound(arm)
			c.schedule.begin(roundTime(c.spec, arm), time.Now())
			run, err := c.measure(ctx, arm, n)
			c.schedule.end(time.Now())
			if err != nil {
				c.failed = append(c.failed, fmt.Errorf("%s, round %d: %w", arm.Name(), n, err))
				c.Console.Say("%s, round %d did not end: %v", arm.Name(), n, err)
			}
			c.record.Runs = append(c.record.Runs, run)
			if err := c.save(); err != nil {
				c.failed = append(c.failed, err)
			}
		}
	}
}

// plan lays out the rounds that are not done yet, for the progress line.
func (c *comparison) plan(done map[string]int) {
	for _, arm := range c.arms {
		rounds := max(c.spec.Rounds-done[arm.Name()], 0)
		c.schedule.rounds += rounds
		c.schedule.left += time.Duration(rounds) * roundTime(c.spec, arm)
	}
}

// order is the order of arms in a round: as they were named when there is one round, else shuffled
// by the seed for every two rounds, the second of which runs them the other way round. So chance
// decides, and no arm runs early more often than another.
func (c *comparison) order(round int) []spec.Arm {
	arms := slices.Clone(c.arms)
	if c.spec.Rounds > 1 {
		r := rand.New(rand.NewPCG(c.spec.Seed, uint64((round-1)/2)))
		r.Shuffle(len(arms), func(i, j int) { arms[i], arms[j] = arms[j], arms[i] })
		if round%2 == 0 {
			slices.Reverse(arms)
		}
	}
	return arms
}

func (c *comparison) finish(ctx context.Context) (Result, error) {
	c.record.Ended = time.Now().UTC()
	err := errors.Join(c.failed...)
	c.record.Complete, c.record.Incomplete = true, ""
	if incomplete := cmp.Or(err, c.lacking()); incomplete != nil {
		c.record.Complete, c.record.Incomplete = false, incomplete.Error()
	}
	if saved := c.save(); saved != nil {
		err = errors.Join(err, saved)
	}
	return Result{Record: c.record, Dir: c.folder.Dir}, err
}

func (c *comparison) save() error { return c.folder.Save(c.record) }

func untilDeadline(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return max(time.Until(deadline), 1)
}

func unique(absent []setup.Absent) []setup.Absent {
	var items []setup.Absent
	seen := map[setup.Absent]bool{}
	for _, a := range absent {
		if !seen[a] {
			seen[a] = true
			items = append(items, a)
		}
	}
	return items
}
