package backend_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocql/gocql"

	"jaegerlab/lab/node"
	"jaegerlab/lab/trace"
)

// connect opens a session of the test's own to one node, and to nothing else: a late event about a
// node's address inside a container network would have gocql drop the published one in mid-fill.
func connect(t testing.TB, n node.Node) *gocql.Session {
	t.Helper()
	config := gocql.NewCluster(n.Addr("cql"))
	config.ProtoVersion = 4
	config.DisableInitialHostLookup = true
	config.IgnorePeerAddr = true
	config.Events.DisableTopologyEvents = true
	config.Events.DisableNodeStatusEvents = true
	config.Events.DisableSchemaEvents = true
	config.ReconnectInterval = time.Second
	config.Timeout = 30 * time.Second
	config.ConnectTimeout = 10 * time.Second
	config.Consistency = gocql.All
	config.NumConns = 4
	session, err := config.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// filler writes rows of traces by CQL, with the columns and about the size that Jaeger writes.
type filler struct {
	session   *gocql.Session
	table     string
	numbering trace.Numbering
}

const usualHash = 1000

// key is the bytes of a trace id.
func key(id trace.ID) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, id.High), id.Low)
}

func (f filler) insert(id trace.ID, hash int64) error {
	var tags []string
	for i := range 10 {
		tags = append(tags, fmt.Sprintf("{key: 'tag-%d', value_type: 'string', value_string: 'value-%d'}", i, i))
	}
	return f.session.Query("INSERT INTO "+f.table+" (trace_id, span_id, span_hash, parent_id, operation_name, flags, "+
		"start_time, duration, tags, process) VALUES (?, ?, ?, 0, 'operation', 1, ?, 1000, ["+strings.Join(tags, ", ")+
		"], {service_name: 'service', tags: []})", key(id), int64(id.Span), hash, time.Now().UnixMicro()).Exec()
}

// id is the span of worker 0 at an index.
func (f filler) id(index uint64) trace.ID {
	return f.numbering.ID(trace.Ref{Phase: trace.Measured, Index: index})
}

// fill writes the first n traces.
func (f filler) fill(t testing.TB, n int) {
	t.Helper()
	work := make(chan uint64)
	errs := make(chan error, 1)
	var writers sync.WaitGroup
	for range 32 {
		writers.Go(func() {
			for index := range work {
				if err := f.insert(f.id(index), usualHash); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for index := range uint64(n * f.numbering.Width) {
		work <- index
	}
	close(work)
	writers.Wait()
	select {
	case err := <-errs:
		t.Fatalf("fill %s: %v", f.table, err)
	default:
	}
}

// delete removes k rows here and there and returns their ids.
func (f filler) delete(t testing.TB, k int) []trace.ID {
	t.Helper()
	var ids []trace.ID
	for i := range k {
		id := f.id(uint64(13 + 29*i))
		err := f.session.Query("DELETE FROM "+f.table+" WHERE trace_id = ? AND span_id = ? AND span_hash = ?",
			key(id), int64(id.Span), int64(usualHash)).Exec()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// double writes rows of k known ids with another hash and returns the ids.
func (f filler) double(t testing.TB, k int) []trace.ID {
	t.Helper()
	var ids []trace.ID
	for i := range k {
		id := f.id(uint64(1001 + 31*i))
		if err := f.insert(id, usualHash+1); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// foreign writes a row that no run of this numbering generates.
func (f filler) foreign(t testing.TB) []trace.ID {
	t.Helper()
	id := trace.New(f.numbering.Run+1, f.numbering.Width-1).ID(trace.Ref{Phase: trace.Measured, Index: 5})
	if err := f.insert(id, usualHash); err != nil {
		t.Fatal(err)
	}
	return []trace.ID{id}
}

// expectNoSnapshots asks the node whether dropping the keyspace left any.
func (f filler) expectNoSnapshots(t testing.TB) {
	t.Helper()
	rows := f.session.Query("SELECT keyspace_name, name FROM system_views.snapshots").Consistency(gocql.One).Iter()
	var keyspace, name string
	for rows.Scan(&keyspace, &name) {
		t.Errorf("dropping left snapshot %s of keyspace %s", name, keyspace)
	}
	if err := rows.Close(); err != nil {
		t.Logf("this server does not list its snapshots: %v", err)
	}
}
