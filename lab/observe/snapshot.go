package observe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	scrapeTimeout = 10 * time.Second
	pageLimit     = 32 << 20 // bytes of a metrics page
)

// Snapshot is one read of a metrics page, kept as it was sent.
type Snapshot struct {
	At   time.Time // when the answer was complete
	Addr string
	Raw  []byte

	families map[string]*dto.MetricFamily
}

// Scrape reads /metrics at host:port.
func Scrape(ctx context.Context, addr string) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	url := "http://" + addr + "/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read metrics of %s: %w", addr, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, pageLimit))
	if err != nil {
		return Snapshot{}, fmt.Errorf("read metrics: %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return Snapshot{}, fmt.Errorf("read metrics: %s answered %s: %.200s", url, response.Status, raw)
	}
	s, err := Parse(raw, time.Now())
	if err != nil {
		return Snapshot{}, fmt.Errorf("read metrics: %s: %w", url, err)
	}
	s.Addr = addr
	return s, nil
}

// Parse decodes a page in Prometheus's text format.
func Parse(raw []byte, at time.Time) (Snapshot, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return Snapshot{}, fmt.Errorf("not a page in Prometheus's text format: %w", err)
	}
	return Snapshot{At: at, Raw: raw, families: families}, nil
}

// generation tells v1 from v2 by the page itself; v2 when it shows neither.
func (s Snapshot) generation() generation {
	for name := range s.families {
		if strings.HasPrefix(name, "jaeger_collector_") {
			return v1
		}
	}
	return v2
}

// find returns the family that a spelling names and the name found, "" when there is none.
func (s Snapshot) find(sp spelling) (*dto.MetricFamily, string) {
	for _, suffix := range suffixes {
		if family := s.families[sp.base+suffix]; family != nil {
			return family, sp.base + suffix
		}
	}
	return nil, ""
}

// read sums a spelling over all series that carry its label. Without such a series there is
// nothing to read: ok is false.
func (s Snapshot) read(sp spelling) (total float64, name string, ok bool) {
	family, name := s.find(sp)
	for _, m := range family.GetMetric() {
		if carries(m, sp.label) {
			v, has := valueOf(m, sp.part)
			total += v
			ok = ok || has
		}
	}
	return total, name, ok
}

func carries(m *dto.Metric, label string) bool {
	if label == "" {
		return true
	}
	name, want, _ := strings.Cut(label, "=")
	return labelOf(m, name) == want
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func valueOf(m *dto.Metric, p part) (float64, bool) {
	switch {
	case p == sum && m.Histogram != nil:
		return m.Histogram.GetSampleSum(), true
	case p == count && m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount()), true
	case p == sum && m.Summary != nil:
		return m.Summary.GetSampleSum(), true
	case p == count && m.Summary != nil:
		return float64(m.Summary.GetSampleCount()), true
	case p == value && m.Counter != nil:
		return m.Counter.GetValue(), true
	case p == value && m.Gauge != nil:
		return m.Gauge.GetValue(), true
	case p == value && m.Untyped != nil:
		return m.Untyped.GetValue(), true
	}
	return 0, false
}

// readBy sums a spelling for each value of a label.
func (s Snapshot) readBy(sp spelling, label string) map[string]float64 {
	family, _ := s.find(sp)
	totals := map[string]float64{}
	for _, m := range family.GetMetric() {
		if v, ok := valueOf(m, sp.part); ok && carries(m, sp.label) && labelOf(m, label) != "" {
			totals[labelOf(m, label)] += v
		}
	}
	return totals
}

// best returns the first of several spellings that the page has.
func (s Snapshot) best(spellings []spelling) (spelling, bool) {
	for _, sp := range spellings {
		if _, _, ok := s.read(sp); ok {
			return sp, true
		}
	}
	return spelling{}, false
}

// Saved is how many spans the collector has saved since it started, by the best counter it has,
// and that counter's name with its label. ok is false when the page has none of them: a
// collector of version 2 shows none before the first span.
func (s Snapshot) Saved() (n int64, metric string, ok bool) {
	sp, ok := s.best(savedSources)
	if !ok {
		return 0, "", false
	}
	total, name, _ := s.read(sp)
	n, ok = whole(total)
	return n, withLabel(name, sp.label), ok
}

// SavedSince is how many spans were saved since an earlier snapshot of the same collector, by the
// best counter of the later one; a counter that the earlier one did not have yet was at 0.
func (s Snapshot) SavedSince(first Snapshot) (n int64, metric string, ok bool) {
	sp, ok := s.best(savedSources)
	if !ok {
		return 0, "", false
	}
	last, name, _ := s.read(sp)
	before, _, _ := first.read(sp)
	n, ok = whole(last - before)
	return n, withLabel(name, sp.label), ok && n >= 0
}

// ArrivedSince is how many spans a black hole has taken since an earlier snapshot; ok is false for
// anything else.
func (s Snapshot) ArrivedSince(first Snapshot) (n int64, ok bool) {
	last, _, ok := s.read(arrived)
	before, _, _ := first.read(arrived)
	if !ok {
		return 0, false
	}
	n, ok = whole(last - before)
	return n, ok && n >= 0
}

// QueueSize is how many spans wait in the collector's queue; ok is false when no metric says.
// v1 shows only the queue of thrift and gRPC, never that of OTLP.
func (s Snapshot) QueueSize() (n int64, ok bool) {
	m := metricNamed("queue_size")
	sp, ok := s.best(m.spellings(s.generation()))
	if !ok {
		return 0, false
	}
	total, _, _ := s.read(sp)
	return whole(total)
}

// QueueCapacity is how many spans the collector's queue holds; ok is false when no metric says.
func (s Snapshot) QueueCapacity() (n int64, ok bool) {
	m := metricNamed("queue_capacity")
	sp, ok := s.best(m.spellings(s.generation()))
	if !ok {
		return 0, false
	}
	total, _, _ := s.read(sp)
	return whole(total)
}

// WriteStatements is how many CQL inserts the collector has made since it started, by table; ok
// is false when it has no such counter (badger, memory).
func (s Snapshot) WriteStatements() (total int64, byTable map[string]int64, ok bool) {
	sp, ok := s.best(storage("inserts"))
	if !ok {
		return 0, nil, false
	}
	byTable = map[string]int64{}
	tables := s.readBy(sp, "table")
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		n, _ := whole(tables[table])
		byTable[table] = n
		total += n
	}
	return total, byTable, true
}

// WriteErrors is how many CQL statements of the collector failed since it started; ok is false
// when it writes none (badger, memory). The counter appears with its first error; until then it is 0.
func (s Snapshot) WriteErrors() (n int64, ok bool) {
	if _, _, ok := s.WriteStatements(); !ok {
		return 0, false
	}
	sp, ok := s.best(storage("errors"))
	if !ok {
		return 0, true
	}
	total, _, _ := s.read(sp)
	return whole(total)
}

// WriteSeconds is how long all CQL statements of the collector that succeeded took together since it
// started; ok is false when it makes none (badger, memory).
func (s Snapshot) WriteSeconds() (seconds float64, ok bool) {
	sp, ok := s.best(only(sum, writeLatency))
	if !ok {
		return 0, false
	}
	seconds, _, _ = s.read(sp)
	return seconds, true
}

// whole turns a sample into a count; what is no finite number of this size is none.
func whole(v float64) (int64, bool) {
	if math.IsNaN(v) || math.Abs(v) > 1<<53 {
		return 0, false
	}
	return int64(math.Round(v)), true
}

func withLabel(name, label string) string {
	if label == "" {
		return name
	}
	key, value, _ := strings.Cut(label, "=")
	return fmt.Sprintf("%s{%s=%q}", name, key, value)
}

func metricNamed(name string) metric {
	i := slices.IndexFunc(metrics, func(m metric) bool { return m.name == name })
	return metrics[i]
}
