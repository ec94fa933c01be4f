package spec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/caarlos0/env/v11"
)

// environment is every variable that decides a run, with its default, the accepted values and
// one line of documentation; Settings, the README's table and Validate's names and ranges are made
// from these tags.
type environment struct {
	Concurrency int `env:"CONCURRENCY" envDefault:"10" accept:"1 to 10000" doc:"workers that generate traces back to back"`
	SpansCount  int `env:"SPANS_COUNT" envDefault:"10" accept:"0 to 10000" doc:"child spans a trace; a trace has one root span more"`
	TagsCount   int `env:"TAGS_COUNT" envDefault:"10" accept:"0 to 1000" doc:"tags a span"`
	DurationS   int `env:"DURATION_S" envDefault:"60" accept:"1 to 86400" doc:"length of the window in seconds"`

	TracesPerRequest int    `env:"TRACES_PER_REQUEST" envDefault:"1" accept:"1 to 1000" doc:"traces sent together, all of one service; what a receiver would refuse is split before sending"`
	Rate             string `env:"RATE" accept:"spans/s (1 to 1000000000), or from:to:over_s, several of them separated by commas" doc:"open loop: spans/s of all workers together, with ramps and steps; unset: closed loop, workers send back to back"`

	Runtime     Runtime  `env:"LAB_RUNTIME" envDefault:"auto" accept:"auto, docker, process" doc:"where programs run; auto takes Docker when a daemon answers"`
	Backends    []string `env:"LAB_BACKENDS" accept:"a list of scylla:N, cassandra:N (N 1 to 5), badger, memory, null" doc:"storage under Jaeger; null is a black hole in Jaeger's place, the generator's ceiling; unset: scylla:3,cassandra:2 in Docker, cassandra:2,badger as processes"`
	Collectors  []string `env:"LAB_COLLECTOR" envDefault:"v2" accept:"a list of v2, v2-stock, v1, or paths of collector files (.yaml, .yml, .json)" doc:"Jaeger and its settings"`
	Clients     []string `env:"LAB_CLIENT" envDefault:"otlp-grpc" accept:"a list of otlp-grpc, otlp-http, thrift-http, thrift-udp, jaeger-client" doc:"how spans are sent"`
	Profile     Profile  `env:"LAB_PROFILE" envDefault:"t2" accept:"t2, hard, none" doc:"limits: shares in the CPU sets of the original hosts, CPU quotas, or none"`
	Replication int      `env:"LAB_REPLICATION" envDefault:"1" accept:"1 to 5, at most the node count" doc:"copies of each row"`
	WarmupS     int      `env:"LAB_WARMUP_S" envDefault:"0" accept:"0 to 3600" doc:"load before the window that is not counted, in seconds"`
	DrainS      int      `env:"LAB_DRAIN_S" envDefault:"300" accept:"5 to 7200" doc:"bound of the wait after load until nothing moves any more, in seconds"`
	Rounds      int      `env:"LAB_ROUNDS" envDefault:"1" accept:"1 to 200" doc:"runs of every arm"`
	Seed        uint64   `env:"LAB_SEED" envDefault:"1" accept:"0 to 18446744073709551615" doc:"decides span content and the order of runs"`
	Results     string   `env:"LAB_RESULTS" accept:"a folder; unset: results in the checkout" doc:"where records and reports go"`
	Resume      string   `env:"LAB_RESUME" accept:"the folder of a saved comparison; unset: a new one" doc:"continue an interrupted comparison, or give it, or some of its arms, more rounds (LAB_ROUNDS)"`
	Keep        bool     `env:"LAB_KEEP" envDefault:"false" accept:"1, 0, true, false" doc:"leave the last arm's stack up for a look; jaegerlab clean ends it"`

	Target        string `env:"LAB_TARGET" accept:"the path of an endpoints file; unset: the lab starts a stack of its own" doc:"your own Jaeger and database: only a load node is started here"`
	TargetConfirm string `env:"LAB_TARGET_CONFIRM" accept:"RATExSECONDS of one run, such as 500x60" doc:"says that so many spans a second may be sent to a target that is not on this machine"`

	Content            string `env:"LAB_CONTENT" envDefault:"original" accept:"original, deep, heavy, varied" doc:"named content of spans: values for the settings below and SPANS_COUNT, TAGS_COUNT, where they are unset"`
	Services           int    `env:"LAB_SERVICES" envDefault:"1" accept:"1 to 4000" doc:"distinct service names"`
	TagValues          int    `env:"LAB_TAG_VALUES" envDefault:"1" accept:"1 to 1000000" doc:"distinct values of each tag; 1 is the original's constant tags, which fill few partitions"`
	TagLength          int    `env:"LAB_TAG_LENGTH" envDefault:"0" accept:"0 to 100000" doc:"bytes that a tag's value is filled up to; 0 is as long as it is"`
	Operations         int    `env:"LAB_OPERATIONS" envDefault:"1" accept:"1 to 100000" doc:"distinct operation names; 1 is the original's root and child"`
	Shape              string `env:"LAB_SHAPE" envDefault:"star" accept:"star, chain, tree" doc:"which span is whose parent: all children below the root, each below the last, two below each"`
	ErrorPercent       int    `env:"LAB_ERROR_PERCENT" envDefault:"0" accept:"0 to 100" doc:"spans that end with an error, of a hundred"`
	Events             int    `env:"LAB_EVENTS" envDefault:"0" accept:"0 to 100" doc:"events (Jaeger: logs) a span"`
	ResourceAttributes int    `env:"LAB_RESOURCE_ATTRIBUTES" envDefault:"0" accept:"0 to 100" doc:"resource attributes beside service.name; each is one more index write a span"`
	MaxRequestSpans    int    `env:"LAB_MAX_REQUEST_SPANS" envDefault:"1000" accept:"1 to 100000" doc:"a request of more spans is split before sending; the queue of collector v2 holds 2,000 spans"`
	Gzip               bool   `env:"LAB_GZIP" envDefault:"false" accept:"1, 0, true, false" doc:"otlp-http: compress requests"`
	RequestTimeoutS    int    `env:"LAB_REQUEST_TIMEOUT_S" envDefault:"30" accept:"30 to 600" doc:"deadline of a request in seconds, retries included, the same for every arm"`

	ImageJaeger       string `env:"LAB_IMAGE_JAEGER" accept:"an image reference" doc:"image of Jaeger v2" program:"jaeger"`
	ImageJaegerV1     string `env:"LAB_IMAGE_JAEGER_V1" accept:"an image reference" doc:"image of the v1 collector" program:"jaeger-v1-collector"`
	ImageJaegerV1All  string `env:"LAB_IMAGE_JAEGER_V1_ALL_IN_ONE" accept:"an image reference" doc:"image of v1 all-in-one, for embedded stores" program:"jaeger-v1-all-in-one"`
	ImageCassandra    string `env:"LAB_IMAGE_CASSANDRA" accept:"an image reference" doc:"image of Cassandra" program:"cassandra"`
	ImageScylla       string `env:"LAB_IMAGE_SCYLLA" accept:"an image reference" doc:"image of ScyllaDB, or of its labelled stand-in" program:"scylla"`
	ImagePrometheus   string `env:"LAB_IMAGE_PROMETHEUS" accept:"an image reference" doc:"image of Prometheus" program:"prometheus"`
	ImageNodeExporter string `env:"LAB_IMAGE_NODE_EXPORTER" accept:"an image reference" doc:"image of node-exporter" program:"node-exporter"`
	Cache             string `env:"LAB_CACHE" accept:"a folder; unset: jaegerlab in the user's cache folder" doc:"built programs, jars and run state"`
	RequireDocker     bool   `env:"LAB_REQUIRE_DOCKER" envDefault:"false" accept:"1, 0, true, false" doc:"tests: a missing Docker is a failure, not a skip"`
}

// Setting documents one environment variable.
type Setting struct {
	Name, Default, Accepted, Doc string
}

// Settings lists every variable that FromEnv reads, in the order of the documentation.
func Settings() []Setting {
	var settings []Setting
	t := reflect.TypeFor[environment]()
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		settings = append(settings, Setting{
			Name: tag.Get("env"), Default: tag.Get("envDefault"), Accepted: tag.Get("accept"), Doc: tag.Get("doc"),
		})
	}
	return settings
}

// FromEnv reads a spec from variables in the form NAME=value (os.Environ). It returns every
// error at once, each naming the variable, its value and what is accepted. A variable that is
// set but empty counts as unset.
func FromEnv(environ []string) (Spec, error) {
	vars := variables(environ)
	problems := unknownNames(vars)
	vars, more := withContent(vars)
	problems = append(problems, more...)

	var e environment
	if err := env.ParseWithOptions(&e, env.Options{Environment: vars}); err != nil {
		problems = append(problems, parseProblems(err, vars)...)
	}
	s := e.spec()
	backends, wrong := parseBackends(e.Backends)
	s.Backends, s.Named = backends, len(e.Backends) > 0
	problems = append(problems, wrong...)
	problems = append(problems, s.aim(vars)...)
	if len(problems) == 0 {
		// Ranges are only worth judging on values that could be read.
		return s, s.Validate()
	}
	if err := s.Validate(); err != nil {
		problems = append(problems, withoutRepeats(err, problems)...)
	}
	return s, join(problems)
}

func (e environment) spec() Spec {
	s := Spec{
		Runtime: e.Runtime, Collectors: trimmed(e.Collectors), Clients: trimmed(e.Clients), Profile: e.Profile,
		Replication: e.Replication, Rounds: e.Rounds, Seed: e.Seed, Results: e.Results, Keep: e.Keep,
		Load: Load{
			Concurrency: e.Concurrency, SpansCount: e.SpansCount, TagsCount: e.TagsCount, DurationS: e.DurationS,
			WarmupS: e.WarmupS, DrainS: e.DrainS, Services: e.Services, TagValues: e.TagValues,
			ResourceAttributes: e.ResourceAttributes, RequestTimeoutS: e.RequestTimeoutS,
			TracesPerRequest: e.TracesPerRequest, MaxRequestSpans: e.MaxRequestSpans, Rate: e.Rate, Gzip: e.Gzip,
			Operations: e.Operations, Shape: e.Shape, TagLength: e.TagLength, ErrorPercent: e.ErrorPercent, Events: e.Events,
		},
		Images: map[string]string{},
	}
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		if program := v.Type().Field(i).Tag.Get("program"); program != "" && v.Field(i).String() != "" {
			s.Images[program] = v.Field(i).String()
		}
	}
	return s
}

// Default returns the spec that an empty environment gives: the original experiment.
func Default() Spec {
	s, err := FromEnv(nil)
	if err != nil {
		panic("spec: the defaults are not valid: " + err.Error())
	}
	return s
}

func variables(environ []string) map[string]string {
	vars := map[string]string{}
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok && value != "" {
			vars[name] = value
		}
	}
	return vars
}

// unknownNames refuses LAB_ variables that nothing reads: a typo must not run another experiment.
func unknownNames(vars map[string]string) []error {
	var known []string
	for _, setting := range Settings() {
		known = append(known, setting.Name)
	}
	var problems []error
	for name, value := range vars {
		if !strings.HasPrefix(name, "LAB_") || slices.Contains(known, name) {
			continue
		}
		near := nearest(name, known)
		if short := strings.TrimPrefix(name, "LAB_"); slices.Contains(known, short) {
			near = short
		}
		problems = append(problems, problem(name, value, "no such setting; nearest known one is "+near))
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

func nearest(name string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(name, a) - levenshtein.ComputeDistance(name, b)
	})
}

// parseProblems turns the library's errors, which name Go fields, into ours.
func parseProblems(err error, vars map[string]string) []error {
	var all env.AggregateError
	if !errors.As(err, &all) {
		return []error{err}
	}
	var problems []error
	for _, one := range all.Errors {
		var parse env.ParseError
		if !errors.As(one, &parse) {
			problems = append(problems, one)
			continue
		}
		field, _ := reflect.TypeFor[environment]().FieldByName(parse.Name)
		name := field.Tag.Get("env")
		problems = append(problems, problem(name, vars[name], "accepted: "+field.Tag.Get("accept")))
	}
	return problems
}

func parseBackends(words []string) ([]Backend, []error) {
	var backends []Backend
	var problems []error
	for _, word := range trimmed(words) {
		backend, err := ParseBackend(word)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		backends = append(backends, backend)
	}
	return backends, problems
}

// ParseBackend reads the spelling of LAB_BACKENDS: "cassandra:2", "scylla:3", "badger", "memory", "null".
func ParseBackend(word string) (Backend, error) {
	refuse := func() (Backend, error) {
		return Backend{}, problem("LAB_BACKENDS", word, "accepted: "+strings.TrimPrefix(accepted("LAB_BACKENDS"), "a list of "))
	}
	name, count, counted := strings.Cut(word, ":")
	b := Backend{Engine: Engine(name)}
	switch {
	case !slices.Contains(Engines, b.Engine):
		return refuse()
	case b.Engine.Embedded():
		if counted {
			return refuse()
		}
		return b, nil
	case len(count) != 1, count < "1", count > "5":
		return refuse()
	}
	b.Nodes = int(count[0] - '0')
	return b, nil
}

func trimmed(words []string) []string {
	out := make([]string, 0, len(words))
	for _, word := range words {
		out = append(out, strings.TrimSpace(word))
	}
	return out
}

func problem(name, value, text string) error { return fmt.Errorf("%s=%q: %s", name, value, text) }

func join(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	return errors.Join(problems...)
}

// withoutRepeats drops the complaints of Validate about variables that could not even be read.
func withoutRepeats(err error, said []error) []error {
	seen := map[string]bool{}
	for _, one := range said {
		name, _, _ := strings.Cut(one.Error(), "=")
		seen[name] = true
	}
	var rest []error
	for _, one := range unjoin(err) {
		if name, _, _ := strings.Cut(one.Error(), "="); !seen[name] {
			rest = append(rest, one)
		}
	}
	return rest
}

func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
