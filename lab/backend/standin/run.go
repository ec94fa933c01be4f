package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	metricsPort  = "9180"
	cassandraMax = "400M" // heap: less than half of a container of 1 GiB
	cassandraNew = "100M"
	graceOfChild = 20 * time.Second
)

// entrypoint is what runs Cassandra in the image below.
var entrypoint = []string{"docker-entrypoint.sh", "cassandra", "-f"}

// Run takes ScyllaDB's arguments, refuses what ScyllaDB would refuse, serves the metrics page,
// and runs Cassandra until it ends or ctx does. What Cassandra prints goes to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	options, err := Parse(args)
	if err != nil {
		return err
	}
	machine, err := ReadMachine(os.DirFS("/"))
	if err != nil {
		return err
	}
	grant, err := Admit(options, machine)
	if err != nil {
		return err
	}
	free, err := takeSlots(grant.Slots)
	if err != nil {
		return fmt.Errorf("take %d AIO slots: %w", grant.Slots, err)
	}
	defer free()
	fmt.Fprintf(out, "stand-in for ScyllaDB (not ScyllaDB): %d shard(s), %d bytes, %d AIO slots; starting Cassandra\n",
		grant.Shards, grant.Heap, grant.Slots)

	var running atomic.Bool
	listener, err := net.Listen("tcp4", net.JoinHostPort(options.get("prometheus-address", "0.0.0.0"),
		options.get("prometheus-port", metricsPort)))
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second,
		Handler: page{grant: grant, started: time.Now(), now: time.Now, running: running.Load}}
	defer server.Close()
	go func() { _ = server.Serve(listener) }() // ends with server.Close
	return cassandra(ctx, options, out, &running)
}

// cassandra runs the database and passes the polite signal on.
func cassandra(ctx context.Context, options Options, out io.Writer, running *atomic.Bool) error {
	cmd := exec.CommandContext(ctx, entrypoint[0], entrypoint[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), options.environment()...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = graceOfChild
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start Cassandra: %w", err)
	}
	running.Store(true)
	err := cmd.Wait()
	running.Store(false)
	if err != nil && ctx.Err() != nil {
		return nil // it was asked to end
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	return fmt.Errorf("run Cassandra: %w", err)
}

// environment says in the Cassandra image's words what ScyllaDB's options ask for.
func (o Options) environment() []string {
	env := []string{
		"MAX_HEAP_SIZE=" + cassandraMax, "HEAP_NEWSIZE=" + cassandraNew,
		"CASSANDRA_ENDPOINT_SNITCH=" + o.get("endpoint-snitch", "SimpleSnitch"),
	}
	for option, name := range map[string]string{
		"seeds": "CASSANDRA_SEEDS", "cluster-name": "CASSANDRA_CLUSTER_NAME",
		"listen-address": "CASSANDRA_LISTEN_ADDRESS", "broadcast-address": "CASSANDRA_BROADCAST_ADDRESS",
		"rpc-address": "CASSANDRA_RPC_ADDRESS", "broadcast-rpc-address": "CASSANDRA_BROADCAST_RPC_ADDRESS",
		"num-tokens": "CASSANDRA_NUM_TOKENS",
	} {
		if value := o.get(option, ""); value != "" {
			env = append(env, name+"="+value)
		}
	}
	extra := ""
	if delay := o.get("ring-delay-ms", ""); delay != "" {
		extra += " -Dcassandra.ring_delay_ms=" + delay
	}
	if settle := o.get("skip-wait-for-gossip-to-settle", ""); settle != "" {
		extra += " -Dcassandra.skip_wait_for_gossip_to_settle=" + settle
	}
	if o.get("auto-snapshot", "") != "" && !o.on("auto-snapshot") {
		extra += " -Dcassandra.config.allow_system_properties=true -Dcassandra.settings.auto_snapshot=false"
	}
	if extra != "" {
		env = append(env, "JVM_EXTRA_OPTS="+extra[1:])
	}
	return env
}
