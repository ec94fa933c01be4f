// Package backend is the storage under Jaeger: one file per engine, which brings its nodes up,
// proves that they are what was asked for, gives Jaeger's storage configuration, and reads back
// what was stored. It is a step of the flow spec -> backend, stack -> load -> observe -> ledger
// -> record -> report.
package backend

import (
	"context"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

// Backend starts clusters of one engine.
type Backend interface {
	// Start brings all nodes up, one after another, and returns when every node lists all others,
	// agrees on the schema version and is in the right data centre. On an error the nodes stay
	// with the runtime, whose Close ends them.
	Start(ctx context.Context, env Env, arm spec.Arm) (Cluster, error)
}

// Env is what a backend needs from the run.
type Env struct {
	Runtime node.Runtime
	Binary  func(program string) (node.Binary, error) // package setup: "cassandra", "scylla"
	Say     func(format string, args ...any)          // progress: what is being waited for

	// First, when set, is called once if a schema is better made while the first node is alone:
	// in a Cassandra of several nodes a driver waits a gossip round, a second, for each of Jaeger's
	// 17 statements. The next node starts when it has returned; its error ends the start. It may
	// make stores; Check proves them on all nodes later. Backends that gain nothing don't call it.
	First func(ctx context.Context, c Cluster) error
}

// Cluster is a running engine; for embedded engines it has no nodes.
type Cluster interface {
	Nodes() []node.Node
	// Engine asks the server what it is.
	Engine(ctx context.Context) (record.Engine, error)
	// Store names the storage of one round, a fresh keyspace: nothing is created yet.
	Store(name string) Store
	// Close ends the lab's own connections. The nodes stay with the runtime, whose Close ends them.
	Close()
}

// Store is the storage of one round.
type Store interface {
	// StorageV2 is the fragment below extensions.jaeger_storage.backends.<name> in a Jaeger v2
	// configuration. With create the collector makes the schema; measured collectors never do.
	StorageV2(create bool) map[string]any
	// EnvV1 configures the storage of Jaeger v1.
	EnvV1() []string
	// NeedsSchema reports whether an owner has to create the schema before measured collectors start.
	NeedsSchema() bool
	// Check proves before load: every table there, one schema version on every node, the asked
	// replication, zero rows. It returns the keyspace's replication as the server reports it.
	Check(ctx context.Context) (replication string, err error)
	// Rows is cheap enough to be polled while draining, and stands still exactly when nothing is
	// stored any more: rows written so far by the servers' own counters (a row written twice counts
	// twice), so it is no figure for the ledger. -1 when this store can't.
	Rows(ctx context.Context) (int64, error)
	// Read passes every stored row to sink, one at a time, in no order; from several goroutines
	// never at once. A range that can't be read is retried, then counted as not read, and none
	// of its rows are passed.
	Read(ctx context.Context, ask Ask, sink func(record.Row) error) (ReadResult, error)
	// Drop removes the storage of the round, snapshots included.
	Drop(ctx context.Context) error
}

// Ask is what embedded stores need for the read-back, which goes by trace ids.
type Ask struct {
	QueryAddr string                                  // host:port of Jaeger's query API (gRPC)
	Numbering trace.Numbering                         //
	Traces    func(yield func(high, low uint64) bool) // every trace that was generated
}

// ReadResult says how complete a read-back is and what this engine can't tell.
type ReadResult struct {
	Ranges        record.Ranges
	Failed        []string // a text for each range that could not be read
	HasForeign    bool     // the read would have shown ids that were never generated
	HasDuplicates bool     // the read would have shown two rows of one id
	HasWriteTime  bool
	Consistency   string // read consistency; "" where there is none
	AbsentUnknown bool   // a node was gone: a span not read is not known to be absent
	NoStore       bool   // nothing stores here, so nothing was read and nothing can be missing
}
