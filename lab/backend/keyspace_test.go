package backend

import (
	"net"
	"slices"
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// schemaTables are the tables of a keyspace that Jaeger has created.
func schemaTables(tables map[string]cqlTable, replication map[string]string, names []string, ttl int,
) map[string]cqlTable {
	tables["system_schema.keyspaces"] = cqlTable{columns: tables["system_schema.keyspaces"].columns,
		rows: [][]any{{"ks", replication}}}
	list := cqlTable{columns: []cqlColumn{{"table_name", varcharKind}, {"default_time_to_live", intKind}}}
	for _, name := range names {
		list.rows = append(list.rows, []any{name, ttl})
	}
	tables["system_schema.tables"] = list
	tables["ks.traces"] = cqlTable{columns: []cqlColumn{{"trace_id", blobKind}, {"span_id", bigintKind},
		{"span_hash", bigintKind}, {"writetime(start_time)", bigintKind}}}
	return tables
}

var oneCopy = map[string]string{"class": "org.apache.cassandra.locator.NetworkTopologyStrategy", "datacenter1": "1"}

func TestCheckProvesTheStoreBeforeLoad(t *testing.T) {
	twoCopies := map[string]string{"class": oneCopy["class"], "datacenter1": "2"}
	half := without(jaegerTables, []string{"duration_index"})
	simple := map[string]string{"class": "org.apache.cassandra.locator.SimpleStrategy", "replication_factor": "1"}
	for name, c := range map[string]struct {
		replication map[string]string
		tables      []string
		ttl         int
		row         bool
		want, fails string
	}{
		"whole":                     {oneCopy, jaegerTables, 172800, false, "NetworkTopologyStrategy, datacenter1: 1", ""},
		"simple strategy":           {simple, jaegerTables, 172800, false, "SimpleStrategy, replication_factor: 1", ""},
		"no expiry":                 {oneCopy, jaegerTables, 0, false, "NetworkTopologyStrategy, datacenter1: 1", ""},
		"case 14: half a schema":    {oneCopy, half, 172800, false, "", "table duration_index missing"},
		"other replication":         {twoCopies, jaegerTables, 172800, false, "", "datacenter1: 2; asked for factor 1"},
		"case 21: rows that expire": {oneCopy, jaegerTables, 60, false, "", "rows of traces live 60 s"},
		"case 21: old rows":         {oneCopy, jaegerTables, 172800, true, "", "not empty before load: it has a row of trace 01"},
	} {
		t.Run(name, func(t *testing.T) {
			tables := schemaTables(systemTables(told{}), c.replication, c.tables, c.ttl)
			if c.row {
				traces := tables["ks.traces"]
				traces.rows = [][]any{{[]byte{1, 2}, int64(1), int64(1), int64(1)}}
				tables["ks.traces"] = traces
			}
			cluster := fakeCluster(t, cassandra{}, newCQLServer(t, cassandraOptions, tables))
			got, err := cluster.Store("ks").Check(t.Context())
			switch {
			case c.fails == "" && (err != nil || got != c.want):
				t.Errorf("Check() = %q, %v; want %q", got, err, c.want)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("Check() = %q, %v; want an error with %q", got, err, c.fails)
			}
		})
	}
}

// Case 13: a keyspace that is not there is named.
func TestCheckNamesAMissingKeyspace(t *testing.T) {
	cluster := fakeCluster(t, cassandra{}, newCQLServer(t, cassandraOptions, systemTables(told{})))
	_, err := cluster.Store("jaeger_v1_missing").Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "keyspace jaeger_v1_missing: db: there is no such keyspace") {
		t.Errorf("Check() = %v", err)
	}
}

// settled gives a cluster its views, as its start does.
func settled(t *testing.T, servers ...*cqlServer) *cqlCluster {
	t.Helper()
	cluster := fakeCluster(t, cassandra{}, servers...)
	if err := cluster.awaitAgreement(t.Context()); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func TestReadTellsWhatItKnows(t *testing.T) {
	tables := schemaTables(systemTables(told{tokens: []string{"5"}}), oneCopy, jaegerTables, 0)
	traces := tables["ks.traces"]
	id := trace.ID{High: 1 << 62, Low: 1<<62 | 7, Span: 1<<62 | 3}
	key := []byte{0x40, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 7}
	traces.rows = [][]any{{key, int64(id.Span), int64(-12), int64(1_700_000_000_000_000)},
		{key, int64(id.Span), int64(13), nil}}
	tables["ks.traces"] = traces
	cluster := settled(t, newCQLServer(t, cassandraOptions, tables))
	var rows []record.Row
	result, err := cluster.Store("ks").Read(t.Context(), Ask{}, func(r record.Row) error {
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.Consistency != "ALL" || result.AbsentUnknown ||
		!result.HasForeign || !result.HasDuplicates || !result.HasWriteTime {
		t.Errorf("result = %+v", result)
	}
	if r := result.Ranges; r.Asked < leastRanges || r.Read != r.Asked || len(rows) != 2*r.Asked {
		t.Errorf("ranges = %+v, %d rows; the server gives both rows in each range", r, len(rows))
	}
	want := []record.Row{{ID: id, Hash: -12, WriteTime: 1_700_000_000_000_000}, {ID: id, Hash: 13}}
	if !slices.Equal(rows[:2], want) {
		t.Errorf("rows = %+v; want %+v", rows[:2], want)
	}
}

// Cases 18, 19: spans are counted from traces, never through an index table.
func TestReadLooksAtTracesOnly(t *testing.T) {
	server := newCQLServer(t, cassandraOptions, schemaTables(systemTables(told{}), oneCopy, jaegerTables, 0))
	cluster := settled(t, server)
	if _, err := cluster.Store("ks").Read(t.Context(), Ask{}, func(record.Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, statement := range server.statements() {
		if !strings.Contains(statement, " system") && !strings.Contains(statement, " FROM ks.traces ") {
			t.Errorf("the read-back asks %q", statement)
		}
	}
}

// A node that is gone: what is read is read at ONE, and absent is unknown.
func TestReadWithoutANode(t *testing.T) {
	server := func(token string) *cqlServer {
		tables := systemTables(told{tokens: []string{token}, peers: []net.IP{elsewhere}})
		return newCQLServer(t, cassandraOptions, schemaTables(tables, oneCopy, jaegerTables, 0))
	}
	cluster := settled(t, server("-5"), server("5"))
	cluster.nodes[1].(*fakeNode).die("killed")
	result, err := cluster.Store("ks").Read(t.Context(), Ask{}, func(record.Row) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if result.Consistency != "ONE" || !result.AbsentUnknown || result.Ranges.Read != result.Ranges.Asked {
		t.Errorf("result = %+v", result)
	}
	cluster.nodes[0].(*fakeNode).die("killed")
	if _, err := cluster.Store("ks").Read(t.Context(), Ask{}, func(record.Row) error { return nil }); err == nil {
		t.Error("a read without any node gives no error")
	}
}

func TestRowsAreTheServersOwnCount(t *testing.T) {
	tables := systemTables(told{})
	tables["system_views.local_write_latency"] = cqlTable{
		columns: []cqlColumn{{"count", bigintKind}}, rows: [][]any{{int64(420)}}}
	cluster := fakeCluster(t, cassandra{}, newCQLServer(t, cassandraOptions, tables))
	cluster.arm.Replication = 2
	if rows, err := cluster.Store("ks").Rows(t.Context()); err != nil || rows != 210 {
		t.Errorf("Rows() = %d, %v; want 210 at two copies each", rows, err)
	}
}

func TestDropRefusesNamesOfOthers(t *testing.T) {
	cluster := fakeCluster(t, cassandra{}, newCQLServer(t, cassandraOptions, systemTables(told{})))
	for _, name := range []string{"", "system; DROP", "Upper", strings.Repeat("a", 49)} {
		if err := cluster.Store(name).Drop(t.Context()); err == nil || !strings.Contains(err.Error(), "not a name") {
			t.Errorf("Drop(%q) = %v", name, err)
		}
	}
}

func TestJaegerIsToldTheSameOfBothGenerations(t *testing.T) {
	cluster := settled(t, newCQLServer(t, cassandraOptions, systemTables(told{})))
	store := cluster.Store("jaegerlab_1")
	options := store.StorageV2(true)["cassandra"].(map[string]any)
	part := func(name string) map[string]any { return options[name].(map[string]any) }
	schema, connection, query := part("schema"), part("connection"), part("query")
	for name, want := range map[string]any{"keyspace": "jaegerlab_1", "create": true, "datacenter": "datacenter1",
		"replication_factor": 1} {
		if schema[name] != want {
			t.Errorf("schema.%s = %v; want %v", name, schema[name], want)
		}
	}
	if connection["timeout"] != "1m0s" || query["timeout"] != "1m0s" {
		t.Errorf("the schema's owner waits %v and %v; a slow node needs a minute", connection["timeout"], query["timeout"])
	}
	if connection["tls"].(map[string]any)["insecure"] != true {
		t.Error("connection.tls.insecure is not true: Jaeger would speak TLS")
	}
	measured := store.StorageV2(false)["cassandra"].(map[string]any)
	if measured["schema"].(map[string]any)["create"] != false {
		t.Error("a measured collector creates the schema")
	}
	env := strings.Join(store.EnvV1(), "\n")
	for _, want := range []string{"SPAN_STORAGE_TYPE=cassandra", "CASSANDRA_KEYSPACE=jaegerlab_1", "CASSANDRA_TIMEOUT=10s",
		"CASSANDRA_SERVERS=" + cluster.nodes[0].PeerAddr("cql"), "CASSANDRA_CONSISTENCY=LOCAL_ONE",
		"CASSANDRA_LOCAL_DC=datacenter1"} {
		if !strings.Contains(env, want) {
			t.Errorf("EnvV1() = %s; want %s in it", env, want)
		}
	}
	if got := measured["query"].(map[string]any)["timeout"]; got != "10s" {
		t.Errorf("query.timeout = %v; without one a paused node holds writers for ever", got)
	}
}
