package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gocql/gocql"

	"jaegerlab/lab/node"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

func TestEngineIsWhatTheServerSays(t *testing.T) {
	twoOptions := map[string][]string{"SCYLLA_NR_SHARDS": {"1"}}
	for name, c := range map[string]struct {
		kind    kind
		options map[string][]string
		tables  map[string]cqlTable
		page    string // metrics page; "" = none
		want    record.Engine
		fails   string
	}{
		"ScyllaDB": {kind: scylla{}, options: scyllaSupported, tables: scyllaTables(told{}, "6.2.3-0.20250119", "release"),
			page: "scylla_reactor_utilization 1\n", want: record.Engine{Name: "ScyllaDB", Version: "6.2.3-0.20250119"}},
		"Cassandra": {kind: cassandra{}, options: cassandraOptions, tables: systemTables(told{}),
			want: record.Engine{Name: "Apache Cassandra", Version: "5.0.6"}},
		"stand-in": {kind: scylla{}, options: cassandraOptions, tables: systemTables(told{}), page: "jaegerlab_stand_in 1\n",
			want: record.Engine{Name: "Apache Cassandra", Version: "5.0.6", StandIn: true}},
		"Cassandra that does not say it stands in": {kind: scylla{}, options: cassandraOptions, tables: systemTables(told{}),
			page: "jaegerlab_stand_in 0\n", fails: "asked for ScyllaDB, but the server is Apache Cassandra 5.0.6"},
		"ScyllaDB asked for as Cassandra": {kind: cassandra{}, options: scyllaSupported,
			tables: scyllaTables(told{}, "6.2.3", "release"), fails: "asked for Apache Cassandra, but the server is ScyllaDB"},
		"debug build": {kind: scylla{}, options: scyllaSupported, tables: scyllaTables(told{}, "6.2.3", "debug"),
			page: "x 1\n", fails: `build mode is "debug"`},
		"options without versions": {kind: scylla{}, options: twoOptions, tables: systemTables(told{}),
			page: "x 1\n", fails: "system.versions can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fakeCluster(t, c.kind, newCQLServer(t, c.options, c.tables))
			if c.page != "" {
				page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					fmt.Fprint(w, c.page)
				}))
				defer page.Close()
				cluster.nodes[0].(*fakeNode).addrs["metrics"] = strings.TrimPrefix(page.URL, "http://")
			}
			got, err := cluster.Engine(t.Context())
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("Engine() = %v; want an error with %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != c.want.Name || got.Version != c.want.Version || got.StandIn != c.want.StandIn || got.Nodes != 1 {
				t.Errorf("Engine() = %+v; want %+v", got, c.want)
			}
			if len(got.Evidence) < 3 || len(got.Differences) == 0 {
				t.Errorf("evidence %q, differences %q: too little", got.Evidence, got.Differences)
			}
		})
	}
}

// Case 26: addresses that exist only inside the cluster's network are never dialled.
func TestSessionIgnoresAddressesOfTheInside(t *testing.T) {
	server := newCQLServer(t, cassandraOptions,
		systemTables(told{address: elsewhere, peers: []net.IP{net.IPv4(10, 255, 0, 2)}}))
	began := time.Now()
	session, err := openSession(t.Context(), server.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	v, err := look(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > sessionWithin/2 {
		t.Errorf("session and look took %s", took)
	}
	if v.joined() != 1 || v.DataCenter != "datacenter1" || len(v.Tokens) != 2 {
		t.Errorf("view = %+v", v)
	}
}

func TestUnreachablePeerIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	if _, err := openSession(t.Context(), addr); err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("openSession() = %v; want an error that names %s", err, addr)
	}
}

// Case 37: an open port is not a ready server.
func TestSilentListenerIsNotReady(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = askOptions(ctx, listener.Addr().String(), cqlVersion)
	if err == nil || !strings.Contains(err.Error(), "accepts connections but gave no answer") {
		t.Errorf("askOptions() = %v", err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("askOptions() = %v; want a deadline", err)
	}
}

// Case 17 (c): the versions the server offers are in the text.
func TestProtocolVersionIsRefusedWithWhatIsOffered(t *testing.T) {
	server := newCQLServer(t, cassandraOptions, systemTables(told{}))
	_, err := askOptions(t.Context(), server.addr, 2)
	if err == nil || !strings.Contains(err.Error(), "supported versions are (4/v4)") {
		t.Errorf("askOptions(version 2) = %v", err)
	}
	err = speaks(map[string][]string{"PROTOCOL_VERSIONS": {"5/v5", "6/v6-beta"}})
	if err == nil || !strings.Contains(err.Error(), "it offers 5/v5, 6/v6-beta") {
		t.Errorf("speaks() = %v", err)
	}
	for _, options := range []map[string][]string{cassandraOptions, scyllaSupported} {
		if err := speaks(options); err != nil {
			t.Errorf("speaks(%v) = %v", options, err)
		}
	}
}

// Case 17 (a), (b): replication factor and node count are refused with both values.
func TestStartRefusesWhatNoClusterCanDo(t *testing.T) {
	for _, c := range []struct {
		arm  spec.Arm
		want string
	}{
		{anArm(spec.Cassandra, 2, 3), "replication factor 3 does not fit 2 nodes"},
		{anArm(spec.Cassandra, 2, 0), "replication factor 0 does not fit 2 nodes"},
		{anArm(spec.Cassandra, 0, 1), "it has 0 nodes"},
		{anArm(spec.Scylla, 3, 1), "ScyllaDB runs in containers only"},
	} {
		b, err := For(c.arm.Backend.Engine)
		if err != nil {
			t.Fatal(err)
		}
		runtime := &fakeRuntime{name: spec.Process}
		_, err = b.Start(t.Context(), Env{Runtime: runtime, Binary: noBinary}, c.arm)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Start(%s, factor %d) = %v; want %q", c.arm.Backend, c.arm.Replication, err, c.want)
		}
		if began := runtime.names(); began != "" {
			t.Errorf("Start(%s) started %s before it refused", c.arm.Backend, began)
		}
	}
	if _, err := For("mongodb"); err == nil {
		t.Error("For(mongodb) gives a backend")
	}
}

func noBinary(program string) (node.Binary, error) {
	return node.Binary{}, fmt.Errorf("%s is not here", program)
}

func imageBinary(string) (node.Binary, error) { return node.Binary{Image: "cassandra:5.0"}, nil }

// Case 22: nodes are started one after another, the next only when the previous has joined; a
// join refused because of another one is tried once more.
func TestNodesJoinOneAfterAnother(t *testing.T) {
	seed := newCQLServer(t, cassandraOptions, systemTables(told{}))
	second := newCQLServer(t, cassandraOptions, systemTables(told{peers: []net.IP{elsewhere}}))
	refusals := 1
	runtime := &fakeRuntime{name: spec.Docker}
	runtime.start = func(p node.Program) (node.Node, error) {
		if p.Name == "cassandra-1" {
			return newFakeNode(p.Name, map[string]string{"cql": seed.addr}), nil
		}
		seed.set("system.peers", systemTables(told{peers: []net.IP{elsewhere}})["system.peers"])
		n := newFakeNode(p.Name, map[string]string{"cql": second.addr})
		if refusals > 0 {
			refusals--
			n.addrs["cql"] = "127.0.0.1:1"
			n.die("Other bootstrapping/leaving/moving nodes detected, cannot bootstrap while " +
				"cassandra.consistent.rangemovement is true")
		}
		return n, nil
	}
	alone := ""
	env := Env{Runtime: runtime, Binary: imageBinary, First: func(_ context.Context, c Cluster) error {
		alone = runtime.names()
		options := c.Store("x").StorageV2(true)["cassandra"].(map[string]any)
		if dc := options["schema"].(map[string]any)["datacenter"]; dc != "datacenter1" {
			t.Errorf("the first node alone: data centre %q", dc)
		}
		return nil
	}}
	cluster, err := cqlBackend{kind: cassandra{}}.Start(t.Context(), env, anArm(spec.Cassandra, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	if alone != "cassandra-1" {
		t.Errorf("First was called when %q had started", alone)
	}
	if got, want := runtime.names(), "cassandra-1 cassandra-2 cassandra-2"; got != want {
		t.Errorf("started %q; want %q", got, want)
	}
	if n := len(cluster.Nodes()); n != 2 {
		t.Errorf("the cluster has %d nodes", n)
	}
}

// Case 23: a node that dies at once fails the start at once, with the end of its log.
func TestNodeThatDiesEndsTheStart(t *testing.T) {
	runtime := &fakeRuntime{name: spec.Docker, start: func(p node.Program) (node.Node, error) {
		n := newFakeNode(p.Name, map[string]string{"cql": "127.0.0.1:1"})
		n.die("Seed provider lists no seeds: nosuchhost")
		return n, nil
	}}
	began := time.Now()
	_, err := cqlBackend{kind: cassandra{}}.Start(t.Context(), Env{Runtime: runtime, Binary: imageBinary},
		anArm(spec.Cassandra, 2, 1))
	for _, want := range []string{"start cassandra:2", "cassandra-1 has ended: exit status 3", "nosuchhost",
		"127.0.0.1:1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Start() = %v; want %q in it", err, want)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestViewsThatAreNoCluster(t *testing.T) {
	other := func(dataCenter, schema string) peer { return peer{"10.0.0.2", dataCenter, schema, "5.0.6", 16} }
	whole := view{Release: "5.0.6", DataCenter: "datacenter1", Schema: "a", Bootstrapped: "COMPLETED",
		Peers: []peer{other("datacenter1", "a")}}
	if err := agree([]view{whole, whole}); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*view){
		"node 2: it lists 0 of 1 peers":  func(v *view) { v.Peers = nil }, // two nodes, each its own seed
		"(no tokens yet)":                func(v *view) { v.Peers = []peer{{"10.0.0.2", "datacenter1", "a", "5.0.6", 0}} },
		"it has not joined yet":          func(v *view) { v.Bootstrapped = "IN_PROGRESS" },
		`its peer 10.0.0.2 in "dc9"`:     func(v *view) { v.Peers = []peer{other("dc9", "a")} },
		`peer 10.0.0.2 is "b"`:           func(v *view) { v.Peers = []peer{other("datacenter1", "b")} },
		"its release is 5.0.6":           func(v *view) { v.Peers = []peer{{"10.0.0.2", "datacenter1", "a", "4.1.0", 16}} },
		"node 2 has schema version b":    func(v *view) { v.Schema, v.Peers = "b", []peer{other("datacenter1", "b")} },
		`node 2 is in data centre "dc9"`: func(v *view) { v.DataCenter, v.Peers = "dc9", []peer{other("dc9", "a")} },
	} {
		odd := whole
		change(&odd)
		if err := agree([]view{whole, odd}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("agree() = %v; want %q", err, want)
		}
	}
}

func TestTimeoutsGrowAsTheCPULimitShrinks(t *testing.T) {
	for cpus, minutes := range map[float64]time.Duration{0: 1, 2: 1, 0.5: 2, 0.25: 4} {
		want := minutes * time.Minute
		if got := stretch(time.Minute, spec.Limits{CPUs: cpus}); got != want {
			t.Errorf("stretch(1m, %v CPUs) = %s; want %s", cpus, got, want)
		}
	}
}

// Case 25, with a fake /proc: have, need and the way out come before any container starts.
func TestScyllaPreflight(t *testing.T) {
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "sys/fs"), 0o755); err != nil {
		t.Fatal(err)
	}
	set := func(name, value string) {
		if err := os.WriteFile(filepath.Join(proc, "sys/fs", name), []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := Env{Runtime: &fakeRuntime{name: spec.Docker, host: record.Host{CPUs: 4, MemoryBytes: 8 << 30}}}
	set("aio-max-nr", "65536")
	set("aio-nr", "0")
	if err := (scylla{proc: proc}).preflight(env, anArm(spec.Scylla, 3, 1)); err != nil {
		t.Errorf("three nodes with few network slots fit 65536: %v", err)
	}
	set("aio-nr", "62000")
	err := (scylla{proc: proc}).preflight(env, anArm(spec.Scylla, 3, 1))
	for _, want := range []string{"node 3 of 3", "needed 2026 slots", "available", "fs.aio-max-nr 65536",
		"sysctl -w fs.aio-max-nr"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("preflight() = %v; want %q in it", err, want)
		}
	}
	env.Runtime.(*fakeRuntime).host.MemoryBytes = 512 << 20
	set("aio-nr", "0")
	err = (scylla{proc: proc}).preflight(env, anArm(spec.Scylla, 1, 1))
	if err == nil || !strings.Contains(err.Error(), "needed 650M available 476.8M") {
		t.Errorf("preflight on 512 MiB = %v", err)
	}
}

func TestSchemaUUIDsAreTexts(t *testing.T) {
	server := newCQLServer(t, cassandraOptions, systemTables(told{}))
	session, err := openSession(t.Context(), server.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	v, err := look(t.Context(), session)
	if err != nil || v.Schema != gocql.UUID(someSchema).String() {
		t.Errorf("look() = %+v, %v", v, err)
	}
}
