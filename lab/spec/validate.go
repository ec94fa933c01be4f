package spec

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// collectors are the lab's own; LAB_COLLECTOR takes files beside them.
var collectors = []string{"v2", "v2-stock", "v1"}

// Validate checks ranges and combinations and returns every problem at once.
func (s Spec) Validate() error {
	var problems []error
	refuse := func(name string, value any, format string, args ...any) {
		problems = append(problems, problem(name, fmt.Sprint(value), fmt.Sprintf(format, args...)))
	}
	s.checkRanges(refuse)
	s.checkNames(refuse)
	s.checkPairs(refuse)
	if err := s.checkRate(refuse); err != nil {
		problems = append(problems, err)
	}
	problems = append(problems, s.targetProblems()...)
	return join(problems)
}

type refusal func(name string, value any, format string, args ...any)

func (s Spec) checkRanges(refuse refusal) {
	for _, check := range []struct {
		name  string
		value int
	}{
		{"CONCURRENCY", s.Load.Concurrency},
		{"SPANS_COUNT", s.Load.SpansCount},
		{"TAGS_COUNT", s.Load.TagsCount},
		{"DURATION_S", s.Load.DurationS},
		{"LAB_WARMUP_S", s.Load.WarmupS},
		{"LAB_DRAIN_S", s.Load.DrainS},
		{"LAB_REPLICATION", s.Replication},
		{"LAB_ROUNDS", s.Rounds},
		{"LAB_SERVICES", s.Load.Services},
		{"LAB_TAG_VALUES", s.Load.TagValues},
		{"LAB_RESOURCE_ATTRIBUTES", s.Load.ResourceAttributes},
		{"TRACES_PER_REQUEST", s.Load.TracesPerRequest},
		{"LAB_MAX_REQUEST_SPANS", s.Load.MaxRequestSpans},
		{"LAB_OPERATIONS", s.Load.Operations},
		{"LAB_TAG_LENGTH", s.Load.TagLength},
		{"LAB_ERROR_PERCENT", s.Load.ErrorPercent},
		{"LAB_EVENTS", s.Load.Events},
		{"LAB_REQUEST_TIMEOUT_S", s.Load.RequestTimeoutS},
	} {
		least, top := acceptedRange(check.name)
		if check.name == "LAB_REPLICATION" && s.Target != nil {
			least = 0 // not asked for: the target's keyspace says
		}
		if check.value < least || check.value > top {
			refuse(check.name, check.value, "accepted: %s", accepted(check.name))
		}
	}
}

func (s Spec) checkNames(refuse refusal) {
	if !slices.Contains(acceptedWords("LAB_RUNTIME"), string(s.Runtime)) {
		refuse("LAB_RUNTIME", s.Runtime, "accepted: %s", accepted("LAB_RUNTIME"))
	}
	if !slices.Contains(acceptedWords("LAB_PROFILE"), string(s.Profile)) {
		refuse("LAB_PROFILE", s.Profile, "accepted: %s", accepted("LAB_PROFILE"))
	}
	for _, c := range s.Collectors {
		if !slices.Contains(collectors, c) && !IsFile(c) {
			refuse("LAB_COLLECTOR", c, "accepted: %s", accepted("LAB_COLLECTOR"))
		}
	}
	for _, c := range s.Clients {
		if !slices.Contains(acceptedWords("LAB_CLIENT"), c) {
			refuse("LAB_CLIENT", c, "accepted: %s", accepted("LAB_CLIENT"))
		}
	}
	if s.Load.Shape != "" && !slices.Contains(acceptedWords("LAB_SHAPE"), s.Load.Shape) {
		refuse("LAB_SHAPE", s.Load.Shape, "accepted: %s", accepted("LAB_SHAPE"))
	}
	if s.Load.Gzip && !slices.Contains(s.Clients, "otlp-http") {
		refuse("LAB_GZIP", s.Load.Gzip, "only otlp-http compresses; add it to LAB_CLIENT or leave LAB_GZIP unset")
	}
	refuseRepeats(refuse, "LAB_BACKENDS", s.Backends)
	refuseRepeats(refuse, "LAB_COLLECTOR", s.Collectors)
	refuseRepeats(refuse, "LAB_CLIENT", s.Clients)
}

func (s Spec) checkPairs(refuse refusal) {
	if slices.Contains(s.Collectors, "v1") && slices.Contains(s.Clients, "thrift-udp") {
		refuse("LAB_CLIENT", "thrift-udp", "Jaeger v1.76 has no UDP receiver (it went with the agent); take LAB_COLLECTOR=v2 for UDP")
	}
	if s.Load.MaxRequestSpans > 2_000 && s.Target == nil && slices.Contains(s.Collectors, "v2") {
		refuse("LAB_MAX_REQUEST_SPANS", s.Load.MaxRequestSpans, "the queue of collector v2 holds 2,000 spans and refuses a larger request for ever")
	}
	for _, b := range s.Backends {
		if b.Engine.Embedded() {
			if s.Replication > 1 {
				refuse("LAB_REPLICATION", s.Replication, "%s keeps one copy; take LAB_REPLICATION=1 or leave it out of LAB_BACKENDS", b)
			}
			continue
		}
		if s.Replication > b.Nodes {
			refuse("LAB_REPLICATION", s.Replication, "%s has %d nodes; accepted: 1 to %d", b, b.Nodes, b.Nodes)
		}
		if s.Profile != None && b.Nodes > MaxNodes(b.Engine) {
			refuse("LAB_BACKENDS", b, "the database host of profile %s (4 GiB) holds %d nodes of %s; take fewer or LAB_PROFILE=none",
				s.Profile, MaxNodes(b.Engine), b.Engine)
		}
	}
}

// IsFile reports whether a LAB_COLLECTOR word names a collector file.
func IsFile(word string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(word)))
}

// On fixes a spec to the runtime that was found and fills in its default backends. It refuses
// what the user named and that runtime can't have, and returns the default arms left out instead.
func (s Spec) On(runtime Runtime, goos string) (Spec, []string, error) {
	if s.Target != nil {
		return s, nil, s.Validate() // nothing of the lab's but its load node, a process
	}
	s.Runtime = runtime
	if !s.Named {
		s.Backends = defaultBackends(runtime, goos)
	}
	var problems []error
	for _, b := range s.Backends {
		switch {
		case runtime == Process && b.Engine == Scylla:
			problems = append(problems, problem("LAB_BACKENDS", b.String(),
				"ScyllaDB runs in Docker only; start Docker (LAB_RUNTIME=docker) or take cassandra:N, badger, memory"))
		case runtime == Process && goos == "darwin" && b.Engine == Cassandra && b.Nodes > 1:
			problems = append(problems, problem("LAB_BACKENDS", b.String(),
				"macOS has one loopback address, so processes are limited to cassandra:1; take that or Docker"))
		}
	}
	var left []string
	if !s.Named && runtime == Process {
		left = append(left, "scylla:3: ScyllaDB runs in Docker only")
	}
	if err := s.Validate(); err != nil {
		problems = append(problems, unjoin(err)...)
	}
	return s, left, join(problems)
}

func defaultBackends(runtime Runtime, goos string) []Backend {
	switch {
	case runtime == Docker:
		return []Backend{{Scylla, 3}, {Cassandra, 2}}
	case goos == "darwin":
		return []Backend{{Cassandra, 1}, {Badger, 0}}
	default:
		return []Backend{{Cassandra, 2}, {Badger, 0}}
	}
}

func refuseRepeats[T comparable](refuse refusal, name string, words []T) {
	seen := map[T]bool{}
	for _, word := range words {
		if seen[word] {
			refuse(name, word, "named twice; each arm runs once a round, for more runs take LAB_ROUNDS")
		}
		seen[word] = true
	}
}

// accepted is what a setting takes, as its tag says: the only place of names and ranges, which the
// README, error texts and these checks share.
func accepted(name string) string {
	t := reflect.TypeFor[environment]()
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("env") == name {
			return t.Field(i).Tag.Get("accept")
		}
	}
	return "see the settings in the README"
}

// acceptedWords are the names that a setting takes whose tag is "a, b, c" or "a list of a, b, c".
func acceptedWords(name string) []string {
	return strings.Split(strings.TrimPrefix(accepted(name), "a list of "), ", ")
}

// acceptedRange are the ends of a setting whose tag begins with "1 to 100".
func acceptedRange(name string) (least, top int) {
	if _, err := fmt.Sscanf(accepted(name), "%d to %d", &least, &top); err != nil {
		panic("spec: " + name + " states no range: " + err.Error())
	}
	return least, top
}
