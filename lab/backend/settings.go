package backend

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/gocql/gocql"

	"jaegerlab/lab/spec"
)

// Where servers show their settings, and under which names: Cassandra from 4.0 in a virtual table
// of texts, ScyllaDB in one of JSON values.
const (
	cassandraSettings = "SELECT value FROM system_views.settings WHERE name = ?"
	scyllaSettings    = "SELECT value FROM system.config WHERE name = ?"
)

// serverSettings asks a node for settings that decide results, named alike for every engine. What
// it does not tell is left out: then nobody knows.
func serverSettings(ctx context.Context, session *gocql.Session, scylla bool, runtime spec.Runtime) map[string]string {
	query := cassandraSettings
	if scylla {
		query = scyllaSettings
	}
	first := func(names ...string) string {
		for _, name := range names {
			var value string
			if session.Query(query, name).WithContext(ctx).Scan(&value) == nil {
				if value = strings.Trim(value, `" `); value != "" && value != "null" {
					return value
				}
			}
		}
		return ""
	}
	// Every node keeps data and commit log below its own folder (process) or volume (docker), all on
	// one disk of the machine.
	settings := map[string]string{"disk": "one of the machine, shared by all nodes, runtime " + string(runtime)}
	if sync := commitLog(first("commitlog_sync"), first("commitlog_sync_period", "commitlog_sync_period_in_ms")); sync != "" {
		settings["commitlog_sync"] = sync
	}
	return settings
}

// commitLog spells mode and period in one way: "periodic, 10s". A bare number is milliseconds.
func commitLog(mode, period string) string {
	if mode == "" {
		return ""
	}
	if ms, err := strconv.Atoi(period); err == nil {
		period += "ms"
		if ms == 0 {
			period = ""
		}
	}
	if every, err := time.ParseDuration(period); err == nil && mode == "periodic" {
		return mode + ", " + every.String()
	}
	return mode
}

// compactions reads how many compactions run or wait, of a Cassandra node (from 4.0).
const compactions = "SELECT active_tasks, pending_tasks FROM system_views.thread_pools WHERE name = 'CompactionExecutor'"

// Compactions is how many compactions run or wait on all nodes together: work that writes of the
// run left behind. nil where a node does not tell; ScyllaDB does not over CQL.
func (c *cqlCluster) Compactions(ctx context.Context) *float64 {
	var sum float64
	for i := range c.nodes {
		session, err := c.session(ctx, i)
		if err != nil {
			return nil
		}
		var active, pending int
		if session.Query(compactions).WithContext(ctx).Scan(&active, &pending) != nil {
			return nil
		}
		sum += float64(active + pending)
	}
	return &sum
}
