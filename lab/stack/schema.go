package stack

import (
	"context"
	"fmt"
	"time"

	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
)

// Bounds of the schema's creation: on two nodes of half a CPU that just started, one statement
// can take more than ten seconds, and there are some twenty. The time-outs of a statement are
// the Store's.
const (
	schemaWithin     = 4 * time.Minute
	schemaRestartFor = 2 * time.Minute
)

// CreateSchema creates the schema of a store once, by the pinned Jaeger v2, the one owner for all
// collectors and both engines; it then stops that Jaeger. It returns at once for a store that
// needs none. What was created is for Store.Check to prove. Only ask's Arm.Backend, Store,
// Limits and Name are used.
func CreateSchema(ctx context.Context, env Env, ask Ask) error {
	if !ask.Store.NeedsSchema() {
		return nil
	}
	program, err := schemaProgram(env, ask)
	if err != nil {
		return fmt.Errorf("create schema: %w", err)
	}
	keyspace := keyspaceOf(ask, Flavour{Generation: V2})
	env.say("creating the schema of keyspace %s", keyspace)
	owner, err := startAgain(ctx, env, program, schemaRestartFor, func(ctx context.Context, n node.Node) error {
		what := "Jaeger to create keyspace " + keyspace
		return node.Wait(ctx, what, schemaWithin, n, func(ctx context.Context) error {
			status, body, err := get(ctx, "http://"+n.Addr("health")+"/status")
			if err == nil && status != 200 {
				err = fmt.Errorf("its health check answered %d: %.200s", status, body)
			}
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("create schema of keyspace %s on %s: %w", keyspace, ask.Arm.Backend, err)
	}
	stop(owner)
	if !ended(owner) {
		return fmt.Errorf("create schema of keyspace %s: %s did not stop within %s", keyspace, owner.Name(), stopWithin)
	}
	return nil
}

func schemaProgram(env Env, ask Ask) (node.Program, error) {
	binary, err := env.Binary(programV2)
	if err != nil {
		return node.Program{}, err
	}
	program := node.Program{
		Name: ask.Name, Host: spec.CollectorHost, Binary: binary, Limits: ask.Limits, Grace: 10 * time.Second,
	}
	err = addConfig(&program, schemaConfig(ask.Store.StorageV2(true)))
	return program, err
}

// schemaConfig is the smallest Jaeger that opens its storage: the storage extension creates the
// schema when it starts, before the health check turns to OK.
func schemaConfig(storage map[string]any) map[string]any {
	extensions := map[string]any{
		"healthcheckv2":  healthCheck(),
		"jaeger_storage": map[string]any{"backends": map[string]any{storeName: storage}},
	}
	return map[string]any{
		"extensions": extensions,
		"receivers":  map[string]any{"otlp": map[string]any{"protocols": map[string]any{"grpc": endpoint("otlp-grpc")}}},
		"exporters":  map[string]any{"jaeger_storage_exporter": map[string]any{"trace_storage": storeName}},
		"service": map[string]any{
			"extensions": extensionOrder(extensions),
			"pipelines": map[string]any{"traces": map[string]any{
				"receivers": []string{"otlp"}, "exporters": []string{"jaeger_storage_exporter"},
			}},
			"telemetry": telemetry("none", "info", nil),
		},
	}
}
