package stack

import (
	"context"
	"errors"
	"sync"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/node"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// fakeRuntime starts nodes that behave as its script says, without a program.
type fakeRuntime struct {
	name   spec.Runtime
	launch func(p node.Program, attempt int) *fakeNode

	mu      sync.Mutex
	started []node.Program
	nodes   []*fakeNode
}

func (r *fakeRuntime) Name() spec.Runtime          { return r.name }
func (r *fakeRuntime) Host() record.Host           { return record.Host{} }
func (r *fakeRuntime) Close(context.Context) error { return nil }

func (r *fakeRuntime) Start(_ context.Context, p node.Program) (node.Node, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = append(r.started, p)
	n := r.launch(p, len(r.started))
	if n == nil {
		return nil, errors.New("start " + p.Name + ": the script has no such node")
	}
	n.program = p
	r.nodes = append(r.nodes, n)
	return n, nil
}

func (r *fakeRuntime) running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, node := range r.nodes {
		select {
		case <-node.done:
		default:
			n++
		}
	}
	return n
}

type fakeNode struct {
	program node.Program
	addrs   map[string]string
	tail    string
	exit    string
	done    chan struct{}
	once    sync.Once
}

func live(addrs map[string]string) *fakeNode {
	return &fakeNode{addrs: addrs, done: make(chan struct{})}
}

// dead is a node that ended at once, as a collector without a keyspace does.
func dead(exit, tail string) *fakeNode {
	n := &fakeNode{exit: exit, tail: tail, done: make(chan struct{})}
	n.end()
	return n
}

func (n *fakeNode) end()                         { n.once.Do(func() { close(n.done) }) }
func (n *fakeNode) Name() string                 { return n.program.Name }
func (n *fakeNode) Program() node.Program        { return n.program }
func (n *fakeNode) Addr(port string) string      { return n.addrs[port] }
func (n *fakeNode) PeerAddr(port string) string  { return "peer-" + n.addrs[port] }
func (n *fakeNode) PeerHost() string             { return n.program.Name }
func (n *fakeNode) Done() <-chan struct{}        { return n.done }
func (n *fakeNode) Exit() string                 { return n.exit }
func (n *fakeNode) LogFile() string              { return "" }
func (n *fakeNode) Tail(int) string              { return n.tail }
func (n *fakeNode) Stop(context.Context) error   { n.end(); return nil }
func (n *fakeNode) Kill(context.Context) error   { n.end(); return nil }
func (n *fakeNode) Pause(context.Context) error  { return nil }
func (n *fakeNode) Resume(context.Context) error { return nil }

func (n *fakeNode) Read(context.Context) (node.Usage, error) { return node.Usage{}, nil }

func (n *fakeNode) LimitsInForce(context.Context) (*spec.Limits, error) { return nil, nil }

// fakeStore is the storage of one round as package backend describes it.
type fakeStore struct {
	backend.Store
	v2     map[string]any
	v1     []string
	schema bool
}

func (s fakeStore) StorageV2(create bool) map[string]any {
	if cassandra, ok := s.v2["cassandra"].(map[string]any); ok {
		schema := map[string]any{"keyspace": "jaeger_run1", "create": create, "datacenter": "datacenter1"}
		return map[string]any{"cassandra": map[string]any{
			"schema": schema, "connection": cassandra["connection"], "query": cassandra["query"],
		}}
	}
	return s.v2
}

func (s fakeStore) EnvV1() []string   { return s.v1 }
func (s fakeStore) NeedsSchema() bool { return s.schema }

func cassandraStore() fakeStore {
	return fakeStore{
		schema: true,
		v1:     []string{"SPAN_STORAGE_TYPE=cassandra", "CASSANDRA_SERVERS=127.0.0.1", "CASSANDRA_KEYSPACE=jaeger_run1"},
		v2: map[string]any{"cassandra": map[string]any{
			"connection": map[string]any{
				"servers": []any{"127.0.0.1", "127.0.0.2"}, "port": 9042, "timeout": "10s", "local_dc": "datacenter1",
				"tls": map[string]any{"insecure": true},
			},
			"query": map[string]any{"timeout": "10s", "max_retry_attempts": 3},
		}},
	}
}

func memoryStore() fakeStore {
	return fakeStore{
		v1: []string{"SPAN_STORAGE_TYPE=memory"},
		v2: map[string]any{"memory": map[string]any{"max_traces": 1000000}},
	}
}

func badgerStore() fakeStore {
	return fakeStore{
		v1: []string{"SPAN_STORAGE_TYPE=badger", "BADGER_EPHEMERAL=false",
			"BADGER_DIRECTORY_KEY=${dir}/keys", "BADGER_DIRECTORY_VALUE=${dir}/values"},
		v2: map[string]any{"badger": map[string]any{
			"directories": map[string]any{"keys": "${dir}/keys", "values": "${dir}/values"}, "ephemeral": false,
		}},
	}
}

func otlpGRPC() protocol.Protocol {
	return protocol.Protocol{Name: "otlp-grpc", Port: "otlp-grpc", ReceiverV2: map[string]any{
		"otlp": map[string]any{"protocols": map[string]any{"grpc": endpoint("otlp-grpc")}},
	}}
}

func thriftHTTP() protocol.Protocol {
	return protocol.Protocol{Name: "thrift-http", Port: "thrift-http", ReceiverV2: map[string]any{
		"jaeger": map[string]any{"protocols": map[string]any{"thrift_http": endpoint("thrift-http")}},
	}}
}

func arm(engine spec.Engine, collector string) spec.Arm {
	b := spec.Backend{Engine: engine}
	if !engine.Embedded() {
		b.Nodes = 2
	}
	return spec.Arm{Backend: b, Collector: collector, Client: "otlp-grpc", Profile: spec.None, Replication: 1}
}

func fakeEnv(r *fakeRuntime) Env {
	return Env{Runtime: r, Binary: func(program string) (node.Binary, error) {
		return node.Binary{Command: []string{"/bin/" + program}, Version: "1", Source: program + "@v1"}, nil
	}}
}
