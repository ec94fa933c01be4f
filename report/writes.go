package report

import (
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// writes is what the collector's counters say of its writes to a CQL store; nil = not known.
type writes struct {
	inFlight  *float64 // statements, on average over load and drain
	latencyMS *float64 // mean of one statement
	writers   *int     // how many can be in flight: each writes one span's statements in turn
	ceiling   *float64 // spans/s that so many writers can store at this latency
	predicted *float64 // statements a span, from the content and Jaeger's schema
}

func counter(run record.Run, name string) *float64 {
	for _, c := range run.Counters {
		if c.Name == name {
			return c.Value
		}
	}
	return nil
}

func writesOf(run record.Run) writes {
	w := writes{writers: run.Writers(), predicted: predictedStatements(run)}
	sum, count := counter(run, "write_latency_sum"), counter(run, "write_latency_count")
	if sum == nil || count == nil || *count == 0 || run.WindowS <= 0 {
		return w
	}
	latency := 1000 * *sum / *count
	w.latencyMS = &latency
	if run.DrainS != nil {
		inFlight := *sum / (run.WindowS + float64(run.Load.WarmupS) + *run.DrainS)
		w.inFlight = &inFlight
	}
	if w.writers != nil && run.WriteStatementsPerSpan != nil && latency > 0 && *run.WriteStatementsPerSpan > 0 {
		ceiling := float64(*w.writers) / (*run.WriteStatementsPerSpan * latency / 1000)
		w.ceiling = &ceiling
	}
	return w
}

// predictedByTable is what a span costs in each table: one insert into traces, service_name_index and
// service_operation_index each, two into duration_index, and one into tag_index for each of the
// U distinct tags, U + 5 in all (internal/storage/v1/cassandra/spanstore/writer.go of Jaeger 1.76 and
// 2.13). nil where the client adds tags that the lab does not choose, or the settings switch an index
// off.
func predictedByTable(run record.Run) map[string]float64 {
	if run.Spec.Backend.Engine.Embedded() || run.Client == "jaeger-client" {
		return nil
	}
	for key, value := range run.Collector.Settings {
		if (strings.Contains(key, ".index.") || strings.Contains(key, "CASSANDRA_INDEX")) && value != "true" {
			return nil
		}
	}
	tags := indexedTags(run)
	return map[string]float64{"traces": 1, "service_name_index": 1, "service_operation_index": 1, "duration_index": 2, "tag_index": tags}
}

// indexedLength is from how many bytes on Jaeger does not index a tag's value.
const indexedLength = 256

// indexedTags are the distinct tags of a span that Jaeger indexes, on average: of the span, of its
// process (resource) and of its logs (events). An error is error=true, and what comes as OTLP, or through
// the receivers of v2, also has otel.status_code; v1 adds internal.span.format to what does not come as
// OTLP.
func indexedTags(run record.Run) float64 {
	load := run.Load
	_, v1 := run.Collector.Settings["env.COLLECTOR_NUM_WORKERS"]
	asJaeger := v1 && !strings.HasPrefix(run.Client, "otlp")
	tags := float64(load.ResourceAttributes + load.Events)
	if load.TagLength < indexedLength {
		tags += float64(load.TagsCount)
	}
	ofError := 2.0
	if asJaeger {
		ofError = 1
		tags++
	}
	return tags + ofError*float64(load.ErrorPercent)/100
}

// predictedStatements is what a span costs in all tables together; nil when it is not known.
func predictedStatements(run record.Run) *float64 {
	tables := predictedByTable(run)
	if tables == nil {
		return nil
	}
	sum := 0.0
	for _, n := range tables {
		sum += n
	}
	return &sum
}

// drainSampled is how long a drain that did not end was watched: to the last sample of how long the
// collector's writes took. The run's counters were read then, so that writes in flight are known of
// this run too. nil = not sampled.
func drainSampled(run record.Run, series Series) *float64 {
	for _, n := range run.Nodes {
		samples := series[SeriesKey{n.Name, "write_latency_sum"}]
		if n.Host != spec.CollectorHost || len(samples) == 0 {
			continue
		}
		drainS := max(samples[len(samples)-1].AtS-run.WindowS, 0)
		return &drainS
	}
	return nil
}

// measuredByTable is what a saved span cost in each table, by the collector's counters.
func measuredByTable(run record.Run) map[string]float64 {
	saved := counter(run, "saved")
	if saved == nil || *saved <= 0 {
		return nil
	}
	tables := map[string]float64{}
	for _, c := range run.Counters {
		if table, ok := strings.CutPrefix(c.Name, "statements."); ok && c.Value != nil {
			tables[table] = *c.Value / *saved
		}
	}
	return tables
}
