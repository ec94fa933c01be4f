package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"jaegerlab/lab/node"
)

// WaitTargets returns when every target is up. At the bound it fails with the last error of each
// that is not, so that a run never starts with a blind eye.
func (m *Monitor) WaitTargets(ctx context.Context) error {
	const what = "all targets of Prometheus to be up"
	return node.Wait(ctx, what, targetsUpWithin, m.Prometheus, func(ctx context.Context) error {
		states, err := m.targetStates(ctx)
		if err != nil {
			return err
		}
		var down []string
		for _, s := range states {
			if s.Health != "up" {
				down = append(down, fmt.Sprintf("target %s %s is %s: %s", s.Labels["job"], s.ScrapeURL, s.Health, s.why()))
			}
		}
		if len(states) < len(m.targets)+1 {
			down = append(down, fmt.Sprintf("Prometheus knows %d of %d targets", len(states), len(m.targets)+1))
		}
		if len(down) > 0 {
			return errors.New(strings.Join(down, "; "))
		}
		return nil
	})
}

// LastScrape waits until every target was scraped after since, so that the end of a run is in
// the samples: call it after the drain and before anything is stopped. Targets that don't get
// there within the bound are named in the error.
func (m *Monitor) LastScrape(ctx context.Context, since time.Time) error {
	const what = "a last scrape of every target"
	return node.Wait(ctx, what, lastScrapeWithin, m.Prometheus, func(ctx context.Context) error {
		states, err := m.targetStates(ctx)
		if err != nil {
			return err
		}
		var late []string
		for _, s := range states {
			if s.Health != "up" || !s.LastScrape.After(since) {
				late = append(late, fmt.Sprintf("%s %s: %s, last scraped %s: %s", s.Labels["job"], s.ScrapeURL, s.Health,
					s.LastScrape.Format(time.TimeOnly), s.why()))
			}
		}
		if len(late) > 0 {
			return errors.New(strings.Join(late, "; "))
		}
		return nil
	})
}

type targetState struct {
	Labels     map[string]string `json:"labels"`
	ScrapeURL  string            `json:"scrapeUrl"`
	LastError  string            `json:"lastError"`
	LastScrape time.Time         `json:"lastScrape"`
	Health     string            `json:"health"`
}

func (s targetState) why() string {
	if s.LastError == "" {
		return "no error reported"
	}
	return s.LastError
}

func (m *Monitor) targetStates(ctx context.Context) ([]targetState, error) {
	var data struct {
		ActiveTargets []targetState `json:"activeTargets"`
	}
	err := m.api(ctx, "/api/v1/targets?state=active", &data)
	return data.ActiveTargets, err
}

// api reads one answer of Prometheus's HTTP API into data.
func (m *Monitor) api(ctx context.Context, path string, data any) error {
	status, body, err := get(ctx, "http://"+m.Addr+path)
	if err != nil {
		return fmt.Errorf("ask Prometheus: %w", err)
	}
	var answer struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("ask Prometheus %s: it answered %d, not JSON: %.200s", path, status, body)
	}
	if answer.Status != "success" {
		return fmt.Errorf("ask Prometheus %s: it answered %d: %s", path, status, answer.Error)
	}
	if err := json.Unmarshal(answer.Data, data); err != nil {
		return fmt.Errorf("ask Prometheus %s: read its data: %w", path, err)
	}
	return nil
}

// Sample is one raw sample as it was scraped.
type Sample struct {
	At    time.Time
	Value float64
}

// Series is one time series with its raw samples in order of time.
type Series struct {
	Labels  map[string]string // __name__ included
	Samples []Sample
}

// Raw returns every raw sample of a selector, such as `up{job="load"}`, that was scraped from
// from to to, both included.
func (m *Monitor) Raw(ctx context.Context, selector string, from, to time.Time) ([]Series, error) {
	span := to.Sub(from).Milliseconds() + 1 // a range leaves out its left end
	query := url.Values{
		"query": {fmt.Sprintf("%s[%dms]", selector, span)},
		"time":  {strconv.FormatFloat(float64(to.UnixMilli())/1000, 'f', 3, 64)},
	}
	var data struct {
		Result []struct {
			Metric map[string]string    `json:"metric"`
			Values [][2]json.RawMessage `json:"values"`
		} `json:"result"`
	}
	if err := m.api(ctx, "/api/v1/query?"+query.Encode(), &data); err != nil {
		return nil, err
	}
	var all []Series
	for _, result := range data.Result {
		series := Series{Labels: result.Metric}
		for _, value := range result.Values {
			sample, err := readSample(value)
			if err != nil {
				return nil, fmt.Errorf("read a sample of %s: %w", selector, err)
			}
			series.Samples = append(series.Samples, sample)
		}
		all = append(all, series)
	}
	return all, nil
}

func readSample(pair [2]json.RawMessage) (Sample, error) {
	var seconds float64
	var text string
	if err := json.Unmarshal(pair[0], &seconds); err != nil {
		return Sample{}, err
	}
	if err := json.Unmarshal(pair[1], &text); err != nil {
		return Sample{}, err
	}
	value, err := strconv.ParseFloat(text, 64)
	return Sample{At: time.UnixMilli(int64(math.Round(seconds * 1000))), Value: value}, err
}

// Delta is the last raw sample less the first: exact, an integer for a counter of whole things.
// Under two samples, or when the counter fell, it is nil and the note says which.
func (s Series) Delta() (delta *float64, note string) {
	switch n := len(s.Samples); n {
	case 0:
		return nil, "n/a (no sample)"
	case 1:
		return nil, "n/a (1 sample)"
	}
	for i := 1; i < len(s.Samples); i++ {
		if s.Samples[i].Value < s.Samples[i-1].Value {
			return nil, fmt.Sprintf("n/a (the counter fell from %v to %v: its program was started again)",
				s.Samples[i-1].Value, s.Samples[i].Value)
		}
	}
	d := s.Samples[len(s.Samples)-1].Value - s.Samples[0].Value
	return &d, ""
}
