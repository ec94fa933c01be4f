package observe

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"jaegerlab/lab/node"
)

// SeriesName is the file of the per-second series in a run's folder.
const SeriesName = "series.csv.gz"

// Point is one value of a series at one moment.
type Point struct {
	At     time.Time
	Node   string
	Metric string // cpu, throttled, memory, saved, queue_size, write_latency_sum, answers, ...; counters run since the node's start
	Unit   string // s, bytes, spans
	Value  float64
}

// SamplerAsk says what to sample.
type SamplerAsk struct {
	Nodes []node.Node
	// Counters reads the collector's counters; Pulse.Counters makes it. May be nil.
	Counters func(context.Context) ([]Point, error)
	// Progress reads the load node's own figures; may be nil.
	Progress func(context.Context) ([]Point, error)
	// Pulse asks the database nodes whether they answer; may be nil.
	Pulse *Pulse
	Dir   string        // folder of the run
	Every time.Duration // 0 = a second
	Push  *Pusher       // to Prometheus; nil = not pushed
}

// Sampler reads every node once a second from StartSampler to Close. Reads run beside each
// other and never pile up: a slow one costs its own samples only.
type Sampler struct {
	ask     SamplerAsk
	partial string
	stop    context.CancelFunc
	loop    sync.WaitGroup
	begun   time.Time

	mu     sync.Mutex
	file   *os.File
	csv    *csv.Writer
	points int
	errs   map[string]*readErrors
	latest map[seriesKey]latest
}

// seriesKey names one series.
type seriesKey struct{ node, metric string }

// latest is a series' last value, and the one before.
type latest struct{ now, before Point }

type readErrors struct {
	failed, asked int
	last          error
}

// readWithin bounds one read of one source.
const readWithin = 5 * time.Second

// StartSampler begins to sample. Rows go to disk as they come, so that a run that is killed has
// them too, and a long one does not grow in memory.
func StartSampler(ctx context.Context, ask SamplerAsk) (*Sampler, error) {
	if ask.Every == 0 {
		ask.Every = time.Second
	}
	s := &Sampler{
		ask: ask, partial: filepath.Join(ask.Dir, "series.partial.csv"),
		errs: map[string]*readErrors{}, latest: map[seriesKey]latest{}, begun: time.Now(),
	}
	file, err := os.Create(s.partial)
	if err != nil {
		return nil, fmt.Errorf("sample series: %w", err)
	}
	s.file, s.csv = file, csv.NewWriter(file)
	ctx, s.stop = context.WithCancel(ctx)
	for _, source := range s.sources() {
		s.loop.Go(func() { s.run(ctx, source) })
	}
	return s, nil
}

// source is one thing that is read each second.
type source struct {
	name string
	read func(context.Context) ([]Point, error)
	done <-chan struct{} // closed when there is nothing to read any more; nil = never
}

func (s *Sampler) sources() []source {
	var all []source
	for _, n := range s.ask.Nodes {
		all = append(all, source{name: n.Name(), done: n.Done(), read: func(ctx context.Context) ([]Point, error) {
			return s.readNode(ctx, n)
		}})
	}
	if s.ask.Counters != nil {
		all = append(all, source{name: "the collector's metrics", read: s.ask.Counters})
	}
	if s.ask.Progress != nil {
		all = append(all, source{name: "load progress", read: s.ask.Progress})
	}
	if s.ask.Pulse != nil {
		all = append(all, source{name: "database answers", read: s.ask.Pulse.Beat})
	}
	return all
}

func (s *Sampler) run(ctx context.Context, src source) {
	tick := time.NewTicker(s.ask.Every)
	defer tick.Stop()
	for {
		s.sample(ctx, src)
		select {
		case <-ctx.Done():
			return
		case <-src.done:
			return
		case <-tick.C:
		}
	}
}

func (s *Sampler) sample(ctx context.Context, src source) {
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	points, err := src.read(bounded)
	if ctx.Err() != nil {
		return // the sampler was closed in the midst of it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.errs[src.name] == nil {
		s.errs[src.name] = &readErrors{}
	}
	e := s.errs[src.name]
	e.asked++
	if err != nil {
		e.failed, e.last = e.failed+1, err
	}
	for _, p := range points {
		s.points++
		key := seriesKey{p.Node, p.Metric}
		s.latest[key] = latest{now: p, before: s.latest[key].now}
		_ = s.csv.Write([]string{ // its error stays and is seen at Close
			strconv.FormatInt(p.At.UnixNano(), 10), p.Node, p.Metric, p.Unit, strconv.FormatFloat(p.Value, 'g', -1, 64),
		})
	}
	s.csv.Flush()
}

// Latest is the last value of a series and its mean change per second since the one before; ok is
// false until there are two.
func (s *Sampler) Latest(node, metric string) (value, perS float64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.latest[seriesKey{node, metric}]
	between := l.now.At.Sub(l.before.At).Seconds()
	if l.before.At.IsZero() || between <= 0 {
		return 0, 0, false
	}
	return l.now.Value, (l.now.Value - l.before.Value) / between, true
}

// readNode reads the cgroup of a node, and pushes what it says to Prometheus, which can't know it.
func (s *Sampler) readNode(ctx context.Context, n node.Node) ([]Point, error) {
	usage, err := n.Read(ctx)
	if err != nil {
		return nil, err
	}
	at := usage.At
	if at.IsZero() {
		at = time.Now()
	}
	var points []Point
	add := func(metric, unit string, value *float64) {
		if value != nil {
			points = append(points, Point{At: at, Node: n.Name(), Metric: metric, Unit: unit, Value: *value})
		}
	}
	add("cpu", "s", usage.CPUSeconds)
	add("throttled", "s", usage.ThrottledS)
	if usage.MemoryBytes != nil {
		bytes := float64(*usage.MemoryBytes)
		add("memory", "bytes", &bytes)
	}
	if s.ask.Push != nil {
		err = s.ask.Push.Push(ctx, n, points)
	}
	return points, err
}

// Close ends sampling and writes series.csv.gz into the run's folder: offset_s from the window's
// start, node, metric, unit, value. It returns the file's name, and a warning for each source
// that could not always be read. With a zero windowStart offsets count from the sampler's start.
func (s *Sampler) Close(windowStart time.Time) (name string, warnings []string, err error) {
	s.stop()
	s.loop.Wait()
	if windowStart.IsZero() {
		windowStart = s.begun
	}
	for _, source := range slices.Sorted(maps.Keys(s.errs)) {
		if e := s.errs[source]; e.failed > 0 {
			warnings = append(warnings, fmt.Sprintf("series of %s: %d of %d reads failed; the last: %v",
				source, e.failed, e.asked, e.last))
		}
	}
	s.csv.Flush()
	if err := errors.Join(s.csv.Error(), s.file.Close()); err != nil {
		return "", warnings, fmt.Errorf("write series: %w", err)
	}
	if err := rebase(s.partial, filepath.Join(s.ask.Dir, SeriesName), windowStart); err != nil {
		return "", warnings, fmt.Errorf("write series: %w", err)
	}
	return SeriesName, warnings, os.Remove(s.partial)
}

// rebase turns the rows' times into offsets from the window's start, which only the load node
// knows and tells at the end.
func rebase(from, to string, start time.Time) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	zip := gzip.NewWriter(out)
	rows := csv.NewWriter(zip)
	if err := rows.Write([]string{"offset_s", "node", "metric", "unit", "value"}); err != nil {
		return err
	}
	reader := csv.NewReader(bufio.NewReader(in))
	reader.FieldsPerRecord = 5
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		ns, err := strconv.ParseInt(row[0], 10, 64)
		if err != nil {
			return err
		}
		row[0] = strconv.FormatFloat(float64(ns-start.UnixNano())/1e9, 'f', 3, 64)
		if err := rows.Write(row); err != nil {
			return err
		}
	}
	rows.Flush()
	return errors.Join(rows.Error(), zip.Close())
}
