package stack

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
)

// page serves one text on every path and returns its address.
func page(t *testing.T, text string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

const noKeyspace = `Error: cannot start extension: failed to initialize storage 'store': ` +
	`gocql: unable to create session: Keyspace 'jaeger_run1' does not exist`

// Case 13: a collector before its schema is started again for a while, then fails with the
// keyspace's name and the end of its log, in under 30 s. Nothing keeps running.
func TestMissingKeyspaceFailsInTime(t *testing.T) {
	for _, collector := range []string{"v2", "v1"} {
		synctest.Test(t, func(t *testing.T) {
			runtime := &fakeRuntime{name: spec.Process, launch: func(node.Program, int) *fakeNode {
				return dead("exit status 1", noKeyspace)
			}}
			started := time.Now()
			_, err := StartCollector(t.Context(), fakeEnv(runtime), Ask{
				Arm: arm(spec.Cassandra, collector), Store: cassandraStore(), Protocol: otlpGRPC(), Name: "collector",
			})
			if err == nil {
				t.Fatal("a dead collector was returned")
			}
			for _, want := range []string{"keyspace jaeger_run1", "cassandra:2", "exit status 1", "unable to create session"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the error lacks %q: %v", collector, want, err)
				}
			}
			if took := time.Since(started); took < 15*time.Second || took >= 30*time.Second {
				t.Errorf("%s: failed after %s, want some retries and under 30 s", collector, took)
			}
			if n := runtime.running(); n != 0 {
				t.Errorf("%d nodes still run", n)
			}
		})
	}
}

// Case 13 (b): the schema comes 20 s after the collector's first start.
func TestSchemaThatComesLate(t *testing.T) {
	metrics := page(t, "")
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		runtime := &fakeRuntime{name: spec.Process, launch: func(node.Program, int) *fakeNode {
			if time.Since(begin) < 20*time.Second {
				return dead("exit status 1", noKeyspace)
			}
			return live(map[string]string{"metrics": metrics})
		}}
		n, err := startAgain(t.Context(), fakeEnv(runtime), node.Program{Name: "collector"}, restartFor,
			func(ctx context.Context, n node.Node) error {
				return node.Wait(ctx, "it", healthyWithin, n, func(context.Context) error {
					if n.Addr("metrics") == "" {
						return fmt.Errorf("not there")
					}
					return nil
				})
			})
		if err != nil || n == nil {
			t.Errorf("got %v, %v", n, err)
		}
		names := map[string]bool{}
		for _, p := range runtime.started {
			if names[p.Name] {
				t.Errorf("name %s was used twice", p.Name)
			}
			names[p.Name] = true
		}
	})
}

// A fault of its own, such as a bad configuration, is not worth another try.
func TestABadConfigurationIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := &fakeRuntime{name: spec.Process, launch: func(node.Program, int) *fakeNode {
			return dead("exit status 1", "Error: failed to unmarshal: 'queue' has invalid keys: blok_on_overflow")
		}}
		_, err := StartCollector(t.Context(), fakeEnv(runtime), Ask{
			Arm: arm(spec.Memory, "v2"), Store: memoryStore(), Protocol: otlpGRPC(), Name: "collector",
		})
		if err == nil || !strings.Contains(err.Error(), "blok_on_overflow") || len(runtime.started) != 1 {
			t.Errorf("started %d times: %v", len(runtime.started), err)
		}
	})
}

// A collector that lives but never gets healthy: the wait ends, and says what it saw.
func TestNeverHealthy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"status":"StatusStarting"}`)
	}))
	defer server.Close()
	n := live(map[string]string{"health": strings.TrimPrefix(server.URL, "http://")})
	n.tail = "still starting"
	err := node.Wait(t.Context(), "collector v2 to be healthy", 50*time.Millisecond, n, func(ctx context.Context) error {
		status, body, err := get(ctx, server.URL)
		if err != nil {
			return err
		}
		return fmt.Errorf("answered %d: %s", status, body)
	})
	for _, want := range []string{"collector v2 to be healthy", "50ms", "StatusStarting", "still starting"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestStartedCollector(t *testing.T) {
	addr := page(t, "# TYPE target_info gauge\ntarget_info{service_version=\"v2.13.0\"} 1\n")
	ports := map[string]string{"health": addr, "metrics": addr, "otlp-grpc": addr, "query-grpc": addr}
	runtime := &fakeRuntime{name: spec.Process, launch: func(node.Program, int) *fakeNode { return live(ports) }}
	c, err := StartCollector(t.Context(), fakeEnv(runtime), Ask{
		Arm: arm(spec.Memory, "v2"), Store: memoryStore(), Protocol: otlpGRPC(), Name: "collector",
		Limits: spec.Limits{MemoryBytes: 1 << 30},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.QueryAddr != addr || c.MetricsAddr != addr || c.IngestAddr(false) != addr || c.IngestAddr(true) != "peer-"+addr {
		t.Errorf("addresses %+v", c)
	}
	if c.Record.Name != "v2" || c.Record.Program.Version != "2.13.0" || c.Record.Program.Source != "jaeger@v1" {
		t.Errorf("record %+v", c.Record)
	}
	if c.Record.Settings["config.exporters.jaeger_storage_exporter.queue.queue_size"] != "2000" {
		t.Errorf("settings lack the queue: %v", c.Record.Settings)
	}
	p := runtime.started[0]
	if p.Limits.MemoryBytes != 1<<30 || p.Host != spec.CollectorHost || len(p.Files) != 1 {
		t.Errorf("program %+v", p)
	}
}

// The queue in force must be the one asked for; a difference is told with both numbers.
func TestCheckQueue(t *testing.T) {
	v2 := func(metrics string) *Collector {
		return &Collector{Flavour: Flavour{Generation: V2}, MetricsAddr: page(t, metrics), queueAsked: true}
	}
	v1 := func(legacy bool, capacity int) *Collector {
		return &Collector{Flavour: Flavour{Generation: V1}, legacy: legacy,
			MetricsAddr: page(t, fmt.Sprintf("# TYPE jaeger_collector_queue_capacity gauge\n"+
				"jaeger_collector_queue_capacity{host=\"h\"} %d\n", capacity))}
	}
	const capacity = "# TYPE otelcol_exporter_queue_capacity gauge\n" +
		"otelcol_exporter_queue_capacity{data_type=\"traces\"} %d\n"
	for name, test := range map[string]struct {
		collector *Collector
		want      []string
	}{
		"as asked":              {v2(fmt.Sprintf(capacity, 2000)), nil},
		"another size":          {v2(fmt.Sprintf(capacity, 1000)), []string{"2000", "1000"}},
		"silently off":          {v2("up 1\n"), []string{"2000", "without a queue"}},
		"stock asks for none":   {&Collector{Flavour: Flavour{Generation: V2, Stock: true}}, nil},
		"v1, thrift":            {v1(true, 2000), nil},
		"v1, thrift, smaller":   {v1(true, 10), []string{"2000", "10"}},
		"v1 OTLP has no metric": {v1(false, 10), nil},
		"not answering": {&Collector{Flavour: Flavour{Generation: V2}, MetricsAddr: "127.0.0.1:1", queueAsked: true},
			[]string{"127.0.0.1:1"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		test.collector.Node = live(nil)
		err := test.collector.CheckQueue(ctx)
		cancel()
		if (err == nil) != (test.want == nil) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error lacks %q: %v", name, want, err)
			}
		}
	}
}

func TestCreateSchema(t *testing.T) {
	addr := page(t, `{"status":"StatusOK"}`)
	runtime := &fakeRuntime{name: spec.Process, launch: func(_ node.Program, attempt int) *fakeNode {
		if attempt == 1 {
			return dead("exit status 1", "gocql: unable to create session: i/o timeout")
		}
		return live(map[string]string{"health": addr})
	}}
	ask := Ask{Arm: arm(spec.Cassandra, "v2"), Store: cassandraStore(), Name: "schema"}
	env := fakeEnv(runtime)
	if err := CreateSchema(t.Context(), env, ask); err != nil {
		t.Fatal(err)
	}
	if len(runtime.started) != 2 || runtime.running() != 0 {
		t.Errorf("started %d times, %d still run", len(runtime.started), runtime.running())
	}
	if text := string(runtime.started[1].Files[0].Data); !strings.Contains(text, "create: true") {
		t.Errorf("the owner's configuration:\n%s", text)
	}
	ask.Store = memoryStore()
	if err := CreateSchema(t.Context(), env, ask); err != nil || len(runtime.started) != 2 {
		t.Errorf("a store without schema started an owner: %v", err)
	}
}
