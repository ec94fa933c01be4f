package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func targetFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "Staging.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodTarget = `
collector:
  ingest: {otlp-grpc: "127.0.0.1:4317", thrift-http: "localhost:14268"}
  metrics: 127.0.0.1:8888
cql:
  hosts: ["127.0.0.1:9042", "[::1]:19042"]
  keyspace: jaegerlab
  tls: {ca: ca.pem}
`

// writeBeside writes an empty file into the folder of another.
func writeBeside(t *testing.T, path, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTargetDefaults(t *testing.T) {
	path := targetFile(t, goodTarget)
	writeBeside(t, path, "ca.pem")
	target, err := ReadTarget(path)
	if err != nil {
		t.Fatal(err)
	}
	if target.Name != "staging" || target.Collector.Generation != "v2" || target.CQL.Engine != Cassandra || target.CQL.Consistency != "ALL" {
		t.Errorf("defaults: %+v", target)
	}
	if want := filepath.Join(filepath.Dir(path), "ca.pem"); target.CQL.TLS.CA != want || !target.CQL.TLS.On() {
		t.Errorf("ca is %s, want %s: relative to the file", target.CQL.TLS.CA, want)
	}
	if elsewhere := target.Elsewhere(); len(elsewhere) != 0 {
		t.Errorf("elsewhere %v: all of it is loopback", elsewhere)
	}
	if err := target.Confirm("", 0, 60); err != nil {
		t.Errorf("loopback needs no confirmation: %v", err)
	}
}

// TestTargetFaults: all at once, each with its field, value and what is accepted.
func TestTargetFaults(t *testing.T) {
	_, err := ReadTarget(targetFile(t, `
name: "Sta|ging"
collector: {ingest: {otlp-grpc: nowhere, otlp: "127.0.0.1:1"}, metrics: "", generation: v3}
cql: {engine: badger, hosts: [], keyspace: "x; drop", consistency: SOME, user: me, tls: {cert: a.pem}}
prometheus: here
`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`name: "Sta|ging"`, `collector.ingest.otlp-grpc: "nowhere"`, `collector.metrics: ""`,
		`collector.generation: "v3": accepted: v2, v1`, `cql.engine: "badger"`, "cql.hosts", `cql.keyspace: "x; drop"`,
		`cql.consistency: "SOME"`, "cql.password_env", "cql.tls.key", "cql.tls.cert", `collector.ingest: "otlp"`, `prometheus: "here"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no complaint with %q in:\n%v", want, err)
		}
	}
	if _, err := ReadTarget(targetFile(t, "colector: {}")); err == nil || !strings.Contains(err.Error(), "colector") {
		t.Errorf("an unknown field: %v", err)
	}
}

// TestTargetElsewhereNeedsConfirmation: a host that is not loopback takes no span before its owner said how many.
func TestTargetElsewhereNeedsConfirmation(t *testing.T) {
	path := targetFile(t, strings.Replace(goodTarget, "127.0.0.1:4317", "otel.example:4317", 1))
	writeBeside(t, path, "ca.pem")
	target, err := ReadTarget(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		said string
		rate float64
		want string
	}{{"", 0, "fixed rate"}, {"", 500, "accepted: 500x60"}, {"500x30", 500, "accepted: 500x60"}, {"500x60", 500, ""}} {
		err := target.Confirm(c.said, c.rate, 60)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("said %q at rate %v: %v, want %q", c.said, c.rate, err, c.want)
		}
	}
}

// TestReadmesTarget: the file that README shows is one that is read, with every field there is.
func TestReadmesTarget(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(readme), "## Your own Jaeger and database")
	_, after, _ = strings.Cut(after, "```yaml\n")
	text, _, _ := strings.Cut(after, "```")
	path := targetFile(t, text)
	for _, name := range []string{"ca.pem", "own.pem", "own-key.pem"} {
		writeBeside(t, path, name)
	}
	target, err := ReadTarget(path)
	if err != nil {
		t.Fatal(err)
	}
	if target.Name != "staging" || target.Prometheus == "" || target.CQL.TLS.ServerName == "" || target.CQL.PasswordEnv == "" {
		t.Errorf("%+v", target)
	}
}
