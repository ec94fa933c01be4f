package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jaegerlab/lab/record"
)

// facts are what was run, on what host, and every version.
func facts(r record.Record) []factList {
	l, h := r.Spec.Load, r.Host
	say := func(format string, args ...any) string { return clean(fmt.Sprintf(format, args...)) }
	lists := []factList{
		{"What was run", []fact{
			{"lab", clean(r.Lab)},
			{"time", say("%s to %s", r.Started.UTC().Format(time.RFC3339), r.Ended.UTC().Format(time.RFC3339))},
			{"rounds, seed", say("%d, %d", r.Spec.Rounds, r.Spec.Seed)},
			{"load", say("%d workers, traces of 1 + %d spans, %d tags a span, window %d s, warm-up %d s, deadline of a request %d s",
				l.Concurrency, l.SpansCount, l.TagsCount, l.DurationS, l.WarmupS, l.RequestTimeoutS)},
			{"content", say("%d services, %d distinct values of a tag, %d resource attributes", l.Services, l.TagValues, l.ResourceAttributes)},
		}},
		{"Host", []fact{
			{"system", say("%s/%s, kernel %s", h.OS, h.Arch, h.Kernel)}, {"CPUs", say("%d, %s", h.CPUs, h.CPUModel)},
			{"memory", say("%d MiB", h.MemoryBytes>>20)}, {"cgroups", cgroups(h.CgroupVersion)}, {"Docker", clean(h.Docker)},
		}},
	}
	versions := factList{Title: "Versions"}
	seen := map[fact]bool{}
	add := func(name, value string) {
		one := fact{clean(name), clean(value)}
		if one.Value != "" && !seen[one] {
			seen[one] = true
			versions.Items = append(versions.Items, one)
		}
	}
	for _, run := range r.Runs {
		engine := strings.TrimSpace(run.Engine.Name + " " + run.Engine.Version)
		if run.Engine.StandIn {
			engine = "STAND-IN: " + engine
		}
		if engine != "" && len(run.Engine.Evidence) > 0 {
			engine += "; evidence: " + strings.Join(run.Engine.Evidence, "; ")
		}
		add(run.Spec.Backend.String(), engine)
		for _, p := range append([]record.Program{run.Collector.Program}, run.Monitoring...) {
			if p.Name != "" {
				add(p.Name, p.Version+" ("+p.Source+")")
			}
		}
	}
	return append(lists, versions)
}

// settingBlocks show every setting of every collector once.
func settingBlocks(r record.Record) (blocks []codeBlock) {
	for _, run := range r.Runs {
		var text strings.Builder
		for _, key := range slices.Sorted(maps.Keys(run.Collector.Settings)) {
			fmt.Fprintf(&text, "%s = %s\n", clean(key), clean(run.Collector.Settings[key]))
		}
		shown := slices.ContainsFunc(blocks, func(b codeBlock) bool { return b.Text == text.String() })
		if text.Len() > 0 && !shown {
			blocks = append(blocks, codeBlock{clean("Collector of " + run.Arm), text.String()})
		}
	}
	return blocks
}

func tailBlocks(r record.Record, tails map[string]string) (blocks []codeBlock) {
	for _, run := range r.Runs {
		for _, n := range run.Nodes {
			if text := tails[n.Log]; n.Log != "" && strings.TrimSpace(text) != "" {
				blocks = append(blocks, codeBlock{clean(fmt.Sprintf("%s, round %d: %s (%s)", run.Arm, run.Round, n.Name, n.Log)),
					visible(text)})
			}
		}
	}
	return blocks
}

func errorBlocks(r record.Record) (blocks []codeBlock) {
	if !r.Complete && strings.TrimSpace(r.Incomplete) != "" {
		blocks = append(blocks, codeBlock{"The comparison is incomplete", visible(r.Incomplete)})
	}
	for _, run := range r.Runs {
		if strings.TrimSpace(run.Error) != "" {
			blocks = append(blocks, codeBlock{clean(fmt.Sprintf("%s, round %d", run.Arm, run.Round)), visible(run.Error)})
		}
	}
	return blocks
}

// visible keeps lines and shows control characters.
func visible(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(cleanLine(line) + "\n")
	}
	return b.String()
}
