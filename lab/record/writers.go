package record

import (
	"strconv"
	"strings"
)

// Consumers of the queue that OTLP goes through in Jaeger 1.76, which nothing configures.
const v1OTLPConsumers = 10

// Writers reads from the collector's settings how many spans it writes at once. Jaeger v2
// without a queue has one writer behind a batch processor, and without that one for each request.
func (run Run) Writers() *int {
	settings := run.Collector.Settings
	number := func(suffix string) *int {
		for key, value := range settings {
			if key == suffix || strings.HasSuffix(key, "."+suffix) {
				if n, err := strconv.Atoi(value); err == nil {
					return &n
				}
			}
		}
		return nil
	}
	if workers := number("COLLECTOR_NUM_WORKERS"); workers != nil {
		if strings.HasPrefix(run.Client, "otlp") {
			n := v1OTLPConsumers
			return &n
		}
		return workers
	}
	exporter := "config.exporters.jaeger_storage_exporter"
	if _, ok := settings[exporter+".trace_storage"]; !ok {
		return nil
	}
	if settings[exporter+".queue.enabled"] == "true" {
		return number("queue.num_consumers")
	}
	for key, value := range settings {
		if strings.HasPrefix(key, "config.service.pipelines.traces.processors") && strings.Contains(value, "batch") {
			one := 1
			return &one
		}
	}
	n := run.Load.Concurrency
	return &n
}
