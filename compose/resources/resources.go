// Package resources is the small service of a compose stack that shows Prometheus what only the
// daemon and the database know: CPU, throttling and memory of each container of the stack, and
// Cassandra's virtual tables. Its metrics have the names that a run of the lab pushes, so the same
// dashboards show both. It reads, and never changes anything.
package resources

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/node"
	"jaegerlab/lab/observe"
)

// Ask says what to watch.
type Ask struct {
	Listen    string   // address of /metrics
	Project   string   // of Docker Compose: its containers are read
	HostLabel string   // label that holds the original host a container stands on; containers without it are left out
	Cassandra []string // host:port of CQL; may be empty
	Keyspace  string   // whose tables are shown
}

const (
	containersEvery = time.Second
	viewsEvery      = 5 * time.Second // virtual tables cost the database a little
	readWithin      = 4 * time.Second
	forgottenAfter  = 10 * time.Second // what was not read for so long is not shown any more
	shutdownWithin  = 2 * time.Second
	projectLabel    = "com.docker.compose.project"
	serviceLabel    = "com.docker.compose.service"
)

// reader reads one source; tests give another one.
type reader func(ctx context.Context) ([]sample, error)

// sample is one value with its labels.
type sample struct {
	name    string
	labels  map[string]string
	value   float64
	counter bool
}

// Serve reads and shows until ctx ends. It fails when it can't listen or finds no daemon; sources
// that fail later are logged, once for each change, and their series end.
func Serve(ctx context.Context, ask Ask, log *slog.Logger) error {
	daemon, err := node.OpenContainers(ctx)
	if err != nil {
		return fmt.Errorf("watch the stack's containers: %w; mount the daemon's socket at /var/run/docker.sock", err)
	}
	defer daemon.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ask.Listen)
	if err != nil {
		return fmt.Errorf("watch the stack's containers: listen on %s: %w", ask.Listen, err)
	}
	s := newShow(log)
	var loops sync.WaitGroup
	loops.Go(func() { s.follow(ctx, "containers", containersEvery, containerReader(daemon, ask)) })
	for _, addr := range ask.Cassandra {
		views := &viewReader{addr: addr, keyspace: ask.Keyspace}
		loops.Go(func() {
			defer views.close()
			s.follow(ctx, addr, viewsEvery, views.read)
		})
	}
	err = s.serve(ctx, listener)
	loops.Wait()
	return err
}

// show holds the last read of each source.
type show struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	last map[string]read
}

type read struct {
	at      time.Time
	samples []sample
	problem string
}

func newShow(log *slog.Logger) *show { return &show{log: log, now: time.Now, last: map[string]read{}} }

func (s *show) serve(ctx context.Context, listener net.Listener) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(s); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readWithin}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve metrics on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		_ = server.Close() // a request that hangs must not hold the end up
	}
	<-served
	return nil
}

func (s *show) follow(ctx context.Context, source string, every time.Duration, from reader) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		s.take(ctx, source, from)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// take reads a source once. A failed read leaves the samples of the last good one until they are
// too old to be true.
func (s *show) take(ctx context.Context, source string, from reader) {
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	samples, err := from(bounded)
	if ctx.Err() != nil {
		return
	}
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	s.mu.Lock()
	before := s.last[source]
	next := before
	next.problem = problem
	if len(samples) > 0 {
		next.at, next.samples = s.now(), samples
	}
	s.last[source] = next
	s.mu.Unlock()
	switch {
	case problem != "" && before.problem == "":
		s.log.Warn("can't read", "source", source, "cause", problem)
	case problem == "" && before.problem != "":
		s.log.Info("read again", "source", source)
	}
}

// Describe implements prometheus.Collector: names and labels are not known beforehand.
func (s *show) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *show) Collect(metrics chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, source := range slices.Sorted(maps.Keys(s.last)) {
		one := s.last[source]
		if s.now().Sub(one.at) > forgottenAfter {
			continue
		}
		for _, sample := range one.samples {
			names := slices.Sorted(maps.Keys(sample.labels))
			values := make([]string, 0, len(names))
			for _, name := range names {
				values = append(values, sample.labels[name])
			}
			kind := prometheus.GaugeValue
			if sample.counter {
				kind = prometheus.CounterValue
			}
			metrics <- prometheus.MustNewConstMetric(prometheus.NewDesc(sample.name, help[sample.name], names, nil),
				kind, sample.value, values...)
		}
	}
}

// help is one line for each metric.
var help = map[string]string{
	observe.NodeCPU:       "CPU time of a node since its start, as the daemon says.",
	observe.NodeThrottled: "Time that a node was held at its CPU quota, since its start.",
	observe.NodeMemory:    "Memory in use by a node, without page cache that the kernel can drop.",
	backend.ViewActive:    "Tasks at work in a thread pool of Cassandra.",
	backend.ViewPending:   "Tasks that wait in a thread pool of Cassandra.",
	backend.ViewCompleted: "Tasks that a thread pool of Cassandra has done.",
	backend.ViewWrites:    "Rows written on this node, by table.",
	backend.ViewWriteTime: "Time of a local write as Cassandra's own histogram says.",
	backend.ViewDisk:      "Space of a table's files, in whole MiB.",
}

// containerReader reads every container of the project. What the daemon can't tell is left out.
func containerReader(daemon *node.Containers, ask Ask) reader {
	return func(ctx context.Context) ([]sample, error) {
		found, err := daemon.Read(ctx, projectLabel+"="+ask.Project, ask.HostLabel)
		var samples []sample
		for _, one := range found {
			samples = append(samples, usageSamples(one, ask.HostLabel)...)
		}
		return samples, err
	}
}

func usageSamples(c node.OtherContainer, hostLabel string) []sample {
	name := c.Labels[serviceLabel]
	if name == "" {
		name = strings.TrimPrefix(c.Name, "/")
	}
	labels := map[string]string{"node": name, "host": c.Labels[hostLabel]}
	var samples []sample
	if v := c.Usage.CPUSeconds; v != nil {
		samples = append(samples, sample{observe.NodeCPU, labels, *v, true})
	}
	if v := c.Usage.ThrottledS; v != nil {
		samples = append(samples, sample{observe.NodeThrottled, labels, *v, true})
	}
	if v := c.Usage.MemoryBytes; v != nil {
		samples = append(samples, sample{observe.NodeMemory, labels, float64(*v), false})
	}
	return samples
}

// viewReader keeps one connection to a node, and makes another after it failed.
type viewReader struct {
	addr, keyspace string
	views          *backend.Views
}

func (r *viewReader) read(ctx context.Context) ([]sample, error) {
	if r.views == nil {
		host, port, err := net.SplitHostPort(r.addr)
		if err != nil {
			return nil, fmt.Errorf("read virtual tables of %q: %w; accepted: host:port", r.addr, err)
		}
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host) // the driver is held to one address
		if err != nil {
			return nil, fmt.Errorf("read virtual tables of %s: %w", r.addr, err)
		}
		if r.views, err = backend.OpenViews(ctx, net.JoinHostPort(ips[0].Unmap().String(), port)); err != nil {
			return nil, err
		}
	}
	found, err := r.views.Read(ctx, r.keyspace)
	if err != nil {
		r.close()
		return nil, fmt.Errorf("%s: %w", r.addr, err)
	}
	host, _, _ := strings.Cut(r.addr, ":")
	samples := make([]sample, 0, len(found))
	for _, one := range found {
		labels := map[string]string{"node": host}
		maps.Copy(labels, one.Labels)
		samples = append(samples, sample{one.Name, labels, one.Value, one.Counter})
	}
	return samples, nil
}

func (r *viewReader) close() {
	if r.views != nil {
		r.views.Close()
		r.views = nil
	}
}
