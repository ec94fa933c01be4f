// Package record holds what a comparison leaves on disk: one folder with record.json, and one
// folder per run with the raw facts every number is derived from. It is the hinge of the flow
// spec -> run -> record -> report: left of it are databases and time, right of it everything is
// pure. Types are plain and versioned; pointers are nil (null) where a value is unknown, which
// is never the same as zero.
package record

import (
	"time"

	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// Version is the version of record.json that this program writes. Readers refuse newer ones.
const Version = 1

// Record is one comparison: what was asked, on what host, and every run with its result.
type Record struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"` // folder name: <UTC time>-<random>
	Experiment string    `json:"experiment"`
	Lab        string    `json:"lab"` // version of the lab: module version or commit, "+dirty" when changed
	Started    time.Time `json:"started"`
	Ended      time.Time `json:"ended"`
	Complete   bool      `json:"complete"`             // every planned run is there and was measured to its end
	Incomplete string    `json:"incomplete,omitempty"` // why not: interrupted, the error of the failed run

	Spec     spec.Spec `json:"spec"`
	Host     Host      `json:"host"`
	LeftOut  []LeftOut `json:"left_out,omitempty"` // default arms that can't run here, and why
	Runs     []Run     `json:"runs"`
	Warnings []string  `json:"warnings,omitempty"`

	Seal string `json:"seal"` // of the file, made by Save and checked by CheckSeal; empty in memory
}

// LeftOut is an arm that was not run, with the reason.
type LeftOut struct {
	Arm    string `json:"arm"`
	Reason string `json:"reason"`
}

// Host is the machine that the nodes ran on: the Docker daemon's view in the docker runtime.
type Host struct {
	OS            string `json:"os"`
	Arch          string `json:"arch"`
	Kernel        string `json:"kernel"`
	CPUModel      string `json:"cpu_model"`
	CPUs          int    `json:"cpus"`
	MemoryBytes   int64  `json:"memory_bytes"`
	CgroupVersion int    `json:"cgroup_version"` // 0 = none usable
	Docker        string `json:"docker,omitempty"`
}

// Run is one round of one arm.
type Run struct {
	Arm           string       `json:"arm"`
	Spec          spec.Arm     `json:"arm_spec"`
	Round         int          `json:"round"`
	Runtime       spec.Runtime `json:"runtime"`
	Profile       spec.Profile `json:"profile"`
	Folder        string       `json:"folder"` // of the raw facts, relative to the record
	Started       time.Time    `json:"started"`
	Engine        Engine       `json:"engine"`
	Collector     Collector    `json:"collector"`
	Client        string       `json:"client"`
	Monitoring    []Program    `json:"monitoring"`
	HostLoad      *float64     `json:"host_load"`       // CPUs used by anything but the run's nodes, on average from before the load to the window's end
	Disk          *Disk        `json:"busiest_disk"`    // of the machine, from before the load to the window's end; null = not known
	LimitsInForce bool         `json:"limits_in_force"` // every node's limits were read back and are as the profile says
	Overcommitted bool         `json:"overcommitted"`   // fewer CPUs than the profile's hosts together

	Numbering trace.Numbering `json:"numbering"`
	Load      spec.Load       `json:"load"`
	WindowS   float64         `json:"window_s"` // measured length of the window
	Window    Window          `json:"window"`
	Sent      Sent            `json:"sent"`

	Generated map[trace.Phase][]uint64 `json:"generated_per_worker,omitempty"` // spans each worker generated, by phase
	Facts     *Facts                   `json:"facts,omitempty"`                // what the ledger was closed with; null = it never was

	Ledger       Ledger  `json:"ledger"`
	WarmupLedger *Ledger `json:"warmup_ledger,omitempty"`

	StoredInWindow         *int64   `json:"stored_in_window"`            // measured spans whose write was issued inside the window, by identity
	StoredInWindowSource   string   `json:"stored_in_window_source"`     // "write time" or, where the store has none, ""
	StoredEachS            []int64  `json:"stored_each_s,omitempty"`     // measured spans by the second of their write, from the window's start, drain included; null where not known
	SavedInWindowCounter   *int64   `json:"saved_in_window_counter"`     // the collector's own counter, read at the window's end
	SavedInWindowSource    string   `json:"saved_in_window_source"`      // name of that counter
	ArrivedInWindow        *int64   `json:"arrived_in_window,omitempty"` // backend null: what the black hole counted inside the window
	StoredAfterDrain       *int64   `json:"stored_after_drain"`          // distinct measured spans read back
	DrainS                 *float64 `json:"drain_s"`                     // from the window's end until nothing moved any more; null when the bound was reached
	StoredPerS             *float64 `json:"stored_spans_per_s"`          // stored in window / window
	Latencies              `json:"latencies"`
	ReadBackS              *float64 `json:"read_back_s"`               //
	Ranges                 *Ranges  `json:"ranges,omitempty"`          // token ranges of the read-back
	StartToLoadS           float64  `json:"start_to_load_s"`           // from the arm's first start to load
	WriteStatementsPerSpan *float64 `json:"write_statements_per_span"` // CQL inserts / spans saved, from the collector's counters

	Counters []Counter `json:"counters"`
	Nodes    []Node    `json:"resources"`

	// UsageOfWindow says that the nodes' CPU figures leave the warm-up out. Without a warm-up they are of
	// the window anyway; records of earlier labs have both together.
	UsageOfWindow bool `json:"usage_of_window,omitempty"`

	Series   string   `json:"series,omitempty"`    // file of the per-second series
	Backlog  *float64 `json:"compactions_pending"` // of all database nodes, after the drain; null where no node says
	Verdict  Verdict  `json:"verdict"`
	Reasons  []string `json:"reasons,omitempty"` // why the verdict is what it is
	Warnings []string `json:"warnings,omitempty"`
	Unfit    string   `json:"unfit,omitempty"` // why this run must not judge its store, whatever its verdict
	Error    string   `json:"error,omitempty"` // the run did not end: what failed
	Files    []File   `json:"files"`           // raw facts with checksums
}

// Verdict of a run: whole (nothing acked is missing, nothing foreign), lossy, or unknown.
type Verdict string

// The verdicts.
const (
	Whole   Verdict = "whole"
	Lossy   Verdict = "lossy"
	Unknown Verdict = "unknown"
)

// Window is the DURATION_S of load, stamped by the load node in nanoseconds since the epoch.
type Window struct {
	Start int64 `json:"start_ns"`
	End   int64 `json:"end_ns"`
}

// Facts are what the ledger can't know from outcomes and rows. With them and the raw files a run
// can be judged again without a database.
type Facts struct {
	Window     Window `json:"window"`       // of the measured load, stamped by the load node
	DrainEndUS int64  `json:"drain_end_us"` // when nothing moved any more, microseconds since the epoch; 0 = not known

	HasForeign    bool   `json:"has_foreign"`        // the read-back would have shown ids that were never generated
	HasDuplicates bool   `json:"has_duplicates"`     // the read-back would have shown two rows of one id
	HasWriteTime  bool   `json:"has_write_time"`     // rows say when they were written
	Ranges        Ranges `json:"ranges"`             // of the read-back
	AbsentUnknown bool   `json:"absent_unknown"`     // a node was gone: a span not read is not known to be absent
	NoStore       bool   `json:"no_store,omitempty"` // backend null: nothing stores, so absent says nothing
	StillMoving   bool   `json:"still_moving"`       // rows or counters still moved when the drain's bound was reached

	// ClockOffset is the clock that stamps writes (the collector's) minus the load node's; null =
	// not compared.
	ClockOffset *time.Duration `json:"clock_offset_ns"`
}

// Sent is what the load node says of the measured phase, in requests.
type Sent struct {
	Requests       int64    `json:"requests"`
	Retries        int64    `json:"retries"`
	Bytes          int64    `json:"bytes"`
	CPUSeconds     float64  `json:"cpu_s"`               // the load node's own
	QueueDropped   *int64   `json:"queue_dropped_spans"` // jaeger-client: spans its queue dropped; null for clients without one
	RetryRule      string   `json:"retry_rule"`
	RefusedReasons []Reason `json:"refused_reasons,omitempty"`
	Pace           *Pace    `json:"pace,omitempty"` // null: the load did not come to its window's end
}

// Reason counts spans refused or unanswered for one reason.
type Reason struct {
	Reason string `json:"reason"`
	Spans  int64  `json:"spans"`
}

// Engine is what the server says it is, never what was asked for.
type Engine struct {
	Name        string   `json:"name"`    // "Apache Cassandra", "ScyllaDB", "badger", "memory"
	Version     string   `json:"version"` // release the server reports
	Nodes       int      `json:"nodes"`   // nodes that list each other as peers; 0 = embedded
	StandIn     bool     `json:"stand_in"`
	Evidence    []string `json:"evidence"`              // system.local, system.versions, SUPPORTED options
	Replication string   `json:"replication"`           // of the keyspace, as the server reports it
	Differences []string `json:"differences,omitempty"` // from what the official image ships
	Image       string   `json:"image,omitempty"`

	// Settings are what the server says of settings that decide results: commit-log sync and disk
	// among them, flat and named alike for every engine.
	Settings map[string]string `json:"settings,omitempty"`
}

// Collector is the Jaeger of a run and all its settings.
type Collector struct {
	Name     string            `json:"name"` // v2, v2-stock, v1 or the file's
	Program  Program           `json:"program"`
	Settings map[string]string `json:"settings"` // flat: the rendered configuration, flags and environment
}

// Program is one binary or image that took part.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Source  string `json:"source"` // image with its id, or path of the binary and the module it was built from
}

// Counter is one counter over the measured phase: last - first of two direct reads.
type Counter struct {
	Name   string   `json:"name"`   // the lab's name: received, saved, saved_errors, dropped, refused, queue_capacity ...
	Metric string   `json:"metric"` // the name found at the collector; "" when this version has none
	Value  *float64 `json:"value"`  // null when this version has none
}

// Node is what the cgroup of one node says for the measured phase.
type Node struct {
	Name            string       `json:"name"`
	Host            spec.Host    `json:"host"`
	Asked           spec.Limits  `json:"asked"`
	InForce         *spec.Limits `json:"in_force"` // read back; null when nothing could be read
	Enforced        bool         `json:"enforced"`
	CPUSeconds      *float64     `json:"cpu_s"`
	ThrottledS      *float64     `json:"throttled_s"`
	MemoryBytes     *int64       `json:"memory_bytes"`      // at the end of the window
	MemoryPeakBytes *int64       `json:"memory_peak_bytes"` // since start
	OOMKills        *int64       `json:"oom_kills"`
	Exit            string       `json:"exit,omitempty"` // died in the run: exit status, signal, OOM
	Log             string       `json:"log,omitempty"`
}

// Latency is a distribution in milliseconds; Histogram is the HdrHistogram it came from (V2
// compressed, base64), in microseconds, so that rounds can be merged.
type Latency struct {
	N         int64   `json:"n"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Max       float64 `json:"max_ms"`
	Histogram string  `json:"histogram"`
}

// Latencies are a run's distributions; nil where nothing was measured.
type Latencies struct {
	SendToStore *Latency `json:"send_to_store"` // spans sent once: write time - send time
	Request     *Latency `json:"request"`       // answered requests: answer - send, in an open loop answer - due
}

// Ranges counts token ranges of the read-back.
type Ranges struct {
	Asked int `json:"asked"`
	Read  int `json:"read"`
}

// Disk is a disk of the machine that programs run on.
type Disk struct {
	Device string  `json:"device"`
	Busy   float64 `json:"busy"` // share of the time in which it had requests under way, 0 to 1
}

// File is one raw fact on disk.
type File struct {
	Path   string `json:"path"` // relative to the record's folder
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Grows  bool   `json:"grows,omitempty"` // a log of what LAB_KEEP left up: the first Bytes bytes are the run's
}

// Ledger accounts for every generated span of a phase, by identity, in exactly one cell of
// {unsent, acked, refused, unanswered, no reply} x {stored, absent}.
type Ledger struct {
	Generated  int64 `json:"generated"`
	Unsent     int64 `json:"unsent"`
	Acked      int64 `json:"acked"`
	Refused    int64 `json:"refused"`
	Unanswered int64 `json:"unanswered"`
	NoReply    int64 `json:"no_reply"`

	Stored     int64  `json:"stored"`     // distinct generated spans read back
	Missing    int64  `json:"missing"`    // acked and absent
	Foreign    *int64 `json:"foreign"`    // distinct ids read back that were never generated; null where not checkable
	Duplicates *int64 `json:"duplicates"` // extra rows of a known id; null where the store can't show them
	Rows       *int64 `json:"rows"`       // rows read back; null where the store has none
	Rewritten  *int64 `json:"rewritten"`  // rows written after the drain; null where the store has no write time

	Cells    []Cell    `json:"cells"`
	Examples []Example `json:"examples,omitempty"` // the first few ids of missing, foreign, duplicates
	Laws     []Law     `json:"laws"`
}

// Cell is one crossed class.
type Cell struct {
	Answer string `json:"answer"` // unsent, acked, refused, unanswered, no_reply
	Stored bool   `json:"stored"`
	Spans  int64  `json:"spans"`
}

// Example names ids of one kind, at most MaxExamples.
type Example struct {
	Kind string   `json:"kind"` // missing, foreign, duplicate, rewritten
	IDs  []string `json:"ids"`
}

// MaxExamples bounds the ids named per kind in record.json; the rows file has them all.
const MaxExamples = 20

// Law is one equation checked on the ledger.
type Law struct {
	Law   string `json:"law"`
	Holds bool   `json:"holds"`
	Seen  string `json:"seen"` // the numbers put in
}
