package observe

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// About is what a page can't say of the run it comes from.
type About struct {
	Arm      spec.Arm
	Services int // distinct service names that were sent; 0 = not known
}

// Between gives every counter that the lab knows over the time between two snapshots of one
// collector: the last read less the first, gauges as they were last. A counter that appeared
// in between started at 0. What this version does not have, or does not feed from the arm's
// client, is nil; where it should have been there, a warning names it.
func Between(first, last Snapshot, about About) ([]record.Counter, []string) {
	b := between{first: first, last: last, about: about, generation: last.generation()}
	for _, m := range metrics {
		if _, found := last.best(m.spellings(b.generation)); !found && about.Arm.Backend.Engine == spec.Null {
			continue // a black hole has none of a collector's counters, and needs none
		}
		b.add(m)
	}
	b.checkLegacy()
	b.checkServices()
	return b.counters, b.warnings
}

type between struct {
	first, last Snapshot
	about       About
	generation  generation
	counters    []record.Counter
	warnings    []string
	unfed       []string // metrics that this version does not feed from OTLP
}

func (b *between) warn(format string, args ...any) {
	b.warnings = append(b.warnings, fmt.Sprintf(format, args...))
}

// add reads one metric.
func (b *between) add(m metric) {
	c := record.Counter{Name: m.name}
	spellings := m.spellings(b.generation)
	sp, found := b.last.best(spellings)
	switch {
	case found && m.is(legacy) && b.otlpIntoV1():
		b.unfed = append(b.unfed, m.name)
	case found:
		b.fill(&c, m, sp)
	case len(spellings) == 0 || m.is(lazy) || m.is(cql) && b.about.Arm.Backend.Engine.Embedded():
		// this version has none, or it comes with its first event
	default:
		b.warn("counter %s is not available: the collector's metrics have no %s", m.name, names(spellings))
	}
	b.counters = append(b.counters, c)
	if found && m.is(byTable) {
		b.addByTable(m, sp)
	}
}

func (b *between) fill(c *record.Counter, m metric, sp spelling) {
	last, name, _ := b.last.read(sp)
	before, _, _ := b.first.read(sp)
	c.Metric = withLabel(name, sp.label)
	v := last - before
	if m.is(gauge) {
		v = last
	}
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		b.warn("counter %s is not available: %s is %v", m.name, c.Metric, last)
	case v < 0 && !m.is(gauge):
		b.warn("counter %s is not available: %s fell from %v to %v, the collector was started again",
			m.name, c.Metric, before, last)
	default:
		c.Value = &v
	}
}

// addByTable adds a counter for each table, such as "statements.tag_index".
func (b *between) addByTable(m metric, sp spelling) {
	last, first := b.last.readBy(sp, "table"), b.first.readBy(sp, "table")
	_, name, _ := b.last.read(sp)
	for _, table := range slices.Sorted(maps.Keys(last)) {
		c := record.Counter{Name: m.name + "." + table, Metric: withLabel(name, "table="+table)}
		if v := last[table] - first[table]; v >= 0 && !math.IsInf(v, 0) {
			c.Value = &v
		}
		b.counters = append(b.counters, c)
	}
}

// names lists the spellings of a metric for a warning.
func names(spellings []spelling) string {
	var all []string
	for _, sp := range spellings {
		all = append(all, withLabel(sp.base+"[_total]", sp.label))
	}
	return strings.Join(all, ", ")
}

func (b *between) otlpIntoV1() bool {
	return b.generation == v1 && strings.HasPrefix(b.about.Arm.Client, "otlp")
}

// checkLegacy names what v1 does not feed from OTLP: since 1.66 only the paths of thrift and gRPC
// move those counters, so their zeros say nothing. The same is noticed by its symptom, for a
// client that the lab does not know to be OTLP.
func (b *between) checkLegacy() {
	if len(b.unfed) > 0 {
		b.warn("not available for OTLP in this version: %s (only spans by thrift or gRPC move them); "+
			"the store and the saved counter tell", strings.Join(b.unfed, ", "))
		return
	}
	received, saved := b.counter("received"), b.counter("saved")
	if b.generation != v1 || received == nil || received.Value == nil || *received.Value > 0 ||
		saved == nil || saved.Value == nil || *saved.Value == 0 {
		return
	}
	b.warn("received is not available for this client in this version: %s stood still while %s rose by %v",
		received.Metric, saved.Metric, *saved.Value)
	received.Value = nil
}

func (b *between) counter(name string) *record.Counter {
	for i := range b.counters {
		if b.counters[i].Name == name {
			return &b.counters[i]
		}
	}
	return nil
}

// checkServices warns when v1's labels of services are not one a service. Totals sum over all
// labels and stay right.
func (b *between) checkServices() {
	sp := spelling{base: "jaeger_collector_spans_saved_by_svc", label: "result=ok"}
	last, first := b.last.readBy(sp, "svc"), b.first.readBy(sp, "svc")
	own := 0
	for service, n := range last {
		if service != overflowService && n > first[service] {
			own++
		}
	}
	if n := last[overflowService] - first[overflowService]; n > 0 {
		b.warn("the collector counted %v spans under the label %s: beyond 4000 services it has no label of their own; "+
			"totals are not affected, figures per service are", n, overflowService)
		return
	}
	if b.about.Services > own && own > 0 {
		b.warn("the collector counted %d services under %d labels: names that differ only in case or special characters "+
			"share one; totals are not affected, figures per service are", b.about.Services, own)
	}
}

// StatementsPerSpan is CQL inserts per saved span, from counters of Between; nil when it has no
// such counters or nothing was saved.
func StatementsPerSpan(counters []record.Counter) *float64 {
	var statements, saved *float64
	for _, c := range counters {
		switch c.Name {
		case "statements":
			statements = c.Value
		case "saved":
			saved = c.Value
		}
	}
	if statements == nil || saved == nil || *saved == 0 {
		return nil
	}
	perSpan := *statements / *saved
	return &perSpan
}
