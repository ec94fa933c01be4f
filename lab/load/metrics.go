package load

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// Names of the load node's metrics, each with the labels client and phase (measured, warmup).
const (
	MetricGenerated  = "jaegerlab_load_spans_generated_total"
	MetricAcked      = "jaegerlab_load_spans_acked_total"
	MetricRefused    = "jaegerlab_load_spans_refused_total"
	MetricUnanswered = "jaegerlab_load_spans_unanswered_total"
	MetricLatency    = "jaegerlab_load_batch_latency_seconds" // histogram, buckets double
)

// metrics is what the load node shows Prometheus. Counters run on over rounds; the record's
// figures come from the outcomes, these are for a look while it runs.
type metrics struct {
	registry *prometheus.Registry
	spans    map[record.Class]*prometheus.CounterVec
	made     *prometheus.CounterVec
	latency  *prometheus.HistogramVec
}

func newMetrics() *metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"client", "phase"})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		made:     counter(MetricGenerated, "Spans generated, sent or not."),
		spans: map[record.Class]*prometheus.CounterVec{
			record.Acked: counter(MetricAcked,
				"Spans that the collector took; not yet stored."),
			record.Refused: counter(MetricRefused,
				"Spans that the collector refused, or that never reached it."),
			record.Unanswered: counter(MetricUnanswered,
				"Spans that were sent and have no answer."),
		},
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    MetricLatency,
			Help:    "From sending a request to its answer, retries included; answered requests only.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18), // 0.5 ms to 65 s
		}, []string{"client", "phase"}),
	}
	m.registry.MustRegister(m.made, m.latency)
	for _, c := range m.spans {
		m.registry.MustRegister(c)
	}
	return m
}

// series are the metrics of one client and phase.
type series struct {
	made    prometheus.Counter
	latency prometheus.Observer
	spans   map[record.Class]prometheus.Counter
}

// of returns the series of a client; from then on they are shown, at zero.
func (m *metrics) of(client string) (all [phases]series) {
	for _, phase := range []trace.Phase{trace.Measured, trace.Warmup} {
		name := phaseName(phase)
		all[phase] = series{
			made: m.made.WithLabelValues(client, name), latency: m.latency.WithLabelValues(client, name),
			spans: map[record.Class]prometheus.Counter{},
		}
		for class, c := range m.spans {
			all[phase].spans[class] = c.WithLabelValues(client, name)
		}
	}
	return all
}

func (s *series) outcome(o record.Outcome, answered bool) {
	if c, ok := s.spans[o.Class]; ok {
		c.Add(float64(o.Spans))
	}
	if answered {
		s.latency.Observe(time.Duration(o.Answered - o.Sent).Seconds())
	}
}

func phaseName(p trace.Phase) string {
	if p == trace.Warmup {
		return "warmup"
	}
	return "measured"
}
