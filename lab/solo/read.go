package solo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"jaegerlab/lab/trace"
)

// Span is a stored span as Jaeger's query API gives it.
type Span struct {
	ID         trace.ID
	Parent     uint64 // of its first reference; 0 = none
	Service    string
	Operation  string
	StartUS    int64
	DurationUS int64
	Tags       []trace.Tag // values as text, in the order of the answer
	Process    []trace.Tag
	Logs       []Log
}

// Log is a stored event.
type Log struct {
	TimeUS int64
	Fields []trace.Tag
}

// Trace reads one trace: the raw one, since adjusters would hide duplicates. Spans come in the
// order of their ids; none means that nothing of this trace is stored.
func (j *Jaeger) Trace(ctx context.Context, high, low uint64) ([]Span, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	url := fmt.Sprintf("http://%s/api/traces/%016x%016x?raw=true", j.query, high, low)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read a trace back: %w; Jaeger's output ends:\n%s", err, j.node.Tail(12))
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read a trace back: %w", err)
	}
	var answer answer
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Data) != 1 {
		return nil, fmt.Errorf("read trace %016x%016x back: HTTP %d with %d traces: %w: %.300s",
			high, low, response.StatusCode, len(answer.Data), err, body)
	}
	return answer.spans()
}

// answer is what the query API says.
type answer struct {
	Data []struct {
		Spans []struct {
			TraceID, SpanID, OperationName, ProcessID string

			References          []struct{ SpanID string }
			StartTime, Duration int64
			Tags                []tag
			Logs                []struct {
				Timestamp int64
				Fields    []tag
			}
		}
		Processes map[string]struct {
			ServiceName string
			Tags        []tag
		}
	}
}

type tag struct {
	Key   string
	Value any
}

func (a answer) spans() (spans []Span, err error) {
	for _, s := range a.Data[0].Spans {
		process := a.Data[0].Processes[s.ProcessID]
		span := Span{Service: process.ServiceName, Operation: s.OperationName, StartUS: s.StartTime, DurationUS: s.Duration,
			Tags: asText(s.Tags), Process: asText(process.Tags)}
		for _, log := range s.Logs {
			span.Logs = append(span.Logs, Log{TimeUS: log.Timestamp, Fields: asText(log.Fields)})
		}
		whole := strings.Repeat("0", max(32-len(s.TraceID), 0)) + s.TraceID // leading zeros may be left out
		words := []string{whole[:16], whole[16:], s.SpanID}
		for i, to := range []*uint64{&span.ID.High, &span.ID.Low, &span.ID.Span} {
			if *to, err = strconv.ParseUint(words[i], 16, 64); err != nil {
				return nil, fmt.Errorf("read a trace back: id %s:%s: %w", s.TraceID, s.SpanID, err)
			}
		}
		if len(s.References) > 0 {
			if span.Parent, err = strconv.ParseUint(s.References[0].SpanID, 16, 64); err != nil {
				return nil, fmt.Errorf("read a trace back: parent %q: %w", s.References[0].SpanID, err)
			}
		}
		spans = append(spans, span)
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.ID.Span, b.ID.Span) })
	return spans, nil
}

func asText(all []tag) (text []trace.Tag) {
	for _, one := range all {
		text = append(text, trace.Tag{Key: one.Key, Value: fmt.Sprint(one.Value)})
	}
	return text
}
