//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// Scope says which of the lab's own leftovers a sweep may end. Runs of a live lab process, and
// what was never the lab's, are out of reach of both.
type Scope int

// The scopes.
const (
	Dead Scope = iota // of lab processes that are gone; every start does this
	All               // also what LAB_KEEP left up on purpose; `jaegerlab clean` does this
)

// Sweep ends and removes what earlier runs of the lab left on this machine: processes, cgroups
// and temporary folders by the state folder, containers and networks by label, where a Docker
// daemon answers. It returns one line for each thing it removed or had to leave alone.
func Sweep(ctx context.Context, scope Scope) ([]string, error) {
	told, errs := sweepContainers(ctx, scope)
	lines, err := sweepRuns(ctx, scope)
	if err := errors.Join(append(errs, err)...); err != nil {
		return append(told, lines...), fmt.Errorf("remove leftovers: %w", err)
	}
	return append(told, lines...), nil
}

// sweepRuns ends what runs on record left as processes, cgroups and folders.
func sweepRuns(ctx context.Context, scope Scope) (told []string, err error) {
	states, err := runStates()
	errs := []error{err}
	for _, state := range states {
		lines, err := state.sweep(ctx, scope)
		told, errs = append(told, lines...), append(errs, err)
	}
	return told, errors.Join(errs...)
}

// sweep ends one run's leftovers, if the scope reaches it.
func (s *runState) sweep(ctx context.Context, scope Scope) ([]string, error) {
	o := s.owner
	switch {
	case !o.here():
		return nil, nil // a cache shared between machines: not ours to judge
	case o.Kept && scope != All:
		return nil, nil
	case !o.Kept && o.live():
		if scope == All {
			return []string{fmt.Sprintf("left alone: run %s of the live lab process %d", o.RunID, o.Lab.PID)}, nil
		}
		return nil, nil
	}
	var told []string
	if o.Boot == bootID() {
		told = s.endProcesses(ctx)
		if errs := errors.Join(endStrays(o.RunID)...); errs != nil {
			return told, errs
		}
		if groups := runGroups(o.RunID); len(groups) > 0 {
			if err := removeRunGroups(o.RunID); err != nil {
				return told, err
			}
			told = append(told, fmt.Sprintf("%d control groups of run %s", len(groups), o.RunID))
		}
	}
	if _, err := os.Stat(o.Dir); o.Dir != "" && err == nil {
		if err := os.RemoveAll(o.Dir); err != nil {
			return told, fmt.Errorf("remove folder: %w", err)
		}
		told = append(told, fmt.Sprintf("folder %s of run %s", o.Dir, o.RunID))
	}
	return told, s.remove()
}

// endProcesses kills the processes on record whose pid and start time both match, with their
// process groups.
func (s *runState) endProcesses(ctx context.Context) []string {
	var told []string
	for _, node := range s.nodes() {
		if !node.id.alive() {
			continue
		}
		what := describeProcess(ctx, node.id.PID)
		_ = signalGroup(node.id.PID, syscall.SIGKILL)
		waitGone(node.id)
		told = append(told, fmt.Sprintf("process %s of run %s: %s", node.name, s.owner.RunID, what))
	}
	return told
}

// endStrays kills what is still in the run's cgroups or carries the run's name in its
// environment: grandchildren that left their process group.
func endStrays(runID string) []error {
	pids := marked(runID)
	for _, folder := range runGroups(runID) {
		group := cgroup{dirs: map[string]string{memoryController: folder}}
		pids = append(pids, group.processes()...)
	}
	slices.Sort(pids)
	var errs []error
	for _, pid := range slices.Compact(pids) {
		id, err := processStart(pid)
		if err != nil || pid == os.Getpid() {
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
		if !waitGone(id) {
			errs = append(errs, fmt.Errorf("process %d of run %s is still there after SIGKILL", pid, runID))
		}
	}
	return errs
}

func waitGone(id processID) bool {
	for deadline := time.Now().Add(killBound); id.alive(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
