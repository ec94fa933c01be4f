package experiments

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"jaegerlab/bench/exporters"
	"jaegerlab/lab"
)

// Question: which exporter should a Go program use for Jaeger, and what does batching cost it? The
// benchmark of OpenTelemetry's .NET exporter before and after it lost its second level of batching
// (512 KB -> 236 KB for one batch, 26.8 MB -> 240 KB for 100) asked it for one exporter.
// Method: 1, 10 and 100 batches of 10,000 spans through each exporter and transport into black
// holes in memory and on loopback; time of exporting, memory allocated, what arrived.
// Changes our mind: memory of the lab's exporter that grows with the number of batches, or less
// than eight times the spans per second of jaeger-client-go over UDP.
func TestExporters(t *testing.T) {
	onlyWhenNamed(t)
	uncached(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	console := lab.OpenConsole()
	o := exporters.Options{Batches: []int{1, 10, 100}, Spans: 10_000, Samples: 5, Least: 2 * time.Second, Real: true, Self: self,
		Results: fromRoot(cmp.Or(os.Getenv("LAB_RESULTS"), "results")), Out: console, Say: console.Say}
	if testing.Short() {
		o.Batches, o.Samples, o.Least = []int{1, 10}, 3, 0
	}
	if _, err := exporters.Run(ctx, o); err != nil {
		t.Fatal(err)
	}
}
