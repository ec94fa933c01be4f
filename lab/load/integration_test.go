package load_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/internal/need"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// Goal: what every client sends is what a real Jaeger v2 has stored afterwards, field by field,
// through the receiver that the client itself describes. Method: a collector with the memory
// store and no queue, a few traces of several services with differing tags, read back by trace id.
func TestIntegrationJaegerStoresWhatTraceSays(t *testing.T) {
	binary := jaegerBinary(t)
	for _, name := range protocol.Names() {
		t.Run(name, func(t *testing.T) {
			p, err := protocol.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			ports := startJaeger(t, binary, p)
			config := protocol.Config{
				Numbering: trace.New(99, 10), Seed: 4, Worker: 3, Timeout: 30 * time.Second,
				Load: spec.Load{SpansCount: 10, TagsCount: 4, Services: 3, TagValues: 50, ResourceAttributes: 2, TracesPerRequest: 2,
					Operations: 20, Shape: "tree", TagLength: 40, ErrorPercent: 20, Events: 2, Gzip: true},
			}
			const traces = 6
			startUS := time.Now().UnixMicro()
			if sent := sendAll(t, p, ports["${port."+p.Port+"}"], config, traces, startUS); sent != traces*11 {
				t.Fatalf("sent %d spans of %d", sent, traces*11)
			}
			for seq := range uint64(traces) {
				var want []trace.Span
				for index := seq * 11; index < (seq+1)*11; index++ {
					ref := trace.Ref{Worker: 3, Index: index}
					want = append(want, config.Content().Span(config.Numbering, ref, startUS+int64(seq*11)))
				}
				high, low := config.Numbering.TraceID(trace.Measured, 3, seq)
				got := readTrace(t, ports["${port.query}"], high, low)
				for deadline := time.Now().Add(5 * time.Second); p.UDP && len(got) < len(want) && time.Now().Before(deadline); {
					got = readTrace(t, ports["${port.query}"], high, low) // nobody says when a packet was taken in
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("trace %d differs (-generated +stored):\n%s", seq, diff)
				}
			}
		})
	}
}

func jaegerBinary(t *testing.T) string {
	t.Helper()
	cache, err := setup.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	pattern := filepath.Join(cache, "bin", "jaeger-2*-"+runtime.GOOS+"-"+runtime.GOARCH)
	if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
		return found[0]
	}
	return need.Programs(t, "jaeger")[0]
}

// startJaeger returns the addresses by their placeholders.
func startJaeger(t *testing.T, binary string, p protocol.Protocol) map[string]string {
	t.Helper()
	config, addrs := jaegerConfig(t, p)
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "--config", file)
	var log lines
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	t.Cleanup(func() { _ = command.Process.Kill(); <-ended })
	deadline := time.After(30 * time.Second)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if response, err := http.Get("http://" + addrs["${port.query}"] + "/api/services"); err == nil {
			response.Body.Close()
			return addrs
		}
		select {
		case <-ticker.C:
		case <-ended:
			t.Fatalf("Jaeger ended at its start:\n%s", log.String())
		case <-deadline:
			t.Fatalf("Jaeger's query API does not answer after 30 s:\n%s", log.String())
		}
	}
}

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func jaegerConfig(t *testing.T, p protocol.Protocol) ([]byte, map[string]string) {
	t.Helper()
	receivers := slices.Collect(func(yield func(string) bool) {
		for name := range p.ReceiverV2 {
			yield(name)
		}
	})
	text, err := yaml.Marshal(map[string]any{
		"service": map[string]any{
			"extensions": []string{"jaeger_storage", "jaeger_query"},
			"pipelines": map[string]any{"traces": map[string]any{
				"receivers": receivers, "exporters": []string{"jaeger_storage_exporter"}}},
			"telemetry": map[string]any{"metrics": map[string]any{"level": "none"}},
		},
		"extensions": map[string]any{
			"jaeger_storage": map[string]any{"backends": map[string]any{
				"store": map[string]any{"memory": map[string]any{"max_traces": 100_000}}}},
			"jaeger_query": map[string]any{"storage": map[string]any{"traces": "store"},
				"http": map[string]any{"endpoint": "${ip}:${port.query}"},
				"grpc": map[string]any{"endpoint": "${ip}:${port.query-grpc}"}},
		},
		"receivers": p.ReceiverV2,
		"exporters": map[string]any{"jaeger_storage_exporter": map[string]any{"trace_storage": "store"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	config, addrs := string(text), map[string]string{}
	for _, name := range []string{"${port." + p.Port + "}", "${port.query}", "${port.query-grpc}"} {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		addrs[name] = "127.0.0.1:" + port
		config = strings.ReplaceAll(config, name, port)
	}
	return []byte(strings.ReplaceAll(config, "${ip}", "127.0.0.1")), addrs
}

func sendAll(t *testing.T, p protocol.Protocol, addr string, config protocol.Config, traces uint64, startUS int64,
) (sent int) {
	t.Helper()
	var mu sync.Mutex
	config.Report = func(o record.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		if o.Class != record.Acked && !(p.UDP && o.Class == record.NoReply) {
			t.Errorf("outcome %+v", o)
			return
		}
		sent += int(o.Spans)
	}
	client, err := p.Open(addr, config)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(0); seq < traces; seq += 2 {
		client.Send(t.Context(), protocol.Work{Seq: seq, StartUS: startUS + int64(seq*11)})
	}
	client.Close(t.Context())
	return sent
}

// apiTrace is what Jaeger's query API answers.
type apiTrace struct {
	Data []struct {
		Spans []struct {
			TraceID, SpanID, OperationName, ProcessID string

			References          []struct{ RefType, TraceID, SpanID string }
			StartTime, Duration int64
			Tags                []apiTag
			Logs                []struct {
				Timestamp int64
				Fields    []apiTag
			}
		}
		Processes map[string]struct {
			ServiceName string
			Tags        []apiTag
		}
	}
}

type apiTag struct {
	Key, Type string
	Value     any
}

// readTrace asks for the raw trace: adjusters would hide duplicates. Spans come in index order.
func readTrace(t *testing.T, addr string, high, low uint64) []trace.Span {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	url := fmt.Sprintf("http://%s/api/traces/%016x%016x?raw=true", addr, high, low)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer apiTrace
	if response.StatusCode == http.StatusNotFound {
		return nil
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Data) != 1 {
		t.Fatalf("trace %x%x: %v: %.500s", high, low, err, body)
	}
	var spans []trace.Span
	for _, s := range answer.Data[0].Spans {
		process := answer.Data[0].Processes[s.ProcessID]
		span := trace.Span{
			ID:      trace.ID{High: number(t, s.TraceID[:16]), Low: number(t, s.TraceID[16:]), Span: number(t, s.SpanID)},
			Service: process.ServiceName, Operation: s.OperationName, StartUS: s.StartTime, DurationUS: s.Duration,
			Tags: tags(s.Tags, "tag-"), Resource: tags(process.Tags, "resource-"),
		}
		for _, tag := range s.Tags {
			if !strings.HasPrefix(tag.Key, "tag-") && tag.Key != "error" && tag.Key != "otel.status_code" {
				t.Errorf("tag %+v was never sent", tag)
			}
			span.Error = span.Error || tag.Key == "error" && tag.Value == true
		}
		for _, log := range s.Logs {
			for _, field := range log.Fields {
				span.Events = append(span.Events, trace.Event{TimeUS: log.Timestamp, Name: fmt.Sprint(field.Value)})
			}
		}
		if len(s.References) > 0 {
			span.Parent = number(t, s.References[0].SpanID)
		}
		spans = append(spans, span)
	}
	slices.SortFunc(spans, func(a, b trace.Span) int { return int(int64(a.ID.Span - b.ID.Span)) })
	return spans
}

// tags keeps those whose key begins so; jaeger-client-go adds process tags of its own.
func tags(all []apiTag, prefix string) (kept []trace.Tag) {
	for _, tag := range all {
		if strings.HasPrefix(tag.Key, prefix) {
			kept = append(kept, trace.Tag{Key: tag.Key, Value: fmt.Sprint(tag.Value)})
		}
	}
	return kept
}

func number(t *testing.T, hex string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
