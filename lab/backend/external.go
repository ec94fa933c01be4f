package backend

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gocql/gocql"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

const (
	tracesAPiece  = 32 // traces that are read, retried and counted together
	piecesAtOnce  = 8  // a cluster of somebody else has other work to do
	pieceTimeout  = 30 * time.Second
	resolveWithin = 5 * time.Second
)

// Connect opens the database of a target, which the lab neither started nor owns. Its cluster has
// no nodes that could be watched, its store creates, counts and drops nothing and reads nothing but
// the partitions of the run's own trace ids: other data in it is not seen, so foreign is not known.
func Connect(ctx context.Context, t spec.TargetCQL) (Cluster, error) {
	c := &external{target: t}
	for _, addr := range t.Hosts {
		session, at, err := c.open(ctx, addr)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("connect to the target's database: cql.hosts: %q: %w%s", addr, err, c.remedy(err))
		}
		c.hosts = append(c.hosts, externalHost{named: addr, addr: at, session: session})
	}
	return c, nil
}

type external struct {
	target spec.TargetCQL
	hosts  []externalHost
}

type externalHost struct {
	named, addr string // as the file says, and resolved
	session     *gocql.Session
}

func (c *external) open(ctx context.Context, addr string) (*gocql.Session, string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, "", err
	}
	bounded, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(bounded, "ip", host) // the session is held to one address
	if err != nil {
		return nil, "", err
	}
	if v4 := slices.IndexFunc(ips, func(ip netip.Addr) bool { return ip.Unmap().Is4() }); v4 > 0 {
		ips[0] = ips[v4]
	}
	at := net.JoinHostPort(ips[0].Unmap().String(), port)
	session, err := openSessionWith(ctx, at, func(config *gocql.ClusterConfig) error { return c.secure(config, host) })
	return session, at, err
}

// secure adds credentials and TLS. The password is read where it is used and kept nowhere.
func (c *external) secure(config *gocql.ClusterConfig, host string) error {
	if c.target.User != "" {
		password, set := os.LookupEnv(c.target.PasswordEnv)
		if !set {
			return fmt.Errorf("cql.password_env: %q: no such variable is set", c.target.PasswordEnv)
		}
		config.Authenticator = gocql.PasswordAuthenticator{Username: c.target.User, Password: password}
	}
	if t := c.target.TLS; t.On() {
		name := t.ServerName
		if name == "" {
			name = host // the certificate is of the name in the file, not of the address it resolves to
		}
		config.SslOpts = &gocql.SslOptions{CaPath: t.CA, CertPath: t.Cert, KeyPath: t.Key, EnableHostVerification: true,
			Config: &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}}
	}
	return nil
}

// remedy names the fields that may mend a failed connection.
func (c *external) remedy(err error) string {
	text := strings.ToLower(err.Error())
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
	}
	switch {
	case says("cql.password_env"):
		return ""
	case says("authenticat", "password", "credentials"):
		return "; cql.user and cql.password_env say who connects"
	case says("tls:", "x509", "certificate", ".pem"):
		return "; cql.tls says which certificates are used, and no cql.tls that there is no TLS"
	case says("eof", "reset by peer", "no session within", "no response", "timeout"):
		return fmt.Sprintf("; is it CQL's port, and does it want TLS (cql.tls asks for it: %t)?", c.target.TLS.On())
	default:
		return "; is it up, and can this machine reach it?"
	}
}

// Nodes implements Cluster: there are none that the lab could watch.
func (c *external) Nodes() []node.Node { return nil }

// Close implements Cluster.
func (c *external) Close() {
	for _, h := range c.hosts {
		h.session.Close()
	}
}

// Engine implements Cluster: what the first server says, and how many nodes it lists with itself.
func (c *external) Engine(ctx context.Context) (record.Engine, error) {
	v, err := look(ctx, c.hosts[0].session)
	if err != nil {
		return record.Engine{}, fmt.Errorf("ask %s what it is: %w", c.hosts[0].named, err)
	}
	e := record.Engine{Name: cassandraName, Version: v.Release, Nodes: 1 + len(v.Peers),
		Evidence: []string{"system.local.release_version: " + v.Release}}
	var version, mode, build string
	err = c.hosts[0].session.Query("SELECT version, build_mode, build_id FROM system.versions WHERE key = 'local'").
		WithContext(ctx).Scan(&version, &mode, &build)
	switch {
	case err == nil:
		e.Name, e.Version = scyllaName, version
		e.Evidence = append(e.Evidence, fmt.Sprintf("system.versions: %s, build mode %s, build %s", version, mode, build))
	case ctx.Err() != nil:
		return record.Engine{}, fmt.Errorf("ask %s what it is: %w", c.hosts[0].named, err)
	default:
		e.Evidence = append(e.Evidence, "system.versions: not there")
	}
	e.Differences = []string{"it is the user's own: its settings, limits and other load are not known"}
	return e, nil
}

// Store implements Cluster: the target's own keyspace, whatever the run would call it.
func (c *external) Store(string) Store { return &externalStore{cluster: c} }

type externalStore struct{ cluster *external }

// NeedsSchema implements Store: nothing is created.
func (*externalStore) NeedsSchema() bool { return false }

// StorageV2 implements Store: no collector is started.
func (*externalStore) StorageV2(bool) map[string]any { return nil }

// EnvV1 implements Store.
func (*externalStore) EnvV1() []string { return nil }

// Check implements Store: Jaeger's tables are there. That they hold other data is no fault.
func (s *externalStore) Check(ctx context.Context) (string, error) {
	k := &keyspace{name: s.cluster.target.Keyspace}
	replication, err := k.checkNode(ctx, s.cluster.hosts[0].session)
	if err != nil {
		return "", fmt.Errorf("check the target's database: cql.keyspace: %q: %w", k.name, err)
	}
	return describeReplication(replication), nil
}

// Rows implements Store: counting would be a scan.
func (*externalStore) Rows(context.Context) (int64, error) { return -1, nil }

// Drop implements Store: nothing is removed.
func (*externalStore) Drop(context.Context) error { return nil }

// Read implements Store. It asks for the partitions of the run's own traces, in pieces; a piece
// that can't be read from one host is tried on the others.
func (s *externalStore) Read(ctx context.Context, ask Ask, sink func(record.Row) error) (ReadResult, error) {
	level, err := gocql.ParseConsistencyWrapper(s.cluster.target.Consistency)
	result := ReadResult{HasDuplicates: true, HasWriteTime: true, Consistency: s.cluster.target.Consistency,
		AbsentUnknown: level != gocql.All}
	if err != nil {
		return result, fmt.Errorf("read back the target: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pieces := make(chan piece)
	var readers sync.WaitGroup
	tally := tally{sink: sink}
	for range piecesAtOnce {
		readers.Go(func() {
			for p := range pieces {
				rows, err := s.attempt(ctx, p, level)
				if err != nil {
					tally.failed(fmt.Sprintf("traces %d to %d", p.first, p.first+len(p.ids)-1), err)
				} else if err := tally.pass(rows); err != nil {
					cancel(err)
				}
			}
		})
	}
	result.Ranges.Asked = send(ctx, pieces, ask.Traces)
	readers.Wait()
	result.Ranges.Read, result.Failed = tally.read, tally.texts()
	if cause := context.Cause(ctx); cause != nil {
		return result, fmt.Errorf("read back the target: %w", cause)
	}
	return result, nil
}

// piece is a few traces, counted from the first of the run.
type piece struct {
	first int
	ids   [][16]byte
}

// send cuts the traces into pieces and returns how many there are.
func send(ctx context.Context, pieces chan<- piece, traces func(func(high, low uint64) bool)) (asked int) {
	defer close(pieces)
	var p piece
	flush := func() bool {
		if len(p.ids) == 0 {
			return true
		}
		asked++
		select {
		case pieces <- p:
		case <-ctx.Done():
			return false
		}
		p = piece{first: p.first + len(p.ids)}
		return true
	}
	for high, low := range traces {
		p.ids = append(p.ids, partitionKey(high, low))
		if len(p.ids) == tracesAPiece && !flush() {
			return asked
		}
	}
	flush()
	return asked
}

// attempt reads a piece: on another host each time, with a growing pause.
func (s *externalStore) attempt(ctx context.Context, p piece, level gocql.Consistency) ([]record.Row, error) {
	return again(ctx, readAttempts, firstPause, func(attempt int) ([]record.Row, error) {
		return s.read(ctx, s.cluster.hosts[(p.first/tracesAPiece+attempt)%len(s.cluster.hosts)], p, level)
	}, never)
}

func (s *externalStore) read(ctx context.Context, h externalHost, p piece, level gocql.Consistency) (rows []record.Row, err error) {
	ctx, cancel := context.WithTimeout(ctx, pieceTimeout)
	defer cancel()
	statement := "SELECT trace_id, span_id, span_hash, WRITETIME(start_time) FROM " + s.cluster.target.Keyspace +
		".traces WHERE trace_id = ?"
	for _, id := range p.ids {
		iter := h.session.Query(statement, id[:]).Consistency(level).PageSize(pageRows).WithContext(ctx).Iter()
		var traceID []byte
		var span, hash, written int64
		for iter.Scan(&traceID, &span, &hash, &written) {
			if high, low := words(traceID); partitionKey(high, low) == id { // a server that answers more is not believed
				rows = append(rows, record.Row{ID: trace.ID{High: high, Low: low, Span: uint64(span)}, Hash: hash, WriteTime: written})
			}
		}
		if err := iter.Close(); err != nil {
			return nil, fmt.Errorf("%s: %w", h.named, err)
		}
	}
	return rows, nil
}

// partitionKey is a trace id as Jaeger stores it.
func partitionKey(high, low uint64) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}
