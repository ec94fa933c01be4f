package backend

import (
	"context"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// null is no store: a black hole stands in the collector's place, counts spans and keeps nothing.
// What it takes in a second is what the generator can send, and no store is compared with it.
type null struct{}

// Start implements Backend.
func (null) Start(context.Context, Env, spec.Arm) (Cluster, error) { return null{}, nil }

// Nodes implements Cluster.
func (null) Nodes() []node.Node { return nil }

// Close implements Cluster.
func (null) Close() {}

// Engine implements Cluster.
func (null) Engine(context.Context) (record.Engine, error) {
	return record.Engine{Name: string(spec.Null), Evidence: []string{"no store: a black hole counts spans and keeps none"}}, nil
}

// Store implements Cluster.
func (null) Store(string) Store { return nullStore{} }

type nullStore struct{}

// NeedsSchema implements Store.
func (nullStore) NeedsSchema() bool { return false }

// StorageV2 implements Store: no Jaeger runs.
func (nullStore) StorageV2(bool) map[string]any { return nil }

// EnvV1 implements Store.
func (nullStore) EnvV1() []string { return nil }

// Check implements Store.
func (nullStore) Check(context.Context) (string, error) { return "none: nothing is stored", nil }

// Rows implements Store.
func (nullStore) Rows(context.Context) (int64, error) { return -1, nil }

// Drop implements Store.
func (nullStore) Drop(context.Context) error { return nil }

// Read implements Store: there is nothing to read, and that is no loss.
func (nullStore) Read(context.Context, Ask, func(record.Row) error) (ReadResult, error) {
	return ReadResult{NoStore: true}, nil
}
