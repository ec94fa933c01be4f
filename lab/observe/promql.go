package observe

import (
	"fmt"
	"slices"
	"strings"
)

// Names in Prometheus of what the lab itself knows of each node: pushed by Pusher in a run, scraped
// from the compose stack's resources service; both with the labels node and host.
const (
	NodeCPU       = "lab_node_cpu_seconds_total"
	NodeThrottled = "lab_node_throttled_seconds_total"
	NodeMemory    = "lab_node_memory_bytes"
)

// Selectors are the PromQL selectors that find a metric of Known in every version and generation
// of Jaeger, the best source first. Each ends with the given label matchers, such as `job="collector"`.
// An unknown name gives none.
func Selectors(name string, matchers ...string) []string {
	i := slices.IndexFunc(metrics, func(m metric) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	var groups []spelling
	bases := map[spelling][]string{} // by label and part: these can't name the same series twice
	for _, sp := range slices.Concat(metrics[i].v2, metrics[i].v1) {
		group := spelling{label: sp.label, part: sp.part}
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
		if !slices.Contains(bases[group], sp.base) {
			bases[group] = append(bases[group], sp.base)
		}
	}
	var selectors []string
	for _, group := range groups {
		parts := append([]string{"__name__=~" + fmt.Sprintf("%q", namePattern(bases[group], group.part))}, matchers...)
		if key, value, labelled := strings.Cut(group.label, "="); labelled {
			parts = append(parts, fmt.Sprintf("%s=%q", key, value))
		}
		selectors = append(selectors, "{"+strings.Join(parts, ",")+"}")
	}
	return selectors
}

// namePattern matches each base with every ending that versions add. Prometheus anchors it.
func namePattern(bases []string, p part) string {
	pattern := strings.Join(bases, "|")
	if len(bases) > 1 {
		pattern = "(" + pattern + ")"
	}
	pattern += "(" + strings.Join(suffixes[1:], "|") + ")?"
	switch p {
	case sum:
		return pattern + "_sum"
	case count:
		return pattern + "_count"
	}
	return pattern
}
