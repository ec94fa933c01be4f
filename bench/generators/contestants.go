package generators

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"jaegerlab/lab/load"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// contestant is one generator.
type contestant struct {
	name  string
	port  string // of a collector, that it sends to: otlp-grpc or otlp-http
	notes []string
	// start starts it for a black hole at addr; it sends for at least so long.
	start func(ctx context.Context, addr string, long time.Duration) (*running, error)
}

// running is a started generator.
type running struct {
	pid  int
	done chan struct{}
	exit error
	log  *tailBuffer
	stop func()
	end  func() (figures map[string]float64, err error) // ends it, and what it said itself
}

func (r *running) tail() string { return strings.TrimSpace(r.log.String()) }

// buildPeers builds the peers that have rows, and returns their paths and versions by name.
func buildPeers(ctx context.Context, all []contestant, say setup.Say) (paths, versions map[string]string, err error) {
	paths, versions = map[string]string{}, map[string]string{}
	for _, peer := range []string{setup.Tracegen, setup.Telemetrygen} {
		if !slices.ContainsFunc(all, func(c contestant) bool { return strings.HasPrefix(c.name, peer+"/") }) {
			continue
		}
		if paths[peer], versions[peer], err = setup.Peer(ctx, peer, say); err != nil {
			return nil, nil, err
		}
	}
	return paths, versions, nil
}

// contestants lists everyone in the order of the table; peers are the paths of the others' programs.
func contestants(self string, peers map[string]string) (all []contestant) {
	tracegen, telemetrygen := peers[setup.Tracegen], peers[setup.Telemetrygen]
	for _, traces := range []int{1, 10, 100} {
		all = append(all, labNode(self, "otlp-grpc", traces))
	}
	all = append(all, bare(self, "otlp-grpc", 100, true), bare(self, "otlp-grpc", 100, false))
	all = append(all, tracegenOver(tracegen, "otlp-grpc", 1, nil), tracegenOver(tracegen, "otlp-grpc", 4, largeBatches))
	all = append(all, telemetrygenGRPC(telemetrygen, workers), telemetrygenGRPC(telemetrygen, 1))
	all = append(all, labNode(self, "otlp-http", 100))
	all = append(all, tracegenOver(tracegen, "otlp-http", 1, nil), tracegenOver(tracegen, "otlp-http", 4, largeBatches))
	return all
}

// Load is the work of one generator of the lab.
func Load(traces int) spec.Load {
	return spec.Load{Concurrency: workers, SpansCount: children, TagsCount: tags, DurationS: 1, Services: 1, TagValues: 1,
		RequestTimeoutS: 30, TracesPerRequest: traces, MaxRequestSpans: traces * width}
}

// labNode is the whole load node, with its outcomes, histograms and metrics, as every run uses it.
func labNode(self, client string, traces int) contestant {
	name := fmt.Sprintf("lab/%s/traces=%d", client, traces)
	start := func(ctx context.Context, addr string, long time.Duration) (*running, error) {
		control, err := freePort()
		if err != nil {
			return nil, err
		}
		r, err := spawn(ctx, nil, self, "load", "--listen", control)
		if err != nil {
			return nil, err
		}
		remote := load.Remote{Addr: control}
		deadline := time.Now().Add(30 * time.Second)
		for remote.Healthy(ctx) != nil {
			if err := pause(ctx, 10*time.Millisecond, r); err != nil || time.Now().After(deadline) {
				r.stop()
				return nil, fmt.Errorf("wait for the load node at %s: %w; its output ends: %s", control, err, r.tail())
			}
		}
		job := load.Job{Numbering: trace.New(1, children), Load: Load(traces), Seed: 1, Client: client, Target: addr}
		job.Load.DurationS = int(long/time.Second) + 30
		if err := remote.Start(ctx, job); err != nil {
			r.stop()
			return nil, err
		}
		r.end = func() (map[string]float64, error) {
			defer r.stop()
			p, err := remote.Progress(context.WithoutCancel(ctx))
			if err == nil && (p.Refused > 0 || p.Unanswered > 0) {
				err = fmt.Errorf("%d spans refused, %d unanswered by the black hole", p.Refused, p.Unanswered)
			}
			return nil, err
		}
		return r, nil
	}
	return contestant{name: name, port: client, start: start}
}

// bare sends without a load node around it: patched, or the same bytes again and again.
func bare(self, client string, traces int, patch bool) contestant {
	name := fmt.Sprintf("ceiling/%s/traces=%d", client, traces)
	if patch {
		name = fmt.Sprintf("bare/%s/traces=%d", client, traces)
	}
	return contestant{name: name, port: client, start: func(ctx context.Context, addr string, _ time.Duration) (*running, error) {
		r, err := spawn(ctx, nil, self, "bench-send", "--client", client, "--target", addr,
			fmt.Sprintf("--traces=%d", traces), fmt.Sprintf("--patch=%v", patch))
		if err != nil {
			return nil, err
		}
		r.end = func() (map[string]float64, error) {
			r.stop()
			var said Figures
			if err := json.Unmarshal([]byte(r.tail()), &said); err != nil {
				return nil, fmt.Errorf("read its figures from %q: %w", r.tail(), err)
			}
			return map[string]float64{allocs: said.AllocsPerRequest}, nil
		}
		return r, nil
	}}
}

// largeBatches let the SDK's batch processor send up to 2,048 spans at once (by default 512), and
// collect garbage less often. With four services they were the fastest of eight settings tried.
// tracegen blocks when its queue is full, so it loses nothing.
var largeBatches = []string{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=2048", "OTEL_BSP_MAX_QUEUE_SIZE=20480", "GOGC=400"}

// tracegenOver is tracegen with so many services: it makes one batch processor and one exporter
// for each, and sends one request at a time with each.
func tracegenOver(path, exporter string, services int, env []string) contestant {
	flags := func(long time.Duration) []string {
		return []string{"-trace-exporter", exporter, "-workers", fmt.Sprint(workers), "-spans", fmt.Sprint(children),
			"-attrs", fmt.Sprint(tags), "-pause", "0", "-services", fmt.Sprint(services), "-duration", long.String()}
	}
	return contestant{name: fmt.Sprintf("tracegen/%s/services=%d", exporter, services), port: exporter,
		notes: noteOf(env, "tracegen", flags(time.Minute)),
		start: func(ctx context.Context, addr string, long time.Duration) (*running, error) {
			env := append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + addr}, env...)
			return spawn(ctx, env, path, flags(long+time.Minute)...)
		}}
}

func noteOf(env []string, name string, flags []string) []string {
	return []string{strings.Join(slices.Concat(env, []string{name}, flags), " ")}
}

// telemetrygenGRPC has a row with one worker because that is its best: its workers never wait, a
// full queue drops their spans, and many of them leave the goroutine that sends next to no CPU.
func telemetrygenGRPC(path string, workers int) contestant {
	flags := func(addr string, long time.Duration) []string {
		return []string{"traces", "--otlp-insecure", "--otlp-endpoint", addr, "--workers", fmt.Sprint(workers),
			"--rate", "0", "--duration", long.String(), "--child-spans", fmt.Sprint(children)}
	}
	var attributes []string
	for tag := range tags {
		attributes = append(attributes, "--telemetry-attributes", fmt.Sprintf(`tag-%d="value-%d"`, tag, tag))
	}
	shown := slices.Concat(flags("ADDR", time.Minute), attributes[:2], []string{"... and so on, one for each tag"})
	return contestant{name: fmt.Sprintf("telemetrygen/otlp-grpc/workers=%d", workers), port: "otlp-grpc",
		notes: noteOf(nil, "telemetrygen", shown),
		start: func(ctx context.Context, addr string, long time.Duration) (*running, error) {
			return spawn(ctx, nil, path, append(flags(addr, long+time.Minute), attributes...)...)
		}}
}

// spawn starts a program whose output is kept, and ends it when asked: first politely.
func spawn(ctx context.Context, env []string, path string, args ...string) (*running, error) {
	command := exec.CommandContext(ctx, path, args...)
	command.Env = append(os.Environ(), env...)
	r := &running{done: make(chan struct{}), log: &tailBuffer{}}
	command.Stdout, command.Stderr = r.log, r.log
	command.WaitDelay = time.Second
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	r.pid = command.Process.Pid
	go func() { r.exit = command.Wait(); close(r.done) }()
	r.stop = func() {
		_ = command.Process.Signal(os.Interrupt)
		select {
		case <-r.done:
		case <-time.After(5 * time.Second):
			_ = command.Process.Kill()
			<-r.done
		}
	}
	r.end = func() (map[string]float64, error) { r.stop(); return nil, nil }
	return r, nil
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// tailBuffer keeps the end of an output.
type tailBuffer struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

const tailBytes = 4 << 10

// Write implements io.Writer.
func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes.Write(p)
	if over := t.bytes.Len() - tailBytes; over > 0 {
		t.bytes.Next(over)
	}
	return len(p), nil
}

// String is the end of the output.
func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes.String()
}
