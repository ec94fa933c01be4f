package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
)

// QueueSpans is the capacity of the lab's v2 queue in spans, QueueConsumers how many of its
// requests are written at once. They are v1's own defaults (2,000 spans, 50 workers), so that
// the two generations differ in code and not in concurrency.
//
// How the queue behaves, read in exporterhelper of collector 0.140 (internal/queue): an item is
// one request of the client, since no batch processor merges them; its consumer writes the spans
// of it one after another, so 50 span writes are in flight while 50 requests are queued. The
// size counts requests being written too, and is given back when the write, retries included,
// has ended: 2,000 spans bound everything that was acknowledged and is not yet stored. With
// block_on_overflow a full queue holds the sender until there is room or its deadline passes,
// and that request is then not in the queue. wait_for_result stays off: the answer comes with
// the place in the queue. A request above the capacity is refused at once ("element size too
// large"). On SIGTERM retries end first, then the queue is written out without any time limit of
// its own; the grace of the node bounds it.
const (
	QueueSpans     = 2000
	QueueConsumers = 50
)

// Placeholders of package stack, on top of those of package node. Each is a whole YAML value.
const (
	placeholderStorage       = "${lab.storage}"
	placeholderReceivers     = "${lab.receivers}"
	placeholderReceiverNames = "${lab.receiver_names}"
)

// storeName is the name of the one backend in configurations that the lab writes.
const storeName = "store"

// configV2 renders the configuration of a v2 collector as a tree, still with the placeholders of
// package node.
func configV2(f Flavour, ask Ask) (map[string]any, error) {
	storage := ask.Store.StorageV2(false)
	switch {
	case f.Config != "":
		return ownConfig(f, ask, storage)
	case f.Stock:
		return stockConfig(ask, stockStorage(storage)), nil
	default:
		return labConfig(ask, storage), nil
	}
}

// labConfig is the lab's collector: v2.
func labConfig(ask Ask, storage map[string]any) map[string]any {
	extensions := map[string]any{
		"healthcheckv2":  healthCheck(),
		"jaeger_storage": map[string]any{"backends": map[string]any{storeName: storage}},
	}
	if ask.Arm.Backend.Engine.Embedded() {
		extensions["jaeger_query"] = queryExtension()
	}
	return map[string]any{
		"extensions": extensions,
		"receivers":  ask.Protocol.ReceiverV2,
		"exporters": map[string]any{"jaeger_storage_exporter": map[string]any{
			"trace_storage": storeName,
			"queue": map[string]any{
				"enabled": true, "sizer": "items", "queue_size": QueueSpans,
				"num_consumers": QueueConsumers, "block_on_overflow": true, "wait_for_result": false,
			},
			// A failed write is tried again for a minute, then its spans are lost and counted as
			// send_failed. A retry writes all spans of the request again: same keys, same rows.
			"retry_on_failure": map[string]any{
				"enabled": true, "initial_interval": "500ms", "max_interval": "5s", "max_elapsed_time": "60s",
			},
		}},
		"service": map[string]any{
			"extensions": extensionOrder(extensions),
			"pipelines": map[string]any{"traces": map[string]any{
				"receivers": sortedKeys(ask.Protocol.ReceiverV2),
				"exporters": []string{"jaeger_storage_exporter"},
			}},
			// Names of metrics are pinned: which suffixes are added by default changes with the version.
			"telemetry": telemetry("normal", "info", map[string]any{
				"without_type_suffix": false, "without_units": true, "without_scope_info": true,
			}),
		},
	}
}

// stockConfig is Jaeger 2.13's own example for the backend (config-cassandra.yaml,
// config-badger.yaml, config.yaml): batch processor, adaptive sampling where it is shipped,
// no queue, no retry, debug logs. What differs: addresses, keyspace or folder and a memory store
// large enough for the run; receivers and storage that nobody uses (archive) are left out;
// the collector does not create the schema.
func stockConfig(ask Ask, storage map[string]any) map[string]any {
	extensions := map[string]any{
		"healthcheckv2":  healthCheck(),
		"jaeger_query":   queryExtension(),
		"jaeger_storage": map[string]any{"backends": map[string]any{storeName: storage}},
	}
	processors, order := map[string]any{"batch": nil}, []string{"batch"}
	level := "debug"
	if ask.Arm.Backend.Engine == spec.Badger {
		level = "info"
	} else {
		processors["adaptive_sampling"] = nil
		order = append(order, "adaptive_sampling")
		extensions["remote_sampling"] = map[string]any{
			"adaptive": map[string]any{"sampling_store": storeName, "initial_sampling_probability": 0.1},
			"http":     endpoint("sampling-http"),
			"grpc":     endpoint("sampling-grpc"),
		}
	}
	return map[string]any{
		"extensions": extensions,
		"receivers":  ask.Protocol.ReceiverV2,
		"processors": processors,
		"exporters":  map[string]any{"jaeger_storage_exporter": map[string]any{"trace_storage": storeName}},
		"service": map[string]any{
			"extensions": extensionOrder(extensions),
			"pipelines": map[string]any{"traces": map[string]any{
				"receivers":  sortedKeys(ask.Protocol.ReceiverV2),
				"processors": order,
				"exporters":  []string{"jaeger_storage_exporter"},
			}},
			"telemetry": telemetry("detailed", level, nil),
		},
	}
}

// extensionOrder starts the storage before what uses it, and the health check last: its port
// opens when the storage is there.
func extensionOrder(extensions map[string]any) []string {
	var order []string
	for _, name := range []string{"jaeger_storage", "jaeger_query", "remote_sampling", "healthcheckv2"} {
		if _, ok := extensions[name]; ok {
			order = append(order, name)
		}
	}
	return order
}

// stockStorage leaves only where the store is: query and connection settings stay as shipped.
func stockStorage(storage map[string]any) map[string]any {
	cassandra, ok := storage["cassandra"].(map[string]any)
	if !ok {
		return storage
	}
	schema := pick(cassandra["schema"], "keyspace", "create")
	connection := pick(cassandra["connection"], "servers", "port", "auth", "tls")
	return map[string]any{"cassandra": map[string]any{"schema": schema, "connection": connection}}
}

func pick(section any, keys ...string) map[string]any {
	all, _ := section.(map[string]any)
	picked := map[string]any{}
	for _, key := range keys {
		if value, ok := all[key]; ok {
			picked[key] = value
		}
	}
	return picked
}

// ownConfig fills the user's configuration.
func ownConfig(f Flavour, ask Ask, storage map[string]any) (map[string]any, error) {
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(f.Config), &tree); err != nil {
		return nil, fmt.Errorf("collector file %s: config: %w", f.File, err)
	}
	var missing []string
	need := func(placeholder, why string) {
		missing = append(missing, fmt.Sprintf("config: %s is missing: %s", placeholder, why))
	}
	clientPort := "${port." + ask.Protocol.Port + "}"
	if !mentions(tree, placeholderReceivers) && !mentions(tree, clientPort) {
		need(placeholderReceivers+" or "+clientPort, "client "+ask.Protocol.Name+" sends there")
	}
	if ask.Arm.Backend.Engine.Embedded() && !mentions(tree, "${port.query-grpc}") {
		need("${port.query-grpc}", ask.Arm.Backend.String()+" is read back through the query API")
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("collector file %s:\n%s", f.File, strings.Join(missing, "\n"))
	}
	filled := fill(tree, map[string]any{
		placeholderStorage:       storage,
		placeholderReceivers:     ask.Protocol.ReceiverV2,
		placeholderReceiverNames: sortedKeys(ask.Protocol.ReceiverV2),
	})
	return filled.(map[string]any), nil
}

// fill replaces every value that is exactly a placeholder.
func fill(value any, values map[string]any) any {
	switch v := value.(type) {
	case map[string]any:
		filled := make(map[string]any, len(v))
		for key, inner := range v {
			filled[key] = fill(inner, values)
		}
		return filled
	case []any:
		filled := make([]any, len(v))
		for i, inner := range v {
			filled[i] = fill(inner, values)
		}
		return filled
	case string:
		if replacement, ok := values[v]; ok {
			return replacement
		}
	}
	return value
}

func mentions(tree any, placeholder string) bool {
	data, err := yaml.Marshal(tree)
	return err == nil && strings.Contains(string(data), placeholder)
}

func endpoint(port string) map[string]any {
	return map[string]any{"endpoint": "${ip}:${port." + port + "}"}
}

func healthCheck() map[string]any {
	return map[string]any{"use_v2": true, "http": endpoint("health")}
}

func queryExtension() map[string]any {
	return map[string]any{
		"storage": map[string]any{"traces": storeName},
		"http":    endpoint("query"),
		"grpc":    endpoint("query-grpc"),
	}
}

func telemetry(metrics, logs string, names map[string]any) map[string]any {
	exporter := map[string]any{"host": "${ip}", "port": "${port.metrics}"}
	maps.Copy(exporter, names)
	reader := map[string]any{"pull": map[string]any{"exporter": map[string]any{"prometheus": exporter}}}
	return map[string]any{
		"resource": map[string]any{"service.name": "jaeger"},
		"metrics":  map[string]any{"level": metrics, "readers": []any{reader}},
		"logs":     map[string]any{"level": logs},
	}
}

// allPortsV2 are the ports a v2 configuration may name, with their numbers inside a container.
var allPortsV2 = []node.Port{
	{Name: "otlp-grpc", Number: 4317}, {Name: "otlp-http", Number: 4318}, {Name: "thrift-http", Number: 14268},
	{Name: "thrift-udp", Number: 6831, UDP: true},
	{Name: "metrics", Number: 8888}, {Name: "health", Number: 13133},
	{Name: "query", Number: 16686}, {Name: "query-grpc", Number: 16685},
	{Name: "sampling-http", Number: 5778}, {Name: "sampling-grpc", Number: 5779},
}

// portsV2 are the ports that the configuration uses.
func portsV2(tree map[string]any) []node.Port {
	var used []node.Port
	for _, port := range allPortsV2 {
		if mentions(tree, "${port."+port.Name+"}") {
			used = append(used, port)
		}
	}
	return used
}

func sortedKeys(section map[string]any) []string { return slices.Sorted(maps.Keys(section)) }
