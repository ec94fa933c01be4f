package report

// The columns, each in one place: tables, report.md and the README take titles, units and
// explanations from here.
var (
	colArm = Column{Title: "arm", Left: true,
		How: "backend with its node count, collector, client. One side of the comparison."}
	colRound  = Column{Title: "round", How: "which run of the arm."}
	colRounds = Column{Title: "rounds",
		How: "measured runs of the arm, of those that were started; figures are medians of the measured ones, below " +
			"them the 95 % interval of the median in square brackets, or with fewer than six rounds their range in round ones."}
	colEngine = Column{Title: "engine, as the server says", Left: true,
		How: "name and release that the server reports, nodes that list each other, replication of the keyspace. " +
			"STAND-IN: another engine in its place, to test the lab; never ranked."}
	colStoredInWindow = Column{Title: "stored in window", Unit: "spans, by write time",
		How: "measured spans whose first row the collector wrote inside the window, read from the database by identity."}
	colSavedInWindow = Column{Title: "saved in window", Unit: "spans, by the collector's counter",
		How: "what the collector's own counter of saved spans gained inside the window; the only source for stores " +
			"without write times. It counts whatever is saved then: what the collector's queue still held of a warm-up is among it."}
	colPerSecond = Column{Title: "per second", Unit: "spans/s",
		How: "the column to its left divided by the measured length of the window: stored, not sent."}
	colAcked = Column{Title: "acked", Unit: "spans",
		How: "spans whose request the collector answered with success. It has taken them; it need not have stored them."}
	colMissing = Column{Title: "missing", Unit: "spans",
		How: "acked and not stored after the drain, found by identity: the loss, summed over rounds. <= where it is only " +
			"the most it can be."}
	colStoredAfterDrain = Column{Title: "stored after drain", Unit: "spans",
		How: "distinct measured spans that were read back when nothing moved any more."}
	colDrain = Column{Title: "drain", Unit: "s",
		How: "from the window's end until neither the saved counter nor the rows moved."}
	colStoreP50 = Column{Title: "send to store p50", Unit: "ms",
		How: "median of write time minus send time, over acked spans that were sent once. The write time is that of " +
			"the collector's last attempt."}
	colStoreP99 = Column{Title: "send to store p99", Unit: "ms", How: "the time that 99 of 100 of these spans were " +
		"stored within."}
	colVerdict = Column{Title: "verdict", Left: true,
		How: "whole: nothing acked is missing and nothing foreign was found. lossy: acked spans are missing. unknown: " +
			"it can't be told, the footnote says why. INCOMPLETE: the run did not end."}

	colLimit = Column{Title: "held back by", Left: true,
		How: "what was used up first, with the evidence in the footnote: the generator, the collector's CPU, queue or " +
			"writes in flight, a database node's CPU or quota, the machine, memory, or the store's write latency."}
	colStoreCPU = Column{Title: "database CPU", Unit: "s",
		How: "CPU seconds of the database's nodes in the window; of an embedded store, of the collector it runs in."}
	colPerCPU = Column{Title: "per CPU-second", Unit: "spans",
		How: "the compared figure for each CPU second of the database."}
	colPerGB = Column{Title: "per GB", Unit: "spans", How: "the compared figure for each 10^9 bytes of memory that the " +
		"database's nodes may use together; of an embedded store, the collector that it runs in."}
	colBase  = Column{Title: "against", Left: true, How: "the arm it is compared with: the first one."}
	colDelta = Column{Title: "difference",
		How: "of the medians, of exact counts for each round, as a share of the other arm's; ~ is noise, ? has no share " +
			"because the other is 0."}
	colInterval = Column{Title: "interval",
		How: "of the difference, from order statistics of all pairs of rounds; it holds " +
			"0 exactly when the test finds nothing."}
	colP = Column{Title: "p",
		How: "how often rounds of one and the same arm would differ as much (Mann and Whitney's test, " +
			"two-sided, no assumption on the distribution)."}
	colN       = Column{Title: "n", How: "rounds of each arm that are compared."}
	colRanking = Column{Title: "winner", Left: true,
		How: "named only when the difference is more than noise, nothing but the " +
			"treatment differs, and neither the generator nor what stands before the treatment was the limit."}
	colQuantity = Column{Title: "quantity", Left: true, How: "what is compared. One was chosen before the run and decides; of " +
		"the others one in twenty is called different by chance."}
	colBetter = Column{Title: "better", Left: true, How: "which way it is better."}
	colThis   = Column{Title: "this arm",
		How: "median with interval or range; of exact counts the sum over the rounds; of " +
			"percentiles the percentile of all rounds' requests together."}
	colOther     = Column{Title: "other arm", How: "the same of the arm it is compared with."}
	colPredicted = Column{Title: "CQL per span predicted",
		How: "from the content and Jaeger's schema: one insert for each " +
			"distinct tag and five more."}
	colTable = Column{Title: "table", Left: true,
		How: "where the collector writes; names of services and operations are written once in twelve hours."}
	colInFlight = Column{Title: "statements in flight",
		How: "on average: the time that all writes took together over the " +
			"time in which they were made."}
	colWriters = Column{Title: "writers",
		How: "how many spans the collector writes at once; each writes its statements in turn."}
	colWriteMS = Column{Title: "statement", Unit: "ms", How: "mean time of one insert, as the collector sees it."}
	colCeiling = Column{Title: "ceiling", Unit: "spans/s",
		How: "writers over statements a span and time of a statement: more " +
			"can't be stored at this latency."}

	colGenerated = Column{Title: "generated", Unit: "spans", How: "spans the load node made, each with an id that " +
		"it can name. Each is in exactly one of the next classes."}
	colUnsent  = Column{Title: "unsent", Unit: "spans", How: "generated, but never left the load node."}
	colRefused = Column{Title: "refused", Unit: "spans", How: "the collector said no, or could not be reached: " +
		"it does not have them."}
	colUnanswered = Column{Title: "unanswered", Unit: "spans", How: "no answer within the deadline: the collector " +
		"may have them."}
	colNoReply = Column{Title: "no reply", Unit: "spans", How: "sent by a protocol that has no answers (UDP): " +
		"no guarantee."}
	colStored = Column{Title: "stored", Unit: "spans", How: "generated spans that were read back, of any " +
		"class. >= where not everything could be read."}
	colForeign    = Column{Title: "foreign", Unit: "ids", How: "distinct ids read back that this run never generated."}
	colDuplicates = Column{Title: "duplicates", Unit: "rows", How: "extra rows of one id: the same span stored " +
		"again with other content."}
	colRows = Column{Title: "rows", Unit: "rows", How: "rows read back. Never compared with a count of " +
		"spans: ids are."}
	colRewritten = Column{Title: "rewritten", Unit: "rows", How: "rows of known ids that were written after the drain."}
	colLaws      = Column{Title: "laws", Left: true, How: "the equations of the ledger, checked on every run; " +
		"BROKEN is a defect of the lab and makes the verdict unknown."}

	colAnswer  = Column{Title: "answer", Left: true, How: "what the load node knows of a span's request."}
	colPresent = Column{Title: "stored", Unit: "spans", How: "spans of this answer that were read back."}
	colAbsent  = Column{Title: "absent", Unit: "spans", How: "spans of this answer that were not."}

	colNode      = Column{Title: "node", Left: true, How: "one running program under its limits."}
	colCPU       = Column{Title: "CPU", Unit: "s", How: "CPU seconds of its cgroup over the measured phase."}
	colThrottled = Column{Title: "throttled", Unit: "s", How: "time its CPU quota made it wait, over the measured phase, the sum of the CPUs it runs on."}
	colMemory    = Column{Title: "memory", Unit: "MiB", How: "its cgroup's memory at the window's end."}
	colPeak      = Column{Title: "peak", Unit: "MiB", How: "its cgroup's highest memory since the start."}
	colOOM       = Column{Title: "OOM kills", How: "processes the kernel killed for want of memory."}
	colLimits    = Column{Title: "limits", Left: true, How: "what the profile asks for: memory, CPU quota, or " +
		"shares on a set of CPUs."}
	colInForce = Column{Title: "in force", Left: true, How: "whether these limits were read back from the " +
		"cgroup. A run without is shown, but not compared with one that has them."}

	colRequests = Column{Title: "requests", How: "requests the load node sent in the measured phase, retries not " +
		"counted."}
	colRetries = Column{Title: "retries", How: "further attempts."}
	colLoadCPU = Column{Title: "load CPU", Unit: "s", How: "CPU seconds of the load node; near the window's " +
		"length it was the bottleneck itself."}
	colRequestP50 = Column{Title: "request p50", Unit: "ms", How: "median from send, or with a RATE from when it was due, to answer, of answered requests."}
	colRequestP99 = Column{Title: "request p99", Unit: "ms", How: "the time that 99 of 100 answered requests were " +
		"answered within."}
	colWindow     = Column{Title: "window", Unit: "s", How: "measured length of the load that counts."}
	colStatements = Column{Title: "CQL per span", How: "insert statements for each saved span, from the " +
		"collector's counters."}
	colCompactions = Column{Title: "compactions", Unit: "left", How: "of all database nodes, after the drain: work that a longer run would have to do."}
	colStart       = Column{Title: "start to load", Unit: "s", How: "from the arm's first start to its load."}
	colReadBack    = Column{Title: "read-back", Unit: "s", How: "time to read all ids and write times."}

	colCounter = Column{Title: "counter", Left: true, How: "the lab's name of a counter at the collector."}
	colMetric  = Column{Title: "metric", Left: true, How: "the name under which this version has it."}
	colGained  = Column{Title: "gained", How: "last minus first of two direct reads around the measured phase; n/a " +
		"where this version has none."}
)

// Columns lists every column that a table can have, in the order of the tables.
func Columns() []Column {
	return []Column{
		colArm, colRound, colRounds, colEngine, colStoredInWindow, colSavedInWindow, colPerSecond, colAcked, colMissing,
		colStoredAfterDrain, colDrain, colStoreP50, colStoreP99, colVerdict, colLimit,
		colStoreCPU, colPerCPU, colPerGB, colBase, colDelta, colInterval, colP, colN, colRanking,
		colQuantity, colBetter, colThis, colOther, colOld, colNew, colGate, colTable, colPredicted, colInFlight, colWriters,
		colWriteMS, colCeiling,
		colGenerated, colUnsent, colRefused, colUnanswered, colNoReply,
		colStored, colForeign, colDuplicates, colRows, colRewritten, colLaws,
		colNode, colCPU, colThrottled, colMemory, colPeak, colOOM, colLimits, colInForce,
		colAnswer, colPresent, colAbsent,
		colWindow, colRequests, colRetries, colLoadCPU, colRequestP50, colRequestP99, colStatements, colCompactions, colStart, colReadBack,
		colCounter, colMetric, colGained,
	}
}

// Name is the column's title with its unit: "drain (s)".
func (c Column) Name() string {
	if c.Unit == "" {
		return c.Title
	}
	return c.Title + " (" + c.Unit + ")"
}
