package stack

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); -update accepts it:\n%s", path, diff)
	}
}

// The configurations that the lab writes, in full: any change of a measured collector's settings
// shows in a diff.
func TestConfigurations(t *testing.T) {
	stores := map[spec.Engine]fakeStore{
		spec.Cassandra: cassandraStore(), spec.Badger: badgerStore(), spec.Memory: memoryStore(),
	}
	for _, collector := range []string{"v2", "v2-stock"} {
		for engine, store := range stores {
			f, err := ParseFlavour(collector)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := configV2(f, Ask{Arm: arm(engine, collector), Store: store, Protocol: otlpGRPC()})
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, collector+"-"+string(engine)+".golden.yaml", text)
		}
	}
	text, err := yaml.Marshal(schemaConfig(cassandraStore().StorageV2(true)))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "schema-owner.golden.yaml", text)
}

// A port in a prometheus reader must be a number once the runtime has filled it in: quoted it
// would be refused by Jaeger.
func TestPlaceholdersStayPlain(t *testing.T) {
	f, _ := ParseFlavour("v2")
	tree, err := configV2(f, Ask{Arm: arm(spec.Memory, "v2"), Store: memoryStore(), Protocol: otlpGRPC()})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := yaml.Marshal(tree)
	if !strings.Contains(string(text), "port: ${port.metrics}\n") {
		t.Errorf("the port is not a plain scalar:\n%s", text)
	}
}

func TestOwnConfigurationIsFilled(t *testing.T) {
	f := Flavour{Generation: V2, File: "own.yaml", Config: "receivers: ${lab.receivers}\nlist: ${lab.receiver_names}\n" +
		"deep: [{store: \"${lab.storage}\"}]\nport: ${port.metrics}\n"}
	tree, err := configV2(f, Ask{Arm: arm(spec.Cassandra, "own.yaml"), Store: cassandraStore(), Protocol: thriftHTTP()})
	if err != nil {
		t.Fatal(err)
	}
	flat := settings(tree, nil, nil)
	for key, want := range map[string]string{
		"config.list": "jaeger",
		"config.receivers.jaeger.protocols.thrift_http.endpoint": "${ip}:${port.thrift-http}",
		"config.deep.0.store.cassandra.schema.keyspace":          "jaeger_run1",
		"config.deep.0.store.cassandra.connection.servers":       "127.0.0.1,127.0.0.2",
	} {
		if flat[key] != want {
			t.Errorf("%s = %q, want %q", key, flat[key], want)
		}
	}
}

// An own configuration that listens nowhere for the arm's client, or can't be read back from,
// is refused with both faults.
func TestOwnConfigurationMustFitTheArm(t *testing.T) {
	f := Flavour{Generation: V2, File: "own.yaml", Config: "a: ${lab.storage}\nb: ${port.metrics}\n"}
	_, err := configV2(f, Ask{Arm: arm(spec.Badger, "own.yaml"), Store: badgerStore(), Protocol: thriftHTTP()})
	for _, want := range []string{"${port.thrift-http}", "${port.query-grpc}"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s: %v", want, err)
		}
	}
}

func TestSettingsAreFlatAndHideSecrets(t *testing.T) {
	got := settings(map[string]any{
		"a": map[string]any{"b": 1, "none": nil, "list": []any{"x", 2}},
		"auth": map[string]any{"basic": map[string]any{
			"username": "u", "password": "p"}},
	}, []string{"X=1", "X=2", "CASSANDRA_PASSWORD=p"}, []string{"--config=f"})
	want := map[string]string{
		"config.a.b": "1", "config.a.none": "(default)", "config.a.list": "x,2",
		"config.auth.basic.username": "u", "config.auth.basic.password": "(not shown)",
		"env.X": "2", "env.CASSANDRA_PASSWORD": "(not shown)", "arg.1": "--config=f",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsHideSecretsInArguments(t *testing.T) {
	for arg, want := range map[string]string{
		"--cassandra.password=p=q":                          "--cassandra.password=(not shown)",
		"--set=extensions.jaeger_storage.x.auth.password=p": "--set=extensions.jaeger_storage.x.auth.password=(not shown)",
		"--es.server-urls=https://me:p@db:9200,http://db2":  "--es.server-urls=https://me:(not shown)@db:9200,http://db2",
		"--es.api-key=k":          "--es.api-key=(not shown)",
		"--cassandra.servers=a,b": "--cassandra.servers=a,b",
		"--set=receivers.otlp.protocols.grpc.endpoint=[::]:1": "--set=receivers.otlp.protocols.grpc.endpoint=[::]:1",
	} {
		if got := settings(nil, nil, []string{arg})["arg.1"]; got != want {
			t.Errorf("%s: %s, want %s", arg, got, want)
		}
	}
	apart := settings(map[string]any{"headers": map[string]any{"Authorization": "Bearer t"}}, []string{"URL=http://me:p@db/"},
		[]string{"--cassandra.password", "p", "--verbose"})
	want := map[string]string{
		"config.headers.Authorization": "(not shown)", "env.URL": "http://me:(not shown)@db/",
		"arg.1": "--cassandra.password", "arg.2": "(not shown)", "arg.3": "--verbose",
	}
	if diff := cmp.Diff(want, apart); diff != "" {
		t.Error(diff)
	}
}

func TestPrometheusConfiguration(t *testing.T) {
	config, err := prometheusConfig([]Target{
		{Job: "node-exporter", Addr: "mon-exporter:9100"}, {Job: "collector", Addr: "c:8888"},
		{Job: "scylla", Addr: "s1:9180"}, {Job: "scylla", Addr: "s2:9180"},
	}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "prometheus.golden.yml", config)
}

func TestScrapeIntervalIsATenthOfTheWindow(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{
		0: time.Second, time.Minute: time.Second,
		5 * time.Second: 500 * time.Millisecond, time.Second: 100 * time.Millisecond,
	} {
		if got := scrapeInterval(window); got != want {
			t.Errorf("window %s: interval %s, want %s", window, got, want)
		}
	}
}
