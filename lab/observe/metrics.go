// Package observe reads what the programs of a run say of themselves: the collector's counters,
// the cgroup of every node, and the pace at which all of it moves. It is a step of the flow
// spec -> backend, stack -> load -> observe -> ledger -> record -> report: it takes running
// nodes and gives counters, series, usage per node and the end of the drain. It judges nothing.
//
// Figures are the last direct read less the first. What a version does not have is nil with a
// warning that names the metric, never 0.
package observe

import "slices"

// generation is which Jaeger a metrics page comes from; it decides the names.
type generation string

const (
	v1 generation = "v1" // 1.76
	v2 generation = "v2" // 2.13 to 2.20
)

// direction says which way a metric is better.
type direction string

const (
	higher  direction = "higher"
	lower   direction = "lower"
	neutral direction = "neutral"
)

// part is what of a metric is read.
type part int

const (
	value part = iota // of a counter or gauge
	sum               // of a histogram or summary
	count             // of a histogram or summary
)

// spelling is one name under which a metric is found: the base, to which versions add "_total"
// and units ("_seconds") or not, and the labels that a series must carry.
type spelling struct {
	base  string
	label string // "name=value"; "" = every series
	part  part
}

// metric is one thing the lab knows how to read from a collector.
type metric struct {
	name   string // the lab's name in records
	unit   string
	better direction
	v1, v2 []spelling // in order of preference; none = this generation does not have it
	traits trait
}

// trait is what is special about a metric.
type trait int

const (
	gauge   trait = 1 << iota // the last read counts, not the difference
	cql                       // only with Cassandra and ScyllaDB
	legacy                    // v1 feeds it from thrift and gRPC only, never from OTLP
	lazy                      // appears with its first event, so its absence alone is no warning
	byTable                   // one counter more for each table
)

func (m metric) is(f trait) bool { return m.traits&f != 0 }

func named(base string) []spelling     { return []spelling{{base: base}} }
func collector(name string) []spelling { return named("jaeger_collector_" + name) }
func receiver(name string) []spelling  { return named("otelcol_receiver_" + name) }
func exporter(name string) []spelling  { return named("otelcol_exporter_" + name) }

// storage has both names of the storage's metrics: 2.x and 1.76 say jaeger_storage_* (seen on
// their pages), earlier v1 and Jaeger's own migration tables jaeger_cassandra_*.
func storage(name string) []spelling {
	return append(named("jaeger_storage_"+name), named("jaeger_cassandra_"+name)...)
}

func where(spellings []spelling, label string) []spelling {
	return each(spellings, func(sp *spelling) { sp.label = label })
}

func only(p part, spellings []spelling) []spelling {
	return each(spellings, func(sp *spelling) { sp.part = p })
}

func each(spellings []spelling, change func(*spelling)) []spelling {
	changed := slices.Clone(spellings)
	for i := range changed {
		change(&changed[i])
	}
	return changed
}

// savedSources are the counters of saved spans, the best first. Inserts into traces move with
// every row, also for a span whose index insert failed later, and again when a write is
// retried. v1's counter moves per span; over OTLP one failed span marks its whole request as
// failed. The exporter's moves per request, and stands still until a large batch is through.
var savedSources = slices.Concat(where(storage("inserts"), "table=traces"),
	where(collector("spans_saved_by_svc"), "result=ok"), exporter("sent_spans"))

// arrived is the counter of a black hole in a collector's place (package sink).
var arrived = spelling{base: "jaegerlab_sink_spans"}

// writeLatency has the default buckets of the library, in seconds: only sum and count are good.
var writeLatency = storage("latency_ok")

// metrics is every metric the lab knows, one a line: name, unit, better, v1, v2, what is special.
var metrics = []metric{
	{"received", "spans", higher, collector("spans_received"), append(receiver("accepted_spans"), arrived), legacy},
	{"refused", "spans", lower, collector("spans_rejected"), receiver("refused_spans"), legacy},
	{"receive_failed", "spans", lower, nil, receiver("failed_spans"), lazy},
	{"dropped", "spans", lower, collector("spans_dropped"), nil, legacy},
	{"saved", "spans", higher, savedSources, savedSources, 0},
	{"saved_errors", "spans", lower, where(collector("spans_saved_by_svc"), "result=err"), nil, 0},
	{"sent", "spans", higher, nil, exporter("sent_spans"), 0},
	{"send_failed", "spans", lower, nil, exporter("send_failed_spans"), lazy},
	{"enqueue_failed", "spans", lower, nil, exporter("enqueue_failed_spans"), lazy},
	{"queue_size", "spans", lower, collector("queue_length"), exporter("queue_size"), gauge | legacy | lazy},
	{"queue_capacity", "spans", neutral, collector("queue_capacity"), exporter("queue_capacity"), gauge | legacy | lazy},
	{"statements", "statements", lower, storage("inserts"), storage("inserts"), cql | byTable},
	{"write_errors", "statements", lower, storage("errors"), storage("errors"), cql | lazy | byTable},
	{"write_latency_sum", "s", lower, only(sum, writeLatency), only(sum, writeLatency), cql},
	{"write_latency_count", "statements", neutral, only(count, writeLatency), only(count, writeLatency), cql},
	{"save_latency_sum", "s", lower, only(sum, collector("save_latency")), nil, legacy},
	{"save_latency_count", "spans", neutral, only(count, collector("save_latency")), nil, legacy},
	{"tag_index_skipped", "tags", lower, storage("tag_index_skipped"), storage("tag_index_skipped"), cql | lazy},
}

func (m metric) spellings(g generation) []spelling {
	if g == v1 {
		return m.v1
	}
	return m.v2
}

// Metric describes one counter of a record, for documentation and for tests of dashboards.
type Metric struct {
	Name, Unit, Better string
	V1, V2             []string // names at the collector, without the endings that come and go
}

// Known lists every counter that Between can give.
func Known() []Metric {
	var known []Metric
	for _, m := range metrics {
		known = append(known, Metric{Name: m.name, Unit: m.unit, Better: string(m.better), V1: bases(m.v1), V2: bases(m.v2)})
	}
	return known
}

func bases(spellings []spelling) []string {
	var all []string
	for _, sp := range spellings {
		all = append(all, withLabel(sp.base, sp.label))
	}
	return all
}

// suffixes are what versions and settings of the exporter add to a base name. Up to core 0.151
// (Jaeger 2.17) an explicit reader adds the type and the unit, from 0.152 (2.18) neither.
var suffixes = []string{"", "_total", "_seconds", "_seconds_total"}

// overflowService is v1's label for every service beyond its cap of 4,000.
const overflowService = "other-services"
