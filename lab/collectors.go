package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"jaegerlab/lab/node"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/stack"
)

// ownCollectors are the collectors that files give, by the path that LAB_COLLECTOR names.
type ownCollectors map[string]stack.Flavour

// readCollectors reads the collector files of a spec whose runtime is known, before anything starts,
// and gives the spec their names. All faults are returned at once.
func readCollectors(ctx context.Context, s spec.Spec) (spec.Spec, ownCollectors, error) {
	own := ownCollectors{}
	names := map[string]string{}
	var problems []error
	for _, path := range s.Collectors {
		if !spec.IsFile(path) {
			continue
		}
		f, err := readCollector(ctx, s, path)
		if err != nil {
			problems = append(problems, fmt.Errorf("LAB_COLLECTOR=%q: %w", path, err))
			continue
		}
		for other, name := range names {
			if name == f.Name {
				problems = append(problems, fmt.Errorf("LAB_COLLECTOR=%q: it is called %s as %s is; give one another field name",
					path, name, other))
			}
		}
		own[path], names[path] = f, f.Name
	}
	if len(names) > 0 {
		s.CollectorNames = names
	}
	return s, own, errors.Join(problems...)
}

func readCollector(ctx context.Context, s spec.Spec, path string) (stack.Flavour, error) {
	f, err := stack.ParseFlavour(path)
	if err != nil {
		return f, err
	}
	if f.Generation == stack.V1 && slices.Contains(s.Clients, "thrift-udp") {
		return f, errors.New("LAB_CLIENT=thrift-udp: Jaeger v1 has no UDP receiver (it went with the agent); take a v2 for UDP")
	}
	if err := f.RunsIn(s.Runtime); err != nil {
		return f, err
	}
	if s.Runtime != spec.Docker || f.Image == "" {
		return f, nil
	}
	if _, present, err := node.ImagePresent(ctx, f.Image); err != nil || !present {
		return f, errors.Join(fmt.Errorf("image: %q: not in the daemon, and nothing is pulled during a run; docker pull %s", f.Image,
			f.Image), err)
	}
	return f, nil
}

// need is what the arms of a spec need; a file that changes settings only runs a pinned Jaeger.
func (own ownCollectors) need(s spec.Spec) setup.Need {
	need := setup.NeedOf(s, s.Runtime)
	for _, arm := range s.Arms() {
		f, ok := own[arm.Collector]
		if !ok || f.Own() {
			continue
		}
		if program := f.Program(arm.Backend.Engine); !slices.Contains(need.Programs, program) {
			need.Programs = append(need.Programs, program)
		}
	}
	return need
}
