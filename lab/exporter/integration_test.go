package exporter

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"jaegerlab/lab/internal/need"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/setup"
)

const (
	realTraces = 100
	realWidth  = 20
)

// realSpans are finished spans of three services with every kind of content.
func realSpans() (spans []sdktrace.ReadOnlySpan) {
	resources := testResources(3)
	start := time.Now().Truncate(time.Microsecond)
	for i := range realTraces * realWidth {
		var id trace.TraceID
		binary.BigEndian.PutUint64(id[:8], 0x4000000000000001)
		binary.BigEndian.PutUint64(id[8:], uint64(i/realWidth)+1)
		span := func(n int) (s trace.SpanID) { binary.BigEndian.PutUint64(s[:], uint64(n)+1); return s }
		stub := tracetest.SpanStub{
			Name: fmt.Sprint("operation-", i%7), Resource: resources[i/realWidth%3], SpanKind: trace.SpanKind(i % 6),
			SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span(i), TraceFlags: trace.FlagsSampled}),
			StartTime:   start.Add(time.Duration(i) * time.Microsecond), EndTime: start.Add(time.Duration(i+1+i%9) * time.Microsecond),
			Attributes: []attribute.KeyValue{attribute.String("text", fmt.Sprint("v", i)), attribute.Int("number", i),
				attribute.Bool("flag", i%2 == 0), attribute.Float64("part", float64(i)/4)},
		}
		if first := i / realWidth * realWidth; i > first {
			stub.Parent = trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span(first)})
		}
		if i%5 == 0 {
			stub.Status = sdktrace.Status{Code: codes.Error}
		}
		if i%3 == 0 {
			stub.Events = []sdktrace.Event{{Name: "happened", Time: stub.StartTime, Attributes: []attribute.KeyValue{attribute.String("why", "w")}}}
		}
		spans = append(spans, stub.Snapshot())
	}
	return spans
}

// Goal: what the exporter sends is what a real Jaeger v2 has stored: over HTTP every span with
// equal content, over UDP every span that arrived, and what did not is in the kernel's counters.
func TestIntegrationJaegerStoresWhatIsExported(t *testing.T) {
	ports := startJaeger(t, jaegerBinary(t))
	spans := realSpans()
	for _, transport := range []string{"http", "udp"} {
		t.Run(transport, func(t *testing.T) {
			e := NewHTTP(ports["thrift-http"], Options{})
			if transport == "udp" {
				var err error
				if e, err = NewUDP(ports["thrift-udp"], Options{MaxBytes: 20_000}); err != nil {
					t.Fatal(err)
				}
			}
			before, counted := protocol.ReadUDPErrors()
			shifted := shift(spans, transport)
			if err := e.ExportSpans(t.Context(), shifted); err != nil {
				t.Fatal(err)
			}
			stored := 0
			deadline := time.Now().Add(5 * time.Second)
			for seq := range realTraces {
				want := shifted[seq*realWidth : (seq+1)*realWidth]
				got := readTrace(t, ports["query"], want[0].SpanContext().TraceID())
				for transport == "udp" && len(got) < realWidth && time.Now().Before(deadline) {
					got = readTrace(t, ports["query"], want[0].SpanContext().TraceID())
				}
				for _, s := range want {
					if text, ok := got[s.SpanContext().SpanID().String()]; ok {
						stored++
						if wanted := storedFacts(s); text != wanted {
							t.Fatalf("stored   %s\nexported %s", text, wanted)
						}
					}
				}
			}
			after, err := protocol.ReadUDPErrors()
			lost := after.Since(before)
			switch {
			case transport == "http" && stored != len(spans):
				t.Errorf("%d of %d spans are stored: lossy", stored, len(spans))
			case stored < len(spans) && counted == nil && err == nil && lost.InErrors == 0:
				t.Errorf("%d of %d spans are stored, and the kernel lost no packet", stored, len(spans))
			}
			t.Logf("%s: %d of %d spans stored; the kernel lost %d packets; %+v", transport, stored, len(spans), lost.InErrors, e.Totals())
			if err := e.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// jaegerBinary is the lab's own, or one in PATH.
func jaegerBinary(t *testing.T) string {
	t.Helper()
	if cache, err := setup.CacheDir(); err == nil {
		found, _ := filepath.Glob(filepath.Join(cache, "bin", "jaeger-2*-"+runtime.GOOS+"-"+runtime.GOARCH)) // the pattern is fixed
		if len(found) > 0 {
			return found[0]
		}
	}
	return need.Programs(t, "jaeger")[0]
}

// shift gives each transport traces of its own.
func shift(spans []sdktrace.ReadOnlySpan, transport string) (shifted []sdktrace.ReadOnlySpan) {
	for _, s := range spans {
		stub := tracetest.SpanStubFromReadOnlySpan(s)
		id := stub.SpanContext.TraceID()
		id[1] = transport[0]
		stub.SpanContext = stub.SpanContext.WithTraceID(id)
		shifted = append(shifted, stub.Snapshot())
	}
	return shifted
}

func storedFacts(s sdktrace.ReadOnlySpan) string {
	tags := map[string]string{"number": "", "text": ""}
	for _, kv := range s.Attributes() {
		tags[string(kv.Key)] = kv.Value.Emit()
	}
	if kind := kindOf(s.SpanKind()); kind != "" {
		tags["span.kind"] = kind
	}
	if s.Status().Code == codes.Error {
		tags["error"] = "true"
	}
	var service string
	for _, kv := range s.Resource().Attributes() {
		if kv.Key == "service.name" {
			service = kv.Value.AsString()
		}
	}
	events := ""
	for _, event := range s.Events() {
		events = fmt.Sprint(event.Time.UnixMicro(), "event=happened why=w")
	}
	return fmt.Sprint(service, " ", s.Name(), " ", s.StartTime().UnixMicro(), " ", s.EndTime().Sub(s.StartTime()).Microseconds(), " ",
		sorted(tags), " ", events)
}

func sorted(tags map[string]string) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, key+"="+tags[key])
	}
	return all
}

// readTrace gives the facts of a trace's stored spans by span id.
func readTrace(t *testing.T, addr string, id trace.TraceID) map[string]string {
	t.Helper()
	response, err := http.Get("http://" + addr + "/api/traces/" + id.String() + "?raw=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	type tag struct {
		Key   string
		Value any
	}
	var answer struct {
		Data []struct {
			Spans []struct {
				SpanID, OperationName, ProcessID string
				StartTime, Duration              int64
				Tags                             []tag
				Logs                             []struct {
					Timestamp int64
					Fields    []tag
				}
			}
			Processes map[string]struct{ ServiceName string }
		}
	}
	if response.StatusCode == http.StatusNotFound {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, data := range answer.Data {
		for _, s := range data.Spans {
			tags := map[string]string{}
			for _, one := range s.Tags {
				if one.Key != "otel.status_code" { // Jaeger's own word for error=true
					tags[one.Key] = fmt.Sprint(one.Value)
				}
			}
			events := ""
			for _, log := range s.Logs {
				events = fmt.Sprint(log.Timestamp)
				var fields []string
				for _, one := range log.Fields {
					fields = append(fields, fmt.Sprint(one.Key, "=", one.Value))
				}
				slices.Sort(fields)
				events += strings.Join(fields, " ")
			}
			all[s.SpanID] = fmt.Sprint(data.Processes[s.ProcessID].ServiceName, " ", s.OperationName, " ", s.StartTime, " ", s.Duration, " ",
				sorted(tags), " ", events)
		}
	}
	return all
}

const jaegerYAML = `
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines: {traces: {receivers: [jaeger], exporters: [jaeger_storage_exporter]}}
  telemetry: {metrics: {level: none}}
extensions:
  jaeger_storage: {backends: {store: {memory: {max_traces: 100000}}}}
  jaeger_query: {storage: {traces: store}, http: {endpoint: "QUERY"}, grpc: {endpoint: "GRPC"}}
receivers:
  jaeger: {protocols: {thrift_http: {endpoint: "THRIFT-HTTP"}, thrift_compact: {endpoint: "THRIFT-UDP"}}}
exporters:
  jaeger_storage_exporter: {trace_storage: store}
`

// startJaeger returns its addresses by name.
func startJaeger(t *testing.T, program string) map[string]string {
	t.Helper()
	config, addrs := jaegerYAML, map[string]string{}
	for _, name := range []string{"query", "grpc", "thrift-http", "thrift-udp"} {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		addrs[name] = listener.Addr().String()
		config = strings.ReplaceAll(config, `"`+strings.ToUpper(name)+`"`, addrs[name])
		listener.Close()
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "--config", file)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if response, err := http.Get("http://" + addrs["query"] + "/api/services"); err == nil {
			response.Body.Close()
			return addrs
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("Jaeger's query API does not answer after 30 s")
		}
	}
}
