package standin

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// Header marks every answer of the metrics page.
const Header = "X-Jaegerlab-Stand-In"

// page serves the metrics of a stand-in: what it is first, then what it was granted.
type page struct {
	grant   Grant
	started time.Time
	now     func() time.Time
	running func() bool // whether Cassandra runs
}

// ServeHTTP implements http.Handler.
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set(Header, "1")
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_ = p.write(w) // a client that went away is its own affair
}

func (p page) write(w io.Writer) error {
	up := 0
	if p.running() {
		up = 1
	}
	for _, metric := range []struct {
		name, help string
		value      float64
	}{
		{"jaegerlab_stand_in", "1: this is a stand-in that runs Cassandra, not ScyllaDB.", 1},
		{"jaegerlab_stand_in_cassandra_up", "Whether Cassandra runs.", float64(up)},
		{"jaegerlab_stand_in_uptime_seconds", "Since the start of the stand-in.", p.now().Sub(p.started).Seconds()},
		{"jaegerlab_stand_in_shards", "Shards ScyllaDB would run.", float64(p.grant.Shards)},
		{"jaegerlab_stand_in_memory_bytes", "Memory ScyllaDB would take.", float64(p.grant.Heap)},
		{"jaegerlab_stand_in_aio_slots", "AIO control blocks taken from the kernel.", float64(p.grant.Slots)},
	} {
		_, err := fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n%s %g\n", metric.name, metric.help, metric.name,
			metric.name, metric.value)
		if err != nil {
			return err
		}
	}
	return nil
}
