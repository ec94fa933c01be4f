package spec

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// Target is the user's own Jaeger and database, as the file of LAB_TARGET describes them. Nothing
// of it is started, stopped, emptied or scanned: the lab sends its own spans to the collector,
// reads its counters, and reads back its own trace ids only.
type Target struct {
	Name      string          `yaml:"name" json:"name"` // how tables call it; default: the file's name
	Collector TargetCollector `yaml:"collector" json:"collector"`
	CQL       TargetCQL       `yaml:"cql" json:"cql"`

	// Prometheus is host:port of one that watches the target already; then the lab starts none, and
	// only asks this one for its version. "" = the lab starts its own beside the load node.
	Prometheus string `yaml:"prometheus" json:"prometheus,omitempty"`
}

// TargetCollector is where spans go and where counters are read.
type TargetCollector struct {
	Ingest     map[string]string `yaml:"ingest" json:"ingest"`         // client (otlp-grpc, thrift-http, ...) -> host:port
	Metrics    string            `yaml:"metrics" json:"metrics"`       // host:port of /metrics
	Generation string            `yaml:"generation" json:"generation"` // v2 or v1: names of its metrics; default v2
}

// TargetCQL is the database under it.
type TargetCQL struct {
	Engine      Engine    `yaml:"engine" json:"engine"`           // cassandra or scylla; what the servers say is what is recorded
	Hosts       []string  `yaml:"hosts" json:"hosts"`             // host:port of nodes; only these are connected to
	Keyspace    string    `yaml:"keyspace" json:"keyspace"`       // Jaeger's
	Consistency string    `yaml:"consistency" json:"consistency"` // of the read-back: ALL (default), or a weaker one, with which a span not read is not known to be absent
	User        string    `yaml:"user" json:"user,omitempty"`     //
	PasswordEnv string    `yaml:"password_env" json:"password_env,omitempty"`
	TLS         TargetTLS `yaml:"tls" json:"tls"`
}

// TargetTLS names files; all empty = no TLS.
type TargetTLS struct {
	CA         string `yaml:"ca" json:"ca,omitempty"`     // certificates to trust, PEM
	Cert       string `yaml:"cert" json:"cert,omitempty"` // own certificate, PEM
	Key        string `yaml:"key" json:"key,omitempty"`   // its key, PEM
	ServerName string `yaml:"server_name" json:"server_name,omitempty"`
}

// On reports whether TLS is asked for.
func (t TargetTLS) On() bool { return t != TargetTLS{} }

// Consistencies of a read-back, the strongest first.
var Consistencies = []string{"ALL", "QUORUM", "LOCAL_QUORUM", "ONE", "LOCAL_ONE"}

// ReadTarget reads the file of LAB_TARGET. All faults are returned at once, each with the field,
// its value and what is accepted. Paths in it are relative to the file.
func ReadTarget(path string) (Target, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Target{}, fmt.Errorf("LAB_TARGET=%q: %w; accepted: the path of an endpoints file", path, err)
	}
	var t Target
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&t); err != nil {
		return Target{}, fmt.Errorf("LAB_TARGET=%q: %w; accepted fields: name, "+
			"collector {ingest {CLIENT: HOST:PORT}, metrics, generation}, prometheus, "+
			"cql {engine, hosts [HOST:PORT], keyspace, consistency, user, password_env, tls {ca, cert, key, server_name}}", path, err)
	}
	t.defaults(path)
	if problems := t.problems(); len(problems) > 0 {
		return t, fmt.Errorf("LAB_TARGET=%q:\n%w", path, errors.Join(problems...))
	}
	return t, nil
}

func (t *Target) defaults(path string) {
	if t.Name == "" {
		t.Name = strings.ToLower(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	}
	if t.Collector.Generation == "" {
		t.Collector.Generation = "v2"
	}
	if t.CQL.Engine == "" {
		t.CQL.Engine = Cassandra
	}
	if t.CQL.Consistency == "" {
		t.CQL.Consistency = Consistencies[0]
	}
	for _, file := range []*string{&t.CQL.TLS.CA, &t.CQL.TLS.Cert, &t.CQL.TLS.Key} {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(filepath.Dir(path), *file)
		}
	}
}

var (
	targetName     = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`)
	targetKeyspace = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)
)

func (t Target) problems() (problems []error) {
	refuse := func(field string, value any, accepted string) {
		problems = append(problems, fmt.Errorf("%s: %q: accepted: %s", field, fmt.Sprint(value), accepted))
	}
	oneOf := func(field, value string, accepted ...string) {
		if !slices.Contains(accepted, value) {
			refuse(field, value, strings.Join(accepted, ", "))
		}
	}
	if !targetName.MatchString(t.Name) {
		refuse("name", t.Name, "up to 40 of a-z, 0-9, '.', '_', '-', the first a letter or digit")
	}
	if len(t.Collector.Ingest) == 0 {
		refuse("collector.ingest", "", "host:port for each client, such as otlp-grpc: 127.0.0.1:4317")
	}
	for _, client := range slices.Sorted(maps.Keys(t.Collector.Ingest)) {
		if clients := acceptedWords("LAB_CLIENT"); !slices.Contains(clients, client) {
			refuse("collector.ingest", client, "clients: "+strings.Join(clients, ", "))
		}
	}
	oneOf("collector.generation", t.Collector.Generation, "v2", "v1")
	oneOf("cql.engine", string(t.CQL.Engine), string(Cassandra), string(Scylla))
	oneOf("cql.consistency", t.CQL.Consistency, Consistencies...)
	if len(t.CQL.Hosts) == 0 {
		refuse("cql.hosts", "", "a list of host:port")
	}
	if !targetKeyspace.MatchString(t.CQL.Keyspace) {
		refuse("cql.keyspace", t.CQL.Keyspace, "a name of up to 48 of a-z, 0-9, '_', the first a letter")
	}
	for _, e := range t.endpoints() {
		if host, port, err := net.SplitHostPort(e.addr); err != nil || host == "" || port == "" {
			refuse(e.field, e.addr, "host:port")
		}
	}
	if (t.CQL.User == "") != (t.CQL.PasswordEnv == "") {
		refuse("cql.password_env", t.CQL.PasswordEnv, "with cql.user, the name of the variable that holds its password; neither for none")
	}
	if (t.CQL.TLS.Cert == "") != (t.CQL.TLS.Key == "") {
		refuse("cql.tls.key", t.CQL.TLS.Key, "with cql.tls.cert, the file of its key; neither for none")
	}
	for field, path := range map[string]string{"cql.tls.ca": t.CQL.TLS.CA, "cql.tls.cert": t.CQL.TLS.Cert, "cql.tls.key": t.CQL.TLS.Key} {
		if _, err := os.Stat(path); path != "" && err != nil {
			refuse(field, path, fmt.Sprintf("a file that is there (%v)", err))
		}
	}
	return problems
}

type endpoint struct{ field, addr string }

func (t Target) endpoints() []endpoint {
	all := []endpoint{{"collector.metrics", t.Collector.Metrics}}
	if t.Prometheus != "" {
		all = append(all, endpoint{"prometheus", t.Prometheus})
	}
	for client, addr := range t.Collector.Ingest {
		all = append(all, endpoint{"collector.ingest." + client, addr})
	}
	for _, host := range t.CQL.Hosts {
		all = append(all, endpoint{"cql.hosts", host})
	}
	slices.SortFunc(all, func(a, b endpoint) int { return strings.Compare(a.field+a.addr, b.field+b.addr) })
	return all
}

// Elsewhere lists the endpoints that are not on this machine's loopback; sending to them needs Confirm.
func (t Target) Elsewhere() (addrs []string) {
	for _, e := range t.endpoints() {
		host, _, _ := net.SplitHostPort(e.addr)
		ip, err := netip.ParseAddr(host)
		if host == "localhost" || err == nil && ip.IsLoopback() || slices.Contains(addrs, e.addr) {
			continue
		}
		addrs = append(addrs, e.addr)
	}
	return addrs
}

// Confirm refuses to send to another machine unless the user has said how much: "RATExSECONDS",
// spans a second and seconds, exactly as the run will send them. Without a rate a closed loop sends
// as fast as the target takes it, which nobody can confirm beforehand.
func (t Target) Confirm(said string, spansPerS float64, seconds int) error {
	elsewhere := t.Elsewhere()
	if len(elsewhere) == 0 {
		return nil
	}
	if spansPerS <= 0 {
		return fmt.Errorf("target %s has endpoints that are not on this machine (%s): a run there needs a fixed rate; "+
			"set RATE to spans a second, and LAB_TARGET_CONFIRM to RATEx%d", t.Name, strings.Join(elsewhere, ", "), seconds)
	}
	want := fmt.Sprintf("%gx%d", spansPerS, seconds)
	if said != want {
		return fmt.Errorf("target %s has endpoints that are not on this machine (%s): LAB_TARGET_CONFIRM=%q; accepted: %s, which "+
			"means that each run writes %.0f spans there, which stay", t.Name, strings.Join(elsewhere, ", "), said, want, spansPerS*float64(seconds))
	}
	return nil
}
