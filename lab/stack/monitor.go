package stack

import (
	"context"
	"fmt"
	"time"

	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// Target is one page that Prometheus scrapes.
type Target struct {
	Job  string // collector, load, node-exporter, scylla
	Addr string // host:port as other nodes reach it
	Path string // "" = /metrics
}

// MonitorAsk says what to watch.
type MonitorAsk struct {
	Name     string        // of the Prometheus node; its exporter is NAME-exporter
	Targets  []Target      // beside node-exporter and Prometheus itself
	Limits   spec.Limits   // of each of the two
	Window   time.Duration // decides the scrape interval: a tenth of it, at most a second
	Exporter node.Node     // a node-exporter that runs already; nil = start one
}

// Monitor is a running Prometheus with its node-exporter. What it holds is gone with it: figures
// of a run come from the first and the last raw sample (Raw, Series.Delta) or from direct reads,
// never from rate() or increase(), which extrapolate; those are for charts.
type Monitor struct {
	Prometheus node.Node
	Exporter   node.Node
	Programs   []record.Program
	Notes      []string      // what differs from the ideal, for the record's warnings
	Addr       string        // host:port of Prometheus as the lab's own process reaches it
	Interval   time.Duration // between scrapes

	targets []Target
}

const (
	monitorReadyWithin  = 60 * time.Second
	exporterReadyWithin = 30 * time.Second
	targetsUpWithin     = 30 * time.Second
	lastScrapeWithin    = 15 * time.Second
	jobExporter         = "node-exporter"
	jobPrometheus       = "prometheus"
)

// StartMonitor starts node-exporter and Prometheus and returns when both answer. Whether the
// targets are up is for WaitTargets to say. On an error nothing it started runs any more.
func StartMonitor(ctx context.Context, env Env, ask MonitorAsk) (*Monitor, error) {
	m := &Monitor{Exporter: ask.Exporter, Interval: scrapeInterval(ask.Window)}
	if m.Exporter == nil {
		exporter, err := startExporter(ctx, env, ask)
		if err != nil {
			return nil, err
		}
		m.Exporter = exporter
	}
	m.Programs = append(m.Programs, programRecord(programExporter, m.Exporter.Program().Binary))
	if env.Runtime.Name() == spec.Docker {
		// The runtime has no mounts, and needs none: /proc in a container shows the kernel's
		// CPU, memory and load. Only disks and network devices are the container's own.
		m.Notes = append(m.Notes, "node-exporter runs in a container without the host's file system: "+
			"its CPU, memory and load figures are of the Docker host, its file systems and network of its container")
	}
	m.targets = append([]Target{{Job: jobExporter, Addr: m.Exporter.PeerAddr("http")}}, ask.Targets...)
	if err := m.startPrometheus(ctx, env, ask); err != nil {
		if ask.Exporter == nil {
			stop(m.Exporter)
		}
		return nil, err
	}
	return m, nil
}

// scrapeInterval keeps at least ten samples in a window.
func scrapeInterval(window time.Duration) time.Duration {
	if window <= 0 {
		return time.Second
	}
	return max(100*time.Millisecond, min(time.Second, window/10))
}

func startExporter(ctx context.Context, env Env, ask MonitorAsk) (node.Node, error) {
	program, err := exporterProgram(env, ask)
	if err != nil {
		return nil, fmt.Errorf("start node-exporter: %w", err)
	}
	n, err := startReady(ctx, env, program, "node-exporter", "/", exporterReadyWithin)
	if err != nil {
		return nil, fmt.Errorf("start node-exporter: %w", err)
	}
	return n, nil
}

func exporterProgram(env Env, ask MonitorAsk) (node.Program, error) {
	binary, err := env.Binary(programExporter)
	return node.Program{
		Name: ask.Name + "-exporter", Host: spec.MonitorHost, Binary: binary, Limits: ask.Limits,
		Args:  []string{"--web.listen-address=${ip}:${port.http}", "--log.level=warn"},
		Ports: []node.Port{{Name: "http", Number: 9100}},
	}, err
}

func (m *Monitor) startPrometheus(ctx context.Context, env Env, ask MonitorAsk) error {
	program, err := prometheusProgram(env, ask, m.targets, m.Interval)
	if err != nil {
		return fmt.Errorf("start Prometheus: %w", err)
	}
	n, err := startReady(ctx, env, program, "Prometheus", "/-/ready", monitorReadyWithin)
	if err != nil {
		return fmt.Errorf("start Prometheus: %w", err)
	}
	m.Prometheus, m.Addr = n, n.Addr("http")
	m.Programs = append(m.Programs, programRecord(programPrometheus, program.Binary))
	return nil
}

func prometheusProgram(env Env, ask MonitorAsk, targets []Target, every time.Duration) (node.Program, error) {
	binary, err := env.Binary(programPrometheus)
	if err != nil {
		return node.Program{}, err
	}
	config, err := prometheusConfig(targets, every)
	if err != nil {
		return node.Program{}, err
	}
	data := "${dir}/data"
	if env.Runtime.Name() == spec.Docker {
		data = "/prometheus" // the official image's own volume, writable for the user it runs as
	}
	return node.Program{
		Name: ask.Name, Host: spec.MonitorHost, Binary: binary, Limits: ask.Limits,
		Args: []string{
			"--config.file=${dir}/prometheus.yml", "--storage.tsdb.path=" + data,
			"--web.listen-address=${ip}:${port.http}", "--web.enable-otlp-receiver", "--log.level=warn",
			"--scrape.discovery-reload-interval=200ms", // by default the first scrape waits for 5 s
		},
		Files: []node.File{{Name: "prometheus.yml", Data: config}},
		Ports: []node.Port{{Name: "http", Number: 9090}},
	}, nil
}

func startReady(ctx context.Context, env Env, program node.Program, name, path string,
	within time.Duration) (node.Node, error) {
	n, err := env.Runtime.Start(ctx, program)
	if err != nil {
		return nil, err
	}
	err = node.Wait(ctx, name+" to answer", within, n, func(ctx context.Context) error {
		status, body, err := get(ctx, "http://"+n.Addr("http")+path)
		if err == nil && status != 200 {
			err = fmt.Errorf("it answered %d: %.200s", status, body)
		}
		return err
	})
	if err != nil {
		stop(n)
		return nil, err
	}
	return n, nil
}

// prometheusConfig renders the scrape configuration.
func prometheusConfig(targets []Target, interval time.Duration) ([]byte, error) {
	every := fmt.Sprintf("%dms", interval.Milliseconds())
	jobs := []any{scrapeJob(jobPrometheus, "/metrics", []string{"127.0.0.1:${port.http}"})}
	var order []string
	byJob := map[string][]string{}
	paths := map[string]string{}
	for _, target := range targets {
		if _, seen := byJob[target.Job]; !seen {
			order = append(order, target.Job)
		}
		byJob[target.Job] = append(byJob[target.Job], target.Addr)
		paths[target.Job] = target.Path
	}
	for _, job := range order {
		path := paths[job]
		if path == "" {
			path = "/metrics"
		}
		jobs = append(jobs, scrapeJob(job, path, byJob[job]))
	}
	config, err := yaml.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": "1m"},
		"scrape_configs": jobs,
		// Per-node figures are pushed by the lab's own process, whose clock is the host's.
		"storage": map[string]any{"tsdb": map[string]any{"out_of_order_time_window": "1m"}},
	})
	if err != nil {
		return nil, fmt.Errorf("render its configuration: %w", err)
	}
	return config, nil
}

func scrapeJob(name, path string, addrs []string) map[string]any {
	return map[string]any{
		"job_name":     name,
		"metrics_path": path,
		// Prometheus 3 refuses a page without a known content type; older exporters send none.
		"fallback_scrape_protocol": "PrometheusText0.0.4",
		"static_configs":           []any{map[string]any{"targets": addrs}},
	}
}

// Stop ends Prometheus and node-exporter.
func (m *Monitor) Stop(ctx context.Context) error {
	if err := m.Prometheus.Stop(ctx); err != nil {
		return fmt.Errorf("stop Prometheus: %w", err)
	}
	if err := m.Exporter.Stop(ctx); err != nil {
		return fmt.Errorf("stop node-exporter: %w", err)
	}
	return nil
}
