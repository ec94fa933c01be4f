package grafana

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Value is one element of a query's answer.
type Value struct {
	Labels map[string]string
	Value  float64 // NaN where Prometheus says so, such as for a rate of nothing by nothing
}

const (
	askWithin  = 10 * time.Second
	mostAnswer = 16 << 20 // bytes
)

// Ask evaluates an expression at this moment on the Prometheus at addr, host:port, as Grafana does for
// a panel. An expression that finds nothing gives no values and no error.
func Ask(ctx context.Context, addr, expr string) ([]Value, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/api/v1/query?query="+url.QueryEscape(expr), nil)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any // time, value as text
			}
		}
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, mostAnswer)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("ask Prometheus: read its answer %s: %w", response.Status, err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("ask Prometheus: %s: %s", answer.Error, expr)
	}
	var values []Value
	for _, one := range answer.Data.Result {
		text, _ := one.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			v = math.NaN()
		}
		values = append(values, Value{one.Metric, v})
	}
	return values, nil
}
