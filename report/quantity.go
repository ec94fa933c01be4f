package report

import (
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/report/stat"
)

// Quantity is one figure of a run that rounds repeat and arms are compared on.
type Quantity struct {
	Name   string // as commands take it: "stored_in_window"
	Title  string // as tables show it
	Unit   string // as tables show it
	Bench  string // unit in benchstat's format
	Better stat.Direction
	Exact  bool // a count by identity: any difference is one, none is noise
	Value  func(record.Run) *float64
	digits int // decimals
}

// The sources of stored spans, the best first. One of them decides: the first that every measured
// run of a comparison has. That rule stands before any run.
var (
	quantityStored = Quantity{Name: "stored_in_window", Title: "stored in window", Unit: "spans", Bench: "stored-spans",
		Better: stat.Higher, Value: asFloat(byWriteTime.value)}
	quantitySaved = Quantity{Name: "saved_in_window", Title: "saved in window, by the collector's counter", Unit: "spans",
		Bench: "saved-spans", Better: stat.Higher, Value: asFloat(byCounter.value)}
)

var quantityMissing = count("missing", "missing", "missing-spans",
	plain(func(l record.Ledger) int64 { return l.Missing }))

// count is a loss class of the ledger.
func count(name, title, bench string, value func(record.Ledger) *int64) Quantity {
	return Quantity{Name: name, Title: title, Unit: "spans", Bench: bench, Better: stat.Lower, Exact: true,
		Value: func(run record.Run) *float64 {
			if !accounted(run) || noStore(run) {
				return nil
			}
			return asFloat(func(run record.Run) *int64 { return value(run.Ledger) })(run)
		}}
}

func plain(value func(record.Ledger) int64) func(record.Ledger) *int64 {
	return func(l record.Ledger) *int64 { v := value(l); return &v }
}

// quantity is what a source counts.
func (s source) quantity() Quantity {
	if s.column.Title == byCounter.column.Title {
		return quantitySaved
	}
	return quantityStored
}

// Quantities lists every quantity; s is the source that decides.
func Quantities(s source) []Quantity {
	per := func(divisor func(record.Run) *float64) func(record.Run) *float64 {
		return func(run record.Run) *float64 {
			value, by := s.value(run), divisor(run)
			if value == nil || by == nil || *by <= 0 {
				return nil
			}
			ratio := float64(*value) / *by
			return &ratio
		}
	}
	return []Quantity{
		quantityStored, quantitySaved,
		{Name: "acked", Title: "acked", Unit: "spans", Bench: "acked-spans", Better: stat.Higher,
			Value: func(run record.Run) *float64 {
				return asFloat(func(run record.Run) *int64 { return known(run, run.Ledger.Acked) })(run)
			}},
		{Name: "stored_after_drain", Title: "stored after drain", Unit: "spans", Bench: "stored-after-drain-spans",
			Better: stat.Higher, Value: asFloat(func(run record.Run) *int64 { return run.StoredAfterDrain })},
		{Name: "drain", Title: "drain", Unit: "s", Bench: "drain-sec", Better: stat.Lower, digits: 1,
			Value: func(run record.Run) *float64 { return run.DrainS }},
		{Name: "per_database_cpu", Title: "per CPU-second of the database", Unit: "spans", Bench: "spans/db-cpu-sec",
			Better: stat.Higher, digits: 1, Value: per(storeCPU)},
		{Name: "per_cpu", Title: "per CPU-second of database and collector", Unit: "spans", Bench: "spans/cpu-sec",
			Better: stat.Higher, digits: 1, Value: per(pathCPU)},
		{Name: "per_gb", Title: "per GB of the database's memory", Unit: "spans", Bench: "spans/GB",
			Better: stat.Higher, digits: 1, Value: per(storeGB)},
		{Name: "statements_per_span", Title: "CQL statements per span", Unit: "", Bench: "cql/span", Better: stat.Lower,
			digits: 2,
			Value:  func(run record.Run) *float64 { return run.WriteStatementsPerSpan }},
		quantityMissing,
		count("refused", "refused", "refused-spans", plain(func(l record.Ledger) int64 { return l.Refused })),
		count("unanswered", "unanswered", "unanswered-spans", plain(func(l record.Ledger) int64 { return l.Unanswered })),
		count("unsent", "unsent", "unsent-spans", plain(func(l record.Ledger) int64 { return l.Unsent })),
		count("foreign", "foreign", "foreign-spans", func(l record.Ledger) *int64 { return l.Foreign }),
		count("duplicates", "duplicates", "duplicate-rows", func(l record.Ledger) *int64 { return l.Duplicates }),
		count("rewritten", "rewritten", "rewritten-rows", func(l record.Ledger) *int64 { return l.Rewritten }),
	}
}

// storeNodes are the nodes that a store runs in: its own, or for embedded ones the collector.
func storeNodes(run record.Run) []record.Node {
	if noStore(run) {
		return nil
	}
	if !run.Spec.Backend.Engine.Embedded() {
		return databaseNodes(run)
	}
	return nodesOn(run, spec.CollectorHost)
}

func nodesOn(run record.Run, host spec.Host) (nodes []record.Node) {
	for _, n := range run.Nodes {
		if n.Host == host {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// sumCPU adds up CPU seconds; nil when one of the nodes is not known.
func sumCPU(nodes []record.Node) *float64 {
	var sum float64
	for _, n := range nodes {
		if n.CPUSeconds == nil {
			return nil
		}
		sum += *n.CPUSeconds
	}
	if len(nodes) == 0 {
		return nil
	}
	return &sum
}

// windowCPU adds up CPU seconds of the window, which is what spans of the window are divided by; nil when
// the warm-up's are among them.
func windowCPU(run record.Run, nodes []record.Node) *float64 {
	if usageS(run) > run.WindowS {
		return nil
	}
	return sumCPU(nodes)
}

func storeCPU(run record.Run) *float64 { return windowCPU(run, storeNodes(run)) }

func pathCPU(run record.Run) *float64 {
	nodes := nodesOn(run, spec.CollectorHost)
	if !run.Spec.Backend.Engine.Embedded() {
		nodes = append(nodes, databaseNodes(run)...)
	}
	return windowCPU(run, nodes)
}

// storeGB is the memory that the store's nodes may use, in 10^9 bytes; nil where nothing limits it.
func storeGB(run record.Run) *float64 {
	var sum int64
	for _, n := range storeNodes(run) {
		if n.InForce == nil || n.InForce.MemoryBytes == 0 {
			return nil
		}
		sum += n.InForce.MemoryBytes
	}
	if sum == 0 {
		return nil
	}
	gb := float64(sum) / 1e9
	return &gb
}

// values of a quantity over rounds, and whether all of them are known.
func (q Quantity) values(runs []record.Run) (values []float64, all bool) {
	for _, run := range runs {
		if v := q.Value(run); v != nil {
			values = append(values, *v)
		}
	}
	return values, len(values) == len(runs) && len(runs) > 0
}
