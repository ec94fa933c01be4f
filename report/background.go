package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jaegerlab/lab/record"
)

// errors holds the whole text of what ended a run early; footnotes have its first line.
func (m *markdown) errors(r record.Record) {
	begun := false
	show := func(what, text string) {
		if strings.TrimSpace(text) == "" {
			return
		}
		if !begun {
			m.head("Errors")
			begun = true
		}
		m.line("%s:", escape(clean(what)))
		m.line("")
		m.code(text)
		m.line("")
	}
	if !r.Complete {
		show("The comparison is incomplete", r.Incomplete)
	}
	for _, run := range r.Runs {
		show(fmt.Sprintf("%s, round %d", run.Arm, run.Round), run.Error)
	}
}

// background is what the figures rest on.
func (m *markdown) background(r record.Record) {
	m.head("What was run")
	load := r.Spec.Load
	item := func(name, format string, args ...any) {
		m.line("- %s: %s", escape(name), escape(clean(fmt.Sprintf(format, args...))))
	}
	item("lab", "%s", r.Lab)
	item("started", "%s", r.Started.UTC().Format(time.RFC3339))
	item("ended", "%s", r.Ended.UTC().Format(time.RFC3339))
	item("rounds, seed", "%d, %d", r.Spec.Rounds, r.Spec.Seed)
	pace := "generate traces back to back (closed loop)"
	if load.Rate != "" {
		pace = "send what is due at RATE " + load.Rate + " spans/s (open loop)"
	}
	if load.TracesPerRequest > 1 {
		pace += fmt.Sprintf(", %d traces a request", load.TracesPerRequest)
	}
	item("load", "%d workers that %s, 1 + %d spans a trace, %d tags a span, %d s, warm-up %d s",
		load.Concurrency, pace, load.SpansCount, load.TagsCount, load.DurationS, load.WarmupS)
	item("content", "%d services, %d distinct values of a tag, %d resource attributes beside "+
		"service.name", load.Services, load.TagValues, load.ResourceAttributes)
	if load.Operations > 1 || load.TagLength > 0 || load.ErrorPercent > 0 || load.Events > 0 || load.Shape == "chain" || load.Shape == "tree" {
		item("spans", "shape %s, %d operations, tag values of at least %d bytes, %d %% errors, %d events a span",
			load.Shape, max(load.Operations, 1), load.TagLength, load.ErrorPercent, load.Events)
	}
	item("deadline of a request", "%d s, retries included", load.RequestTimeoutS)
	for _, rule := range distinct(r.Runs, func(run record.Run) string { return run.Sent.RetryRule }) {
		item("retry rule", "%s", rule)
	}
	m.head("Host")
	h := r.Host
	item("system", "%s/%s, kernel %s", h.OS, h.Arch, h.Kernel)
	item("CPUs", "%d, %s", h.CPUs, h.CPUModel)
	item("memory", "%s MiB", fixed(float64(h.MemoryBytes)/(1<<20), 0).Text)
	item("cgroups", "%s", cgroups(h.CgroupVersion))
	if h.Docker != "" {
		item("Docker", "%s", h.Docker)
	}
	m.versions(r)
	m.settings(r)
	m.files(r)
}

func cgroups(version int) string {
	if version == 0 {
		return "none usable: limits can't be enforced or read"
	}
	return fmt.Sprintf("version %d", version)
}

func distinct(runs []record.Run, value func(record.Run) string) (all []string) {
	for _, run := range runs {
		if v := value(run); v != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

func (m *markdown) versions(r record.Record) {
	m.head("Versions")
	program := func(p record.Program) string {
		return strings.TrimSpace(fmt.Sprintf("%s %s (%s)", p.Name, p.Version, p.Source))
	}
	seen := map[string]bool{}
	item := func(text string) {
		if text = clean(text); !seen[text] {
			seen[text] = true
			m.line("- %s", escape(text))
		}
	}
	for _, run := range r.Runs {
		if run.Engine.Name != "" {
			text := strings.TrimSpace(run.Engine.Name + " " + run.Engine.Version)
			if run.Engine.StandIn {
				text = "STAND-IN: " + text
			}
			if run.Engine.Image != "" {
				text += " (" + run.Engine.Image + ")"
			}
			if len(run.Engine.Evidence) > 0 {
				text += "; evidence: " + strings.Join(run.Engine.Evidence, "; ")
			}
			item(text)
		}
		if run.Collector.Program.Name != "" {
			item("collector " + run.Collector.Name + ": " + program(run.Collector.Program))
		}
		for _, p := range run.Monitoring {
			item(program(p))
		}
	}
}

// settings shows every setting of every collector once.
func (m *markdown) settings(r record.Record) {
	shown := map[string]bool{}
	for _, run := range r.Runs {
		var text strings.Builder
		for _, key := range slices.Sorted(maps.Keys(run.Collector.Settings)) {
			value := run.Collector.Settings[key]
			if strings.Contains(strings.TrimSpace(value), "\n") {
				value = "\n    " + strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n    ")
			}
			fmt.Fprintf(&text, "%s = %s\n", key, value)
		}
		if text.Len() == 0 || shown[text.String()] {
			continue
		}
		shown[text.String()] = true
		m.head(clean("Settings of the collector of " + run.Arm))
		m.code(text.String())
	}
}

// files lists raw facts with their checksums, and logs.
func (m *markdown) files(r record.Record) {
	m.head("Raw facts and logs")
	m.line("Paths are relative to this report; record.json holds every figure above.")
	m.line("")
	for _, run := range r.Runs {
		m.line("- %s, round %d", escape(clean(run.Arm)), run.Round)
		for _, f := range run.Files {
			m.line("  - %s, %s bytes, sha256 %s", escape(clean(f.Path)), whole(f.Bytes).Text, escape(clean(f.SHA256)))
		}
		if run.Series != "" {
			m.line("  - %s: per-second series", escape(clean(run.Series)))
		}
		for _, n := range run.Nodes {
			if n.Log != "" {
				m.line("  - %s: log of %s", escape(clean(n.Log)), escape(clean(n.Name)))
			}
		}
	}
}

// how explains the columns that this report has.
func (m *markdown) how(doc Document) {
	m.head("How to read it")
	m.line("Every generated span has an id and is in exactly one cell: what the load node knows of its request, " +
		"and whether it was read back.")
	m.signs()
	m.line("Figures are last minus first of direct reads; none comes from a rate.")
	m.columns(doc)
}

func (m *markdown) signs() {
	m.line("%s is a value that is not known, never zero. Numbers in brackets are the notes below a table.", notAvailable)
}

// columns explains those of all tables, each once.
func (m *markdown) columns(doc Document) {
	m.line("")
	seen := map[string]bool{}
	for _, t := range doc.Tables {
		for _, c := range t.Columns {
			if c.How != "" && !seen[c.Name()+c.How] {
				seen[c.Name()+c.How] = true
				m.line("- **%s**: %s", escape(c.Name()), escape(c.How))
			}
		}
	}
}
