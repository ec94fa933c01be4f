package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gocql/gocql"
)

// Settings of Jaeger's Cassandra storage, the same for both engines and both generations. Jaeger
// hands query.timeout to gocql's Timeout (default none: a paused node would hold writers for
// ever) and connection.timeout to its ConnectTimeout.
const (
	createTimeout  = 60 * time.Second // schema statements on nodes that have just started
	connectTimeout = 20 * time.Second
	writeTimeout   = 10 * time.Second // above the servers' own write time-out of 2 s
	writeAttempts  = 3                // Jaeger's default
	writeLevel     = "LOCAL_ONE"      // Jaeger's default
	hostConns      = 2                // Jaeger's default, per host
	traceTTL       = 48 * time.Hour   // Jaeger's default
	leastTTL       = 24 * time.Hour   // rows must outlive load, drain and read-back
	dropWithin     = time.Minute
)

// jaegerTables is the schema v004, which Jaeger 1.76 and 2.13 and later create.
var jaegerTables = []string{
	"dependencies_v2", "duration_index", "leases", "operation_names_v2", "operation_throughput",
	"sampling_probabilities", "service_name_index", "service_names", "service_operation_index",
	"tag_index", "traces",
}

// keyspace is the storage of one round on a CQL engine.
type keyspace struct {
	cluster *cqlCluster
	name    string
}

// Store implements Cluster.
func (c *cqlCluster) Store(name string) Store { return &keyspace{cluster: c, name: name} }

// NeedsSchema implements Store.
func (k *keyspace) NeedsSchema() bool { return true }

// StorageV2 implements Store.
func (k *keyspace) StorageV2(create bool) map[string]any {
	servers, port := k.servers()
	connect, query := connectTimeout, writeTimeout
	if create {
		connect, query = createTimeout, createTimeout
	}
	return map[string]any{"cassandra": map[string]any{
		"schema": map[string]any{
			"keyspace":           k.name,
			"create":             create,
			"datacenter":         k.cluster.dataCenter(),
			"replication_factor": k.cluster.arm.Replication,
			"trace_ttl":          traceTTL.String(),
			"dependencies_ttl":   traceTTL.String(),
		},
		"connection": map[string]any{
			"servers":              servers,
			"port":                 port,
			"local_dc":             k.cluster.dataCenter(),
			"connections_per_host": hostConns,
			"timeout":              connect.String(),
			"reconnect_interval":   time.Minute.String(),
			"proto_version":        cqlVersion,
			"tls":                  map[string]any{"insecure": true},
		},
		"query": map[string]any{
			"timeout":            query.String(),
			"max_retry_attempts": writeAttempts,
			"consistency":        writeLevel,
		},
	}}
}

// EnvV1 implements Store.
func (k *keyspace) EnvV1() []string {
	servers, port := k.servers()
	return []string{
		"SPAN_STORAGE_TYPE=cassandra",
		"CASSANDRA_SERVERS=" + strings.Join(servers, ","),
		"CASSANDRA_PORT=" + strconv.Itoa(port),
		"CASSANDRA_KEYSPACE=" + k.name,
		"CASSANDRA_LOCAL_DC=" + k.cluster.dataCenter(),
		"CASSANDRA_CONSISTENCY=" + writeLevel,
		"CASSANDRA_PROTO_VERSION=" + strconv.Itoa(cqlVersion),
		"CASSANDRA_CONNECTIONS_PER_HOST=" + strconv.Itoa(hostConns),
		"CASSANDRA_MAX_RETRY_ATTEMPTS=" + strconv.Itoa(writeAttempts),
		"CASSANDRA_TIMEOUT=" + writeTimeout.String(),
		"CASSANDRA_CONNECT_TIMEOUT=" + connectTimeout.String(),
	}
}

// servers are the nodes as the collector reaches them, and the port its driver takes for peers.
func (k *keyspace) servers() (addrs []string, port int) {
	for _, n := range k.cluster.nodes {
		addr := n.PeerAddr("cql")
		addrs = append(addrs, addr)
		if _, text, err := net.SplitHostPort(addr); err == nil {
			port, _ = strconv.Atoi(text) // 0 leaves Jaeger's default
		}
	}
	return addrs, port
}

// dataCenter is the one all nodes said they are in.
func (c *cqlCluster) dataCenter() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.views) == 0 {
		return ""
	}
	return c.views[0].DataCenter
}

// Check implements Store.
func (k *keyspace) Check(ctx context.Context) (string, error) {
	fail := func(err error) (string, error) { return "", fmt.Errorf("check keyspace %s: %w", k.name, err) }
	if err := k.cluster.awaitAgreement(ctx); err != nil {
		return fail(err)
	}
	var replication map[string]string
	for i, n := range k.cluster.nodes {
		session, err := k.cluster.session(ctx, i)
		if err != nil {
			return fail(err)
		}
		seen, err := k.checkNode(ctx, session)
		if err != nil {
			return fail(fmt.Errorf("%s: %w", n.Name(), err))
		}
		replication = seen
	}
	if err := fits(replication, k.cluster.dataCenter(), k.cluster.arm.Replication); err != nil {
		return fail(err)
	}
	if err := k.checkEmpty(ctx); err != nil {
		return fail(err)
	}
	return describeReplication(replication), nil
}

// checkNode proves keyspace and tables as one node has them, and returns the replication.
func (k *keyspace) checkNode(ctx context.Context, session *gocql.Session) (map[string]string, error) {
	var replication map[string]string
	err := session.Query("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?", k.name).
		WithContext(ctx).Scan(&replication)
	if errors.Is(err, gocql.ErrNotFound) {
		return nil, errors.New("there is no such keyspace; the schema was not created")
	}
	if err != nil {
		return nil, fmt.Errorf("read its replication: %w", err)
	}
	rows := session.Query("SELECT table_name, default_time_to_live FROM system_schema.tables WHERE keyspace_name = ?",
		k.name).WithContext(ctx).Iter()
	var tables []string
	var table string
	var ttl, tracesTTL int
	for rows.Scan(&table, &ttl) {
		tables = append(tables, table)
		if table == "traces" {
			tracesTTL = ttl
		}
	}
	if err := rows.Close(); err != nil {
		return nil, fmt.Errorf("read its tables: %w", err)
	}
	if missing := without(jaegerTables, tables); len(missing) > 0 {
		return nil, fmt.Errorf("the schema is not complete: table %s missing, %s there",
			strings.Join(missing, ", "), strings.Join(tables, ", "))
	}
	if tracesTTL > 0 && time.Duration(tracesTTL)*time.Second < leastTTL {
		return nil, fmt.Errorf("rows of traces live %d s; they could expire before they are counted: at least %s is needed",
			tracesTTL, leastTTL)
	}
	return replication, nil
}

func (k *keyspace) checkEmpty(ctx context.Context) error {
	session, err := k.cluster.session(ctx, 0)
	if err != nil {
		return err
	}
	var id []byte
	err = session.Query("SELECT trace_id FROM " + k.traces() + " LIMIT 1").Consistency(gocql.All).
		WithContext(ctx).Scan(&id)
	switch {
	case errors.Is(err, gocql.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read whether traces is empty: %w", err)
	}
	return fmt.Errorf("traces is not empty before load: it has a row of trace %x", id)
}

func without(all, have []string) []string {
	var missing []string
	for _, name := range all {
		if !slices.Contains(have, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// fits compares what the server reports with what was asked. NetworkTopologyStrategy names data
// centres; SimpleStrategy has one factor. A setting proves nothing: Jaeger 2.13 ignores
// schema.datacenter, later versions use it, and the result must be the same.
func fits(replication map[string]string, dataCenter string, factor int) error {
	class := replication["class"]
	key := dataCenter
	if strings.HasSuffix(class, "SimpleStrategy") {
		key = "replication_factor"
	}
	if got := replication[key]; got != strconv.Itoa(factor) {
		return fmt.Errorf("its replication is %s; asked for factor %d in data centre %q",
			describeReplication(replication), factor, dataCenter)
	}
	return nil
}

// describeReplication gives a replication map in one spelling, class first.
func describeReplication(replication map[string]string) string {
	var parts []string
	for name, value := range replication {
		if name != "class" {
			parts = append(parts, name+": "+value)
		}
	}
	slices.Sort(parts)
	class := replication["class"]
	class = class[strings.LastIndex(class, ".")+1:]
	return strings.Join(append([]string{class}, parts...), ", ")
}

// plainName is a keyspace name that needs no quoting: 48 characters at most, as the engines allow.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

func (k *keyspace) traces() string { return k.name + ".traces" }

// Drop implements Store. Snapshots are not made: auto_snapshot is off on every node.
func (k *keyspace) Drop(ctx context.Context) error {
	if !plainName.MatchString(k.name) {
		return fmt.Errorf("drop keyspace %q: not a name this lab gives", k.name)
	}
	up := k.cluster.alive()
	if len(up) == 0 {
		return fmt.Errorf("drop keyspace %s: %w", k.name, errNoNode)
	}
	session, err := k.cluster.session(ctx, up[0])
	if err != nil {
		return fmt.Errorf("drop keyspace %s: %w", k.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, dropWithin)
	defer cancel()
	if err := session.Query("DROP KEYSPACE IF EXISTS " + k.name).WithContext(ctx).Exec(); err != nil {
		return fmt.Errorf("drop keyspace %s: %w", k.name, err)
	}
	return nil
}
