package backend

import (
	"context"
	"fmt"

	"github.com/gocql/gocql"
)

// Names in Prometheus of what Cassandra's virtual tables say of a node. It has no exporter; these
// are read over CQL from keyspace system_views (Cassandra 4.0 and later; ScyllaDB has other ones).
const (
	ViewActive    = "lab_cassandra_pool_active_tasks"    // pool
	ViewPending   = "lab_cassandra_pool_pending_tasks"   // pool
	ViewCompleted = "lab_cassandra_pool_completed_total" // pool
	ViewWrites    = "lab_cassandra_table_writes_total"   // keyspace, table
	ViewWriteTime = "lab_cassandra_table_write_seconds"  // keyspace, table, quantile
	ViewDisk      = "lab_cassandra_table_disk_bytes"     // keyspace, table
)

// ViewNames lists them.
func ViewNames() []string {
	return []string{ViewActive, ViewPending, ViewCompleted, ViewWrites, ViewWriteTime, ViewDisk}
}

// ViewSample is one value of a virtual table.
type ViewSample struct {
	Name    string
	Labels  map[string]string
	Value   float64
	Counter bool // it only grows while the server runs
}

// Views is a connection to one node for reading its virtual tables.
type Views struct{ session *gocql.Session }

// OpenViews connects to one node at ip:port and to no other.
func OpenViews(ctx context.Context, addr string) (*Views, error) {
	session, err := openSession(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("read virtual tables: %w", err)
	}
	return &Views{session: session}, nil
}

// Close ends the connection.
func (v *Views) Close() { v.session.Close() }

// Read asks for everything once: thread pools, and of each table of a keyspace writes, their
// times and the disk space. Tables that were never written show no times.
func (v *Views) Read(ctx context.Context, keyspace string) ([]ViewSample, error) {
	var all []ViewSample
	for _, read := range []func(context.Context, string) ([]ViewSample, error){v.pools, v.writes, v.disk} {
		samples, err := read(ctx, keyspace)
		if err != nil {
			return nil, fmt.Errorf("read virtual tables: %w", err)
		}
		all = append(all, samples...)
	}
	return all, nil
}

// pools leaves out pools that never had a task.
func (v *Views) pools(ctx context.Context, _ string) ([]ViewSample, error) {
	rows := v.session.Query("SELECT name, active_tasks, pending_tasks, completed_tasks FROM system_views.thread_pools").
		WithContext(ctx).Iter()
	var samples []ViewSample
	var pool string
	var active, pending int
	var completed int64
	for rows.Scan(&pool, &active, &pending, &completed) {
		if active == 0 && pending == 0 && completed == 0 {
			continue
		}
		labels := map[string]string{"pool": pool}
		samples = append(samples, ViewSample{ViewActive, labels, float64(active), false},
			ViewSample{ViewPending, labels, float64(pending), false},
			ViewSample{ViewCompleted, labels, float64(completed), true})
	}
	return samples, rows.Close()
}

// writes reads rows written on this node itself. The server's key is (keyspace, table), so all
// are passed over here to pick one keyspace's.
func (v *Views) writes(ctx context.Context, keyspace string) ([]ViewSample, error) {
	rows := v.session.Query("SELECT keyspace_name, table_name, count, p50th_ms, p99th_ms FROM system_views.local_write_latency").
		WithContext(ctx).Iter()
	var samples []ViewSample
	var space, table string
	var count int64
	var p50, p99 float64
	for rows.Scan(&space, &table, &count, &p50, &p99) {
		if space != keyspace {
			continue
		}
		samples = append(samples, ViewSample{ViewWrites, tableLabels(space, table, ""), float64(count), true})
		if count > 0 {
			samples = append(samples, ViewSample{ViewWriteTime, tableLabels(space, table, "0.5"), p50 / 1000, false},
				ViewSample{ViewWriteTime, tableLabels(space, table, "0.99"), p99 / 1000, false})
		}
	}
	return samples, rows.Close()
}

func (v *Views) disk(ctx context.Context, keyspace string) ([]ViewSample, error) {
	rows := v.session.Query("SELECT keyspace_name, table_name, mebibytes FROM system_views.disk_usage").WithContext(ctx).Iter()
	var samples []ViewSample
	var space, table string
	var mebibytes int64
	for rows.Scan(&space, &table, &mebibytes) {
		if space == keyspace {
			samples = append(samples, ViewSample{ViewDisk, tableLabels(space, table, ""), float64(mebibytes << 20), false})
		}
	}
	return samples, rows.Close()
}

func tableLabels(keyspace, table, quantile string) map[string]string {
	labels := map[string]string{"keyspace": keyspace, "table": table}
	if quantile != "" {
		labels["quantile"] = quantile
	}
	return labels
}
