package backend

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// targetServer is a database of somebody else: Jaeger's tables, some of the run's spans and others.
func targetServer(t *testing.T, rows ...record.Row) *cqlServer {
	t.Helper()
	tables := systemTables(told{})
	tables["system_schema.keyspaces"] = cqlTable{columns: []cqlColumn{{"keyspace_name", varcharKind}, {"replication", mapKind}},
		rows: [][]any{{"jaeger", map[string]string{"class": "SimpleStrategy", "replication_factor": "3"}}}}
	schema := cqlTable{columns: []cqlColumn{{"keyspace_name", varcharKind}, {"table_name", varcharKind}, {"default_time_to_live", intKind}}}
	for _, name := range jaegerTables {
		schema.rows = append(schema.rows, []any{"jaeger", name, 172800})
	}
	tables["system_schema.tables"] = schema
	// The small server does not look at WHERE: it answers every row to every question.
	stored := cqlTable{columns: []cqlColumn{{"trace_id", blobKind}, {"span_id", bigintKind}, {"span_hash", bigintKind},
		{"writetime(start_time)", bigintKind}}}
	for _, r := range rows {
		id := partitionKey(r.ID.High, r.ID.Low)
		stored.rows = append(stored.rows, []any{id[:], int64(r.ID.Span), r.Hash, r.WriteTime})
	}
	tables["jaeger.traces"] = stored
	return newCQLServer(t, cassandraOptions, tables)
}

func connected(t *testing.T, consistency string, servers ...*cqlServer) Cluster {
	t.Helper()
	target := spec.TargetCQL{Engine: spec.Cassandra, Keyspace: "jaeger", Consistency: consistency}
	for _, s := range servers {
		target.Hosts = append(target.Hosts, s.addr)
	}
	c, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestTargetReadsItsOwnTracesOnly: by partition key, never a scan, and nothing is changed.
func TestTargetReadsItsOwnTracesOnly(t *testing.T) {
	numbering := trace.New(7, 0)
	var mine []record.Row
	for seq := range uint64(40) {
		high, low := numbering.TraceID(trace.Measured, 0, seq)
		mine = append(mine, record.Row{ID: trace.ID{High: high, Low: low, Span: seq + 1}, Hash: int64(seq), WriteTime: 1000 + int64(seq)})
	}
	other := record.Row{ID: trace.ID{High: 1, Low: 2, Span: 3}, Hash: 4, WriteTime: 5}
	server := targetServer(t, append(mine, other)...)
	store := connected(t, "ALL", server).Store("ignored")

	if replication, err := store.Check(t.Context()); err != nil || !strings.Contains(replication, "replication_factor: 3") {
		t.Errorf("check of a store with other data: %q, %v", replication, err)
	}
	read := map[trace.ID]record.Row{}
	result, err := store.Read(t.Context(), Ask{Traces: func(yield func(high, low uint64) bool) {
		for _, r := range mine {
			if !yield(r.ID.High, r.ID.Low) {
				return
			}
		}
	}}, func(r record.Row) error { read[r.ID] = r; return nil })
	if err != nil {
		t.Fatal(err)
	}
	want := ReadResult{Ranges: record.Ranges{Asked: 2, Read: 2}, HasDuplicates: true, HasWriteTime: true, Consistency: "ALL"}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("result:\n%s", diff)
	}
	if len(read) != len(mine) || read[mine[3].ID] != mine[3] {
		t.Errorf("%d rows, want %d; one is %+v, want %+v", len(read), len(mine), read[mine[3].ID], mine[3])
	}
	if _, seen := read[other.ID]; seen {
		t.Error("a row of somebody else was taken for the run's")
	}
	for _, statement := range server.statements() {
		if strings.Contains(statement, ".traces") && !strings.HasSuffix(statement, "WHERE trace_id = ?") {
			t.Errorf("not by partition key: %s", statement)
		}
		if !strings.HasPrefix(strings.TrimSpace(strings.ToUpper(statement)), "SELECT") {
			t.Errorf("the target was asked to %s", statement)
		}
	}
	if rows, err := store.Rows(t.Context()); rows != -1 || err != nil {
		t.Errorf("rows %d, %v: counting is a scan", rows, err)
	}
	before := len(server.statements())
	if err := store.Drop(t.Context()); err != nil || len(server.statements()) != before {
		t.Errorf("drop: %v, %d statements more", err, len(server.statements())-before)
	}
}

// TestTargetWeakReads: below ALL a span that is not read is not known to be absent.
func TestTargetWeakReads(t *testing.T) {
	store := connected(t, "LOCAL_QUORUM", targetServer(t)).Store("")
	result, err := store.Read(t.Context(), Ask{Traces: func(func(high, low uint64) bool) {}}, nil)
	if err != nil || !result.AbsentUnknown || result.HasForeign || result.Ranges.Asked != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestTargetEngineIsWhatItSays: the file's word for it counts nothing.
func TestTargetEngineIsWhatItSays(t *testing.T) {
	e, err := connected(t, "ALL", targetServer(t)).Engine(t.Context())
	if err != nil || e.Name != cassandraName || e.Version != "5.0.6" || e.Nodes != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	tables := scyllaTables(told{}, "6.2.3", "release")
	e, err = connected(t, "ALL", newCQLServer(t, scyllaSupported, tables)).Engine(t.Context())
	if err != nil || e.Name != scyllaName || e.Version != "6.2.3" {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestTargetFaults: each names the host and what was seen.
func TestTargetFaults(t *testing.T) {
	for _, test := range []struct{ hosts, want string }{{"127.0.0.1:1", "127.0.0.1:1"}, {"no-such-host.invalid:9042", "no-such-host.invalid"}} {
		_, err := Connect(t.Context(), spec.TargetCQL{Hosts: []string{test.hosts}, Keyspace: "jaeger", Consistency: "ALL"})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.hosts, err)
		}
	}
	server := targetServer(t)
	_, err := Connect(t.Context(), spec.TargetCQL{Hosts: []string{server.addr}, User: "me", PasswordEnv: "JAEGERLAB_TEST_NOT_SET"})
	if err == nil || !strings.Contains(err.Error(), "JAEGERLAB_TEST_NOT_SET") {
		t.Errorf("a password that is not there: %v", err)
	}
	empty := systemTables(told{})
	c := connected(t, "ALL", newCQLServer(t, cassandraOptions, empty))
	if _, err := c.Store("").Check(t.Context()); err == nil || !strings.Contains(err.Error(), "jaeger") {
		t.Errorf("a database without Jaeger's keyspace: %v", err)
	}
}

// TestTargetThatLetsNobodyIn: each fault names the field that mends it, within the session's bound.
func TestTargetThatLetsNobodyIn(t *testing.T) {
	guarded := targetServer(t)
	guarded.asks = "secret"
	t.Setenv("JAEGERLAB_TEST_RIGHT", "secret")
	t.Setenv("JAEGERLAB_TEST_WRONG", "guess")
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(web.Close)
	stranger := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(stranger, selfSigned(t), 0o644); err != nil {
		t.Fatal(err)
	}
	mute, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	for name, c := range map[string]struct {
		addr   string
		target spec.TargetCQL
		want   []string
	}{
		"the password":     {guarded.addr, spec.TargetCQL{User: "me", PasswordEnv: "JAEGERLAB_TEST_RIGHT"}, nil},
		"a wrong password": {guarded.addr, spec.TargetCQL{User: "me", PasswordEnv: "JAEGERLAB_TEST_WRONG"}, []string{"incorrect", "cql.password_env"}},
		"no password":      {guarded.addr, spec.TargetCQL{}, []string{"cql.user"}},
		"a certificate of somebody else": {web.Listener.Addr().String(), spec.TargetCQL{TLS: spec.TargetTLS{CA: stranger}},
			[]string{"x509", "cql.tls"}},
		"a server that says nothing": {mute.Addr().String(), spec.TargetCQL{}, []string{"cql.hosts", "cql.tls asks for it: false"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			c.target.Hosts, c.target.Keyspace, c.target.Consistency = []string{c.addr}, "jaeger", "ALL"
			cluster, err := Connect(ctx, c.target)
			if err == nil {
				cluster.Close()
			}
			if (err == nil) != (c.want == nil) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not name %q", err, want)
				}
			}
		})
	}
}

// selfSigned is a certificate that nobody else has signed anything with.
func selfSigned(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestPartitionKey: as Jaeger stores it, the high word first.
func TestPartitionKey(t *testing.T) {
	id := partitionKey(0x0102030405060708, 0x090a0b0c0d0e0f10)
	if binary.BigEndian.Uint64(id[:8]) != 0x0102030405060708 || id[15] != 0x10 {
		t.Errorf("%x", id)
	}
}
