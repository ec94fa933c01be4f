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
