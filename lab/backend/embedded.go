package backend

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

const (
	memoryMaxTraces = 2_000_000 // memory storage evicts the oldest trace silently beyond it
	badgerTTL       = "72h0m0s" // Jaeger's default
	badgerKeys      = "${dir}/badger/keys"
	badgerValues    = "${dir}/badger/values"
)

// embedded is a store inside the collector's own process: badger or memory. It starts nothing.
type embedded struct{ engine spec.Engine }

// Start implements Backend.
func (e embedded) Start(_ context.Context, _ Env, arm spec.Arm) (Cluster, error) {
	if arm.Replication > 1 {
		return nil, fmt.Errorf("start %s: it stores each span once, not %d times; set LAB_REPLICATION=1 or take "+
			"other backends", e.engine, arm.Replication)
	}
	return e, nil
}

// Nodes implements Cluster.
func (embedded) Nodes() []node.Node { return nil }

// Close implements Cluster.
func (embedded) Close() {}

// Engine implements Cluster. There is no server to ask: the version is the collector's.
func (e embedded) Engine(context.Context) (record.Engine, error) {
	engine := record.Engine{
		Name:     string(e.engine),
		Evidence: []string{"part of the collector's process, by its configuration; its version is the collector's"},
	}
	if e.engine == spec.Memory {
		engine.Differences = []string{fmt.Sprintf("max_traces %d: Jaeger's default evicts silently or grows without bound",
			memoryMaxTraces)}
	} else {
		engine.Differences = []string{"ephemeral off: data goes to disk, into the collector's own folder"}
	}
	return engine, nil
}

// Store implements Cluster.
func (e embedded) Store(name string) Store { return embeddedStore{engine: e.engine, name: name} }

// embeddedStore is empty when its collector starts and gone when it ends, so one collector is one
// round.
type embeddedStore struct {
	engine spec.Engine
	name   string
}

// NeedsSchema implements Store.
func (embeddedStore) NeedsSchema() bool { return false }

// StorageV2 implements Store.
func (s embeddedStore) StorageV2(bool) map[string]any {
	if s.engine == spec.Memory {
		return map[string]any{"memory": map[string]any{"max_traces": memoryMaxTraces}}
	}
	return map[string]any{"badger": map[string]any{
		"directories": map[string]any{"keys": badgerKeys, "values": badgerValues},
		"ephemeral":   false,
		"consistency": false, // Jaeger's default: writes are not synced one by one
		"ttl":         map[string]any{"spans": badgerTTL},
	}}
}

// EnvV1 implements Store.
func (s embeddedStore) EnvV1() []string {
	if s.engine == spec.Memory {
		return []string{"SPAN_STORAGE_TYPE=memory", "MEMORY_MAX_TRACES=" + strconv.Itoa(memoryMaxTraces)}
	}
	return []string{
		"SPAN_STORAGE_TYPE=badger", "BADGER_EPHEMERAL=false", "BADGER_CONSISTENCY=false",
		"BADGER_DIRECTORY_KEY=" + badgerKeys, "BADGER_DIRECTORY_VALUE=" + badgerValues,
		"BADGER_SPAN_STORE_TTL=" + badgerTTL,
	}
}

// Check implements Store: a store that its collector has just made is empty.
func (s embeddedStore) Check(context.Context) (string, error) { return "none: one process", nil }

// Rows implements Store: there is no cheap count.
func (embeddedStore) Rows(context.Context) (int64, error) { return -1, nil }

// Drop implements Store: the store goes with its collector's folder.
func (embeddedStore) Drop(context.Context) error { return nil }

// Read implements Store, through the collector's query API, by trace ids.
func (s embeddedStore) Read(ctx context.Context, ask Ask, sink func(record.Row) error) (ReadResult, error) {
	result := ReadResult{HasDuplicates: s.engine == spec.Memory} // badger's key is (trace, start, span)
	if ask.QueryAddr == "" || ask.Traces == nil {
		return result, fmt.Errorf("read back %s: %w", s.engine, errors.New("no query address or no trace ids were given"))
	}
	api := newQueryAPI(ask.QueryAddr)
	traces, err := api.read(ctx, ask, sink, &result)
	if err != nil {
		return result, fmt.Errorf("read back %s: %w", s.engine, err)
	}
	if s.engine == spec.Memory && traces > memoryMaxTraces {
		result.AbsentUnknown = true
		result.Failed = append(result.Failed, fmt.Sprintf("%d traces were generated, memory storage keeps %d: older ones "+
			"may have been evicted after they were stored", traces, memoryMaxTraces))
	}
	return result, nil
}
