// Package spec says what to run: plain values with documented defaults and units, the
// environment variables that set them, and the checks that refuse what can't work before
// anything starts. It is the first step of the flow spec -> run -> record -> report and depends
// on no other package of the lab.
package spec

import (
	"cmp"
	"fmt"
	"strings"
)

// Runtime names where programs run.
type Runtime string

// The runtimes. Auto is resolved to one of the others before anything starts.
const (
	Auto    Runtime = "auto"
	Docker  Runtime = "docker"
	Process Runtime = "process"
)

// Profile names the resource rules of a run; package comment of limits.go.
type Profile string

// The profiles.
const (
	T2   Profile = "t2"   // shares inside the CPU sets of the original hosts, memory hard-limited
	Hard Profile = "hard" // CPU quotas, memory hard-limited
	None Profile = "none" // no limits
)

// Engine names a storage engine under Jaeger.
type Engine string

// The engines.
const (
	Cassandra Engine = "cassandra"
	Scylla    Engine = "scylla"
	Badger    Engine = "badger"
	Memory    Engine = "memory"
	Null      Engine = "null" // none: a black hole in the collector's place, for the generator's ceiling
)

// NoCollector is the collector of arms that have none.
const NoCollector = "none"

// Engines are all of them; package backend has a backend for each.
var Engines = []Engine{Scylla, Cassandra, Badger, Memory, Null}

// Embedded reports whether the engine has no nodes of its own: it lives inside the collector's
// process, or stands in its place.
func (e Engine) Embedded() bool { return e == Badger || e == Memory || e == Null }

// Backend is an engine with its node count, written "cassandra:2"; embedded engines have no count.
type Backend struct {
	Engine Engine `json:"engine"`
	Nodes  int    `json:"nodes"` // 1-5; 0 for embedded engines, and where it is a target's own affair
}

// String gives the spelling that LAB_BACKENDS accepts.
func (b Backend) String() string {
	if b.Engine.Embedded() || b.Nodes == 0 {
		return string(b.Engine)
	}
	return fmt.Sprintf("%s:%d", b.Engine, b.Nodes)
}

// Spec is everything that decides a comparison. Defaults give the original experiment.
type Spec struct {
	Experiment string `json:"experiment"`

	// Treatment names what the arms are meant to differ in: TreatEngine, TreatCollector, TreatClient.
	// Whatever else differs is a confounder, and then no winner is named. Empty = nothing may differ;
	// null = not declared.
	Treatment []string `json:"treatment"`
	// Copies runs every arm as so many arms, for the experiment that compares an arm with itself; 0 = 1.
	Copies int `json:"copies,omitempty"`

	Runtime    Runtime   `json:"runtime"`
	Backends   []Backend `json:"backends"`
	Named      bool      `json:"named"`      // the user named the backends: one that can't run is an error, not left out
	Collectors []string  `json:"collectors"` // v2, v2-stock, v1, or a path of a collector file
	// CollectorNames is what tables call the collectors that files give, by path.
	CollectorNames map[string]string `json:"collector_names,omitempty"`
	Clients        []string          `json:"clients"` // as package protocol names them
	Profile        Profile           `json:"profile"`
	Replication    int               `json:"replication"` // copies of each row, at most the node count; 0 = a target's own affair

	Target        *Target `json:"target,omitempty"` // the user's own Jaeger and database; nil = the lab starts a stack
	TargetConfirm string  `json:"-"`                // what the user said may be sent to it, "RATExSECONDS"

	Load   Load   `json:"load"`
	Rounds int    `json:"rounds"` // runs of every arm
	Seed   uint64 `json:"seed"`   // decides span content and the order of arms; recorded

	Results string            `json:"results"` // folder of results
	Keep    bool              `json:"keep"`    // leave the last arm's stack up
	Images  map[string]string `json:"images"`  // overrides: program name -> image
}

// Load is the work of one round.
type Load struct {
	Concurrency int `json:"concurrency"`   // workers that generate traces back to back
	SpansCount  int `json:"spans_count"`   // child spans a trace; a trace has one root more
	TagsCount   int `json:"tags_count"`    // tags a span
	DurationS   int `json:"duration_s"`    // the window
	WarmupS     int `json:"warmup_s"`      // load before the window that is not counted
	DrainS      int `json:"drain_bound_s"` // bound of the wait after load until nothing moves any more

	Services           int `json:"services"`            // distinct service names
	TagValues          int `json:"tag_values"`          // distinct values of each tag; 1 = the original's constant tags
	ResourceAttributes int `json:"resource_attributes"` // attributes of the resource beside service.name
	RequestTimeoutS    int `json:"request_timeout_s"`   // deadline of a request, retries included; at least 30

	TracesPerRequest int    `json:"traces_per_request,omitempty"` // traces sent together, of one service; 0 = 1
	MaxRequestSpans  int    `json:"max_request_spans,omitempty"`  // a request above it is split before sending; 0 = 1,000
	Rate             string `json:"rate,omitempty"`               // open loop, spans/s of all workers (package load); "" = back to back
	Gzip             bool   `json:"gzip,omitempty"`               // otlp-http: bodies are compressed

	Operations   int    `json:"operations,omitempty"`    // distinct operation names; 0 and 1 = root and child
	Shape        string `json:"shape,omitempty"`         // star, chain, tree; "" = star
	TagLength    int    `json:"tag_length,omitempty"`    // bytes that a tag's value is filled up to
	ErrorPercent int    `json:"error_percent,omitempty"` // of the spans
	Events       int    `json:"events,omitempty"`        // a span
}

// Arm is one side of a comparison.
type Arm struct {
	Backend   Backend `json:"backend"`
	Collector string  `json:"collector"` // as Spec.Collectors has it
	// CollectorName is what a collector file calls itself; "" = one of the lab's, or not read yet.
	CollectorName string  `json:"collector_name,omitempty"`
	Client        string  `json:"client"`
	Profile       Profile `json:"profile"`
	Replication   int     `json:"replication"`
	Label         string  `json:"label,omitempty"`  // tells copies of one arm apart: "a", "b"
	Target        string  `json:"target,omitempty"` // name of the user's own Jaeger and database; "" = the lab's
}

// What an experiment may declare as its treatment.
const (
	TreatEngine    = "engine" // and node count, and with the engine its version
	TreatCollector = "collector"
	TreatClient    = "client"
)

// Name spells the arm in full, as tables and folders show it: "cassandra:2 v2 otlp-grpc", or
// "target:staging otlp-grpc", whose backend and collector are what they are.
func (a Arm) Name() string {
	name := strings.Join([]string{a.Backend.String(), cmp.Or(a.CollectorName, a.Collector), a.Client}, " ")
	if a.Target != "" {
		name = "target:" + a.Target + " " + a.Client
	}
	if a.Label != "" {
		name += " " + a.Label
	}
	return name
}

// Arms returns the product of backends, collectors and clients, in the order they were named. The
// backend null has no collector, so it is one arm for each client.
func (s Spec) Arms() []Arm {
	var arms []Arm
	for _, b := range s.Backends {
		collectors := s.Collectors
		if b.Engine == Null {
			collectors = []string{NoCollector}
		}
		for _, collector := range collectors {
			for _, client := range s.Clients {
				arm := Arm{
					Backend: b, Collector: collector, CollectorName: s.CollectorNames[collector], Client: client,
					Profile: s.Profile, Replication: s.Replication,
				}
				if s.Target != nil {
					arm.Target = s.Target.Name
				}
				for i := range max(s.Copies, 1) {
					if s.Copies > 1 {
						arm.Label = string(rune('a' + i))
					}
					arms = append(arms, arm)
				}
			}
		}
	}
	return arms
}
