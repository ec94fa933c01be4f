package backend_test

import (
	"testing"
	"time"

	"github.com/gocql/gocql"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/record"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

const speedTraces = 5000

// BenchmarkIntegrationReadBack compares the read-back with SELECT count(*) on the same warm
// cluster, in turn, at the same consistency. An operation is one of each.
func BenchmarkIntegrationReadBack(b *testing.B) {
	a := arm(b, "cassandra:2")
	cluster, _, store := start(b, spec.Process, a, "speed", setup.Cassandra, setup.Jaeger)
	table := filler{session: connect(b, cluster.Nodes()[0]), table: "speed.traces", numbering: trace.New(42, 10)}
	began := time.Now()
	table.fill(b, speedTraces)
	b.Logf("filled %d rows in %s", speedTraces*11, time.Since(began).Round(time.Millisecond))
	rows := float64(speedTraces * 11)
	count := func() time.Duration {
		began := time.Now()
		var n int64
		if err := table.session.Query("SELECT count(*) FROM speed.traces").Consistency(gocql.All).Scan(&n); err != nil {
			b.Fatal(err)
		}
		if n != int64(rows) {
			b.Fatalf("count(*) = %d; %v rows were written", n, rows)
		}
		return time.Since(began)
	}
	readBack := func() time.Duration {
		began, n := time.Now(), 0
		result, err := store.Read(b.Context(), backend.Ask{}, func(record.Row) error { n++; return nil })
		if err != nil || n != int(rows) || result.Consistency != "ALL" {
			b.Fatalf("read %d rows of %v: %+v, %v", n, rows, result, err)
		}
		return time.Since(began)
	}
	for range 3 { // warm
		count()
		readBack()
	}
	var counting, reading time.Duration
	for b.Loop() {
		counting += count()
		reading += readBack()
	}
	n := float64(b.N)
	b.ReportMetric(n*rows/counting.Seconds(), "count-rows/s")
	b.ReportMetric(n*rows/reading.Seconds(), "read-rows/s")
	b.ReportMetric(counting.Seconds()/reading.Seconds(), "read/count")
}
