package lab

import (
	"context"
	"errors"
	"testing"
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// A comparison of two arms is interrupted in its second run and resumed for that arm alone, which gets
// one round more than was planned: what was measured stays as it was, the broken run stays too, and at
// the end every round is there.
func TestIntegrationResume(t *testing.T) {
	s := spec.Default()
	s.Experiment, s.Runtime, s.Results = "resume", spec.Process, t.TempDir()
	s.Backends, s.Named, s.Load.DurationS, s.Rounds = []spec.Backend{{Engine: spec.Memory}}, true, 2, 1
	s.Clients = []string{"otlp-grpc", "otlp-http"}
	needs(t, s)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	loads := 0
	first, err := Run(ctx, s, Options{Console: NewConsole(testWriter{t}, false), Hooks: Hooks{
		AtLoad: func(loading context.Context, _ Stack) {
			if loads++; loads == 2 {
				pause(loading, time.Second)
				interrupt()
			}
		},
	}})
	if !errors.Is(err, context.Canceled) || len(first.Record.Runs) != 2 || first.Record.Complete {
		t.Fatalf("interrupted: %d runs, complete %v, %v", len(first.Record.Runs), first.Record.Complete, err)
	}

	s.Rounds, s.Clients = 2, s.Clients[1:]
	if _, err := Run(t.Context(), s, Options{Console: NewConsole(testWriter{t}, false), Resume: first.Dir}); err != nil {
		t.Fatal(err)
	}
	r, err := record.Load(first.Dir)
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, run := range r.Runs {
		if run.Verdict == record.Whole && run.Error == "" {
			whole++
		}
	}
	if !r.Complete || len(r.Runs) != 4 || whole != 3 || r.Runs[0].Folder != first.Record.Runs[0].Folder ||
		r.Runs[0].Numbering != first.Record.Runs[0].Numbering || r.Runs[1].Error == "" ||
		r.Runs[2].Arm != r.Runs[1].Arm || r.Runs[3].Arm != r.Runs[1].Arm {
		t.Errorf("complete %v, %d runs, %d whole, first %s", r.Complete, len(r.Runs), whole, r.Runs[0].Folder)
	}
	nothingLeft(t)
}

// Backend null is the generator's ceiling: nothing is stored, so that nothing is missing either, and
// what arrived is what was acknowledged.
func TestIntegrationNull(t *testing.T) {
	run, _, err := measureWith(t, spec.Backend{Engine: spec.Null}, 2, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	l := run.Ledger
	if run.Verdict != record.Unknown || len(run.Reasons) == 0 || run.StoredInWindow != nil || run.StoredAfterDrain != nil {
		t.Errorf("verdict %s: %v, stored in window %v, after drain %v", run.Verdict, run.Reasons, run.StoredInWindow, run.StoredAfterDrain)
	}
	if run.ArrivedInWindow == nil || *run.ArrivedInWindow == 0 || *run.ArrivedInWindow > l.Generated {
		t.Errorf("arrived in window %v of %d generated", run.ArrivedInWindow, l.Generated)
	}
}
