package sink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// What the program shows at /metrics.
const (
	MetricSpans    = "jaegerlab_sink_spans_total"
	MetricRequests = "jaegerlab_sink_requests_total"
	MetricBytes    = "jaegerlab_sink_bytes_total"
)

const headerWithin = 10 * time.Second // of a request for metrics

// Ask is one black hole to serve.
type Ask struct {
	Port    string // name of the collector's port it stands for: otlp-grpc, otlp-http, thrift-http, thrift-udp
	Listen  string // host:port of that
	Metrics string // host:port of /metrics
}

// Serve is the program of a black hole that stands where a collector would, until ctx ends: it
// takes every request, counts its spans and keeps nothing.
func Serve(ctx context.Context, ask Ask) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ask.Metrics)
	if err != nil {
		return fmt.Errorf("serve a black hole: listen on %s for /metrics: %w", ask.Metrics, err)
	}
	s := &Sink{Listen: ask.Listen, Count: true}
	if err := s.Open(ask.Port); err != nil {
		return errors.Join(err, listener.Close())
	}
	defer s.Close()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry(), promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerWithin}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the black hole's metrics on %s: %w", ask.Metrics, err)
	case <-ctx.Done():
	}
	_ = server.Close()
	<-served
	return nil
}

func (s *Sink) registry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	for _, one := range []struct {
		name, help string
		read       func() int64
	}{
		{MetricSpans, "Spans in requests that were read in full.", s.Spans},
		{MetricRequests, "Requests that were read in full.", s.Requests},
		{MetricBytes, "Bytes of their bodies.", s.Bytes},
	} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: one.name, Help: one.help},
			func() float64 { return float64(one.read()) }))
	}
	return registry
}
