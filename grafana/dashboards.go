package grafana

import (
	"fmt"
	"strings"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/load"
	"jaegerlab/lab/observe"
)

// Units of panels, in Grafana's spelling.
const (
	count      = "short"
	spansPerS  = "suffix: spans/s"
	writesPerS = "suffix: writes/s"
	cpus       = "suffix: CPUs"
	inSeconds  = "s"
	inBytes    = "bytes"
	bytesPerS  = "Bps"
	percent    = "percent"
	ratio      = "percentunit"
)

// Dashboards lists every page.
func Dashboards() []Dashboard {
	return []Dashboard{overview(), collector(), database(), generator()}
}

func overview() Dashboard {
	return Dashboard{
		UID: "jaegerlab-overview", Title: "jaegerlab: overview",
		About: "From generated spans to saved ones. Acked is not saved, and saved by the collector's counter is not yet " +
			"proof by identity: that is the lab's ledger.",
		Panels: []Panel{
			figure("Generated", "Measured spans since the load node started.", made(load.MetricGenerated)),
			figure("Acked", "Spans that the collector took: it need not have stored them.", made(load.MetricAcked)),
			figure("Refused", "Spans that the collector refused, or that never reached it.", made(load.MetricRefused)),
			figure("Unanswered", "Spans without an answer within their deadline.", made(load.MetricUnanswered)),
			figure("Saved", "Spans saved by the collector's best counter, since it started.", "sum("+total("saved")+")"),
			figure("In the queue", "Spans that the collector took and has not saved. v1 shows the queue of thrift only.",
				"sum("+total("queue_size")+")"),
			{Title: "Spans per second", Unit: spansPerS, About: "Acked above saved: the queue grows or spans are lost.",
				Queries: []Query{
					{"generated", "sum(" + rate(load.MetricGenerated) + ")"}, {"acked", "sum(" + rate(load.MetricAcked) + ")"},
					{"saved {{instance}}", perSecond("saved")},
				}},
			{Title: "CPU by node", Unit: cpus, Stacked: true, About: "From each node's cgroup.",
				Queries: []Query{{"{{node}}", "sum by (node) (" + rate(observe.NodeCPU) + ")"}}},
			throttledPanel(), memoryPanel(""),
			{Title: "Host CPU", Unit: cpus, Stacked: true,
				About: "Of the kernel that node-exporter runs on: with Docker Desktop its virtual machine. steal: time that " +
					"another virtual machine got.",
				Queries: []Query{{"{{mode}}", "sum by (mode) (" + rate(hostCPU+`{mode!="idle"}`) + ")"}}},
			{Title: "Host: memory used, load", Unit: ratio, About: "Memory in use as a part of all; load of one minute as a part of the CPUs.",
				Queries: []Query{
					{"memory", "1 - " + hostAvailable + " / " + hostTotal},
					{"load", hostLoad + ` / on (instance) count by (instance) (` + hostCPU + `{mode="idle"})`},
				}},
			{Title: "Targets up", Unit: count, About: "1: Prometheus reads it.", Queries: []Query{{"{{job}} {{instance}}", up}}},
		},
	}
}

func collector() Dashboard {
	return Dashboard{
		UID: "jaegerlab-collector", Title: "jaegerlab: collector",
		About: "Jaeger's own counters, v2 (2.13 to 2.20) and v1 (1.76). No percentiles: v2's timers have buckets of whole " +
			"seconds, from which none can be told.",
		Panels: []Panel{
			{Title: "Received and saved", Unit: spansPerS, About: "v1 counts as received what comes by thrift and gRPC, never OTLP.",
				Queries: []Query{{"received {{instance}}", perSecond("received")}, {"saved {{instance}}", perSecond("saved")}}},
			{Title: "Refused, dropped, failed", Unit: spansPerS,
				About: "Some of these series appear with their first event. A failed batch counts all its spans as failed, also " +
					"those that were written.",
				Queries: []Query{
					{"refused {{instance}}", perSecond("refused")}, {"dropped {{instance}}", perSecond("dropped")},
					{"save errors {{instance}}", perSecond("saved_errors")}, {"send failed {{instance}}", perSecond("send_failed")},
					{"queue full {{instance}}", perSecond("enqueue_failed")},
				}},
			{Title: "Queue", Unit: count, About: "Spans. v1 has no metric of its OTLP queue.",
				Queries: []Query{{"size {{instance}}", total("queue_size")}, {"capacity {{instance}}", total("queue_capacity")}}},
			{Title: "Statements by table", Unit: writesPerS, Stacked: true,
				About:   "CQL inserts. A span costs five and one for each of its distinct tags.",
				Queries: []Query{{"{{table}}", by("table", perSecondOf("statements"))}}},
			{Title: "Mean time of a CQL insert", Unit: inSeconds, About: "Sum by count; the rest of the distribution is not known.",
				Queries: []Query{{"{{instance}}", perSecond("write_latency_sum") + " / " + perSecond("write_latency_count")}}},
			{Title: "Errors of CQL inserts", Unit: writesPerS, About: "A failed index insert is an error of a stored span.",
				Queries: []Query{{"{{table}}", by("table", perSecondOf("write_errors")) + " or " + by("job", zero)}}},
			{Title: "CPU", Unit: cpus, About: "Of the collector's cgroup.",
				Queries: []Query{{"{{node}}", "sum by (node) (" + rate(observe.NodeCPU+onHost("collector")) + ")"}}},
			memoryPanel("collector"),
		},
	}
}

func database() Dashboard {
	const about = "cgroups for both engines. Cassandra has no exporter: its panels come from its virtual tables, which the " +
		"compose stack's resources service reads. ScyllaDB has metrics of its own."
	lastPart := []Panel{
		{Title: "CPU", Unit: cpus, Stacked: true, About: "Of each node's cgroup.",
			Queries: []Query{{"{{node}}", "sum by (node) (" + rate(observe.NodeCPU+onHost("database")) + ")"}}},
		memoryPanel("database"),
		{Title: "Disk writes of the host", Unit: bytesPerS, About: "By device; all containers share them.",
			Queries: []Query{{"{{device}}", "sum by (device) (" + rate(hostWritten) + ")"}}},
		{Title: "Cassandra: local writes", Unit: writesPerS, About: "Rows written on this node, Jaeger's tables.",
			Queries: []Query{{"{{node}} {{table}}", "sum by (node, table) (" + rate(backend.ViewWrites) + ")"}}},
		{Title: "Cassandra: local write time", Unit: inSeconds,
			About:   "As the server's own decaying histograms say, of the table traces.",
			Queries: []Query{{"{{node}} {{quantile}}", backend.ViewWriteTime + `{table="traces"}`}}},
		{Title: "Cassandra: tasks waiting", Unit: count, About: "In thread pools that had any.",
			Queries: []Query{{"{{node}} {{pool}}", "sum by (node, pool) (" + backend.ViewPending + ")"}}},
		{Title: "Cassandra: tasks at work", Unit: count, About: "Active now, by thread pool.",
			Queries: []Query{{"{{node}} {{pool}}", "sum by (node, pool) (" + backend.ViewActive + ")"}}},
		{Title: "Cassandra: on disk", Unit: inBytes, About: "In whole MiB, memtables not counted.",
			Queries: []Query{{"{{node}} {{table}}", "sum by (node, table) (" + backend.ViewDisk + ")"}}},
	}
	return Dashboard{UID: "jaegerlab-database", Title: "jaegerlab: database nodes", About: about,
		Panels: append(lastPart, scyllaPanels()...)}
}

// scyllaPanels have data with real ScyllaDB only; its stand-in has no such metrics.
func scyllaPanels() []Panel {
	return []Panel{
		{Title: "ScyllaDB: reactor busy", Unit: percent,
			About:   "Of the shard's wall time; under a CPU quota it can stay below 100 while the node is throttled.",
			Queries: []Query{{"{{instance}} {{shard}}", scyllaUtilization}}},
		{Title: "ScyllaDB: requests", Unit: "reqps", About: "CQL requests served and shed.", Queries: []Query{
			{"served {{instance}}", "sum by (instance) (" + rate(scyllaServed) + ")"},
			{"shed {{instance}}", "sum by (instance) (" + rate(scyllaShed) + ")"}}},
		{Title: "ScyllaDB: writes", Unit: writesPerS, About: "On this node; failed and timed out beside them.", Queries: []Query{
			{"writes {{instance}}", "sum by (instance) (" + rate(scyllaWrites) + ")"},
			{"failed {{instance}}", "sum by (instance) (" + rate(scyllaFailed) + ")"},
			{"timed out {{instance}}", "sum by (instance) (" + rate(scyllaTimedOut) + ")"}}},
		{Title: "ScyllaDB: memory in use", Unit: inBytes, About: "Of what the process took at its start.",
			Queries: []Query{{"{{instance}}", "sum by (instance) (" + scyllaTotal + " - " + scyllaFree + ")"}}},
		{Title: "ScyllaDB: reactor stalls", Unit: "suffix: /s", About: "Moments in which a shard did not answer.",
			Queries: []Query{{"{{instance}}", "sum by (instance) (" + rate(scyllaStalls) + ")"}}},
	}
}

func generator() Dashboard {
	return Dashboard{
		UID: "jaegerlab-generator", Title: "jaegerlab: generator",
		About: "What the load node generates and what became of each request.",
		Panels: []Panel{
			{Title: "Spans per second by outcome", Unit: spansPerS, About: "phase warmup is not counted in results.", Queries: []Query{
				{"generated {{client}} {{phase}}", "sum by (client, phase) (" + rate(load.MetricGenerated) + ")"},
				{"acked {{client}} {{phase}}", "sum by (client, phase) (" + rate(load.MetricAcked) + ")"},
				{"refused {{client}} {{phase}}", "sum by (client, phase) (" + rate(load.MetricRefused) + ")"},
				{"unanswered {{client}} {{phase}}", "sum by (client, phase) (" + rate(load.MetricUnanswered) + ")"}}},
			{Title: "Requests answered", Unit: "reqps", About: "Retries are part of the request that they belong to.",
				Queries: []Query{{"{{client}}", "sum by (client) (" + rate(load.MetricLatency+"_count") + ")"}}},
			{Title: "Time of a request", Unit: inSeconds,
				About: "From sending to the answer, answered requests only. The mean is exact; the buckets double, so the " +
					"percentiles are true within a factor of two.",
				Queries: []Query{
					{"mean {{client}}", "sum by (client) (" + rate(load.MetricLatency+"_sum") + ") / sum by (client) (" + rate(load.MetricLatency+"_count") + ")"},
					{"p50 {{client}}", quantile(0.5)}, {"p99 {{client}}", quantile(0.99)}}},
			{Title: "CPU", Unit: cpus, About: "Of the load node's cgroup. At its limit the load node is what is measured.",
				Queries: []Query{{"{{node}}", "sum by (node) (" + rate(observe.NodeCPU+onHost("load")) + ")"}}},
			memoryPanel("load"),
		},
	}
}

func figure(title, about, expr string) Panel {
	return Panel{Title: title, About: about, Unit: count, Stat: true, Queries: []Query{{title, expr}}}
}

func made(metric string) string { return "sum(" + metric + `{phase="measured"})` }

func throttledPanel() Panel {
	return Panel{Title: "Throttled by node", Unit: ratio,
		About:   "Seconds a second that the node was held at its CPU quota. With shares (profile t2) there is no quota: 0.",
		Queries: []Query{{"{{node}}", "sum by (node) (" + rate(observe.NodeThrottled) + ")"}}}
}

func memoryPanel(host string) Panel {
	return Panel{Title: "Memory by node", Unit: inBytes, About: "In use, without page cache that the kernel can drop.",
		Queries: []Query{{"{{node}}", "sum by (node) (" + observe.NodeMemory + onHost(host) + ")"}}}
}

// onHost selects the nodes of one of the original hosts; "" is all of them.
func onHost(host string) string {
	if host == "" {
		return ""
	}
	return fmt.Sprintf("{host=%q}", host)
}

func quantile(q float64) string {
	return fmt.Sprintf("histogram_quantile(%v, sum by (client, le) (%s))", q, rate(load.MetricLatency+"_bucket"))
}

func rate(selector string) string { return "rate(" + selector + "[" + RateInterval + "])" }

const ofCollector = `job="collector"`

// zero stands for a counter that comes with its first event, for each collector that answers.
const zero = "0 * " + up + "{" + ofCollector + "}"

// total is the current value of a counter or gauge of the collector by its best source, for each collector.
func total(name string) string {
	return firstOf(name, func(selector string) string { return "sum by (instance) (" + selector + ")" })
}

// perSecond is the rate of a counter of the collector by its best source, for each collector.
func perSecond(name string) string {
	return firstOf(name, func(selector string) string { return "sum by (instance) (" + rate(selector) + ")" })
}

// perSecondOf is the rate of every series of a counter of the collector.
func perSecondOf(name string) string { return firstOf(name, rate) }

// firstOf asks for the best source; a collector without it is asked for the next one.
func firstOf(name string, ask func(selector string) string) string {
	var asked []string
	for _, selector := range observe.Selectors(name, ofCollector) {
		asked = append(asked, ask(selector))
	}
	if len(asked) == 1 {
		return asked[0]
	}
	return "(" + strings.Join(asked, " or ") + ")"
}

func by(label, expr string) string { return "sum by (" + label + ") (" + expr + ")" }
