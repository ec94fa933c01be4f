package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// notWithTarget are the settings of what the lab would start, each with why a target has no use for it.
var notWithTarget = []struct{ name, why string }{
	{"LAB_BACKENDS", "the database is the target's (cql)"},
	{"LAB_COLLECTOR", "the collector is the target's (collector)"},
	{"LAB_REPLICATION", "the target's keyspace says how many copies there are"},
	{"LAB_RUNTIME", "the load node runs as a process; accepted: auto, process"},
	{"LAB_PROFILE", "nothing of a target is limited by the lab; accepted: none"},
	{"LAB_KEEP", "there is no stack of the lab's to leave up"},
}

// harmless are values that change nothing beside a target.
var harmless = map[string][]string{
	"LAB_RUNTIME": {string(Auto), string(Process)}, "LAB_PROFILE": {string(None)}, "LAB_KEEP": {"0", "false"},
}

// aim turns a spec to the target of LAB_TARGET: one arm for each client, its load node a process
// without limits. What is set beside it and has no meaning there is refused by name.
func (s *Spec) aim(vars map[string]string) (problems []error) {
	path := vars["LAB_TARGET"]
	s.TargetConfirm = vars["LAB_TARGET_CONFIRM"]
	if path == "" {
		if s.TargetConfirm != "" {
			problems = append(problems, problem("LAB_TARGET_CONFIRM", s.TargetConfirm, "there is no target to confirm; set LAB_TARGET"))
		}
		return problems
	}
	conflicts := slices.Clone(notWithTarget)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if strings.HasPrefix(name, "LAB_IMAGE_") {
			conflicts = append(conflicts, struct{ name, why string }{name, "no container is started"})
		}
	}
	for _, c := range conflicts {
		if value := vars[c.name]; value != "" && !slices.Contains(harmless[c.name], value) {
			problems = append(problems, problem(c.name, value, "not with LAB_TARGET: "+c.why))
		}
	}
	target, err := ReadTarget(path)
	if err != nil {
		return append(problems, err)
	}
	s.Target, s.Runtime, s.Profile, s.Replication, s.Keep = &target, Process, None, 0, false
	s.Backends, s.Named = []Backend{{Engine: target.CQL.Engine}}, true
	s.Collectors = []string{target.Collector.Generation}
	return problems
}

// targetProblems says which clients the target has no port for, and what of it is not confirmed.
func (s Spec) targetProblems() (problems []error) {
	if s.Target == nil {
		return nil
	}
	for _, client := range s.Clients {
		if s.Target.Collector.Ingest[client] == "" {
			problems = append(problems, problem("LAB_CLIENT", client, fmt.Sprintf("target %s has no port for it; accepted by its file "+
				"(collector.ingest): %s", s.Target.Name, strings.Join(slices.Sorted(maps.Keys(s.Target.Collector.Ingest)), ", "))))
		}
	}
	rate, err := ParseRate(s.Load.Rate)
	if err != nil {
		return problems // said by Validate
	}
	fixed := 0.0
	if len(rate) == 1 && rate[0].From == rate[0].To {
		fixed = rate[0].From
	}
	if err := s.Target.Confirm(s.TargetConfirm, fixed, s.Load.WarmupS+s.Load.DurationS); err != nil {
		problems = append(problems, err)
	}
	return problems
}
