package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gocql/gocql"
)

const (
	sessionWithin = 10 * time.Second // a session is up by then, or the peer is named
	queryTimeout  = 30 * time.Second // above the servers' own limit for range reads (10 s)
	pageRows      = 5000
)

// openSession connects to one node by the host:port the lab knows, and to nothing else: what
// system.peers and events say about addresses counts inside the cluster's network only, so
// look-up of hosts and events are off, and any other host is filtered out.
func openSession(ctx context.Context, addr string) (*gocql.Session, error) {
	return openSessionWith(ctx, addr, func(*gocql.ClusterConfig) error { return nil })
}

// openSessionWith is openSession with settings of its own, such as TLS and credentials.
func openSessionWith(ctx context.Context, addr string, set func(*gocql.ClusterConfig) error) (*gocql.Session, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s over CQL: %w", addr, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("connect to %s over CQL: port %q: %w", addr, portText, err)
	}
	config := gocql.NewCluster(addr)
	config.Port = port
	config.ProtoVersion = cqlVersion
	config.DisableInitialHostLookup = true
	config.IgnorePeerAddr = true
	config.Events.DisableTopologyEvents = true
	config.Events.DisableNodeStatusEvents = true
	config.Events.DisableSchemaEvents = true
	config.HostFilter = gocql.HostFilterFunc(func(info *gocql.HostInfo) bool {
		return info.Port() == port && info.ConnectAddress().Equal(net.ParseIP(host))
	})
	config.NumConns = 2
	config.ConnectTimeout = sessionWithin / 2 // so that gocql names what failed
	config.Timeout = queryTimeout
	config.ReconnectInterval = time.Second // a node that comes back is used again soon
	config.Consistency = gocql.One
	config.PageSize = pageRows
	config.Logger = silent{}
	if err := set(config); err != nil {
		return nil, fmt.Errorf("connect to %s over CQL: %w", addr, err)
	}

	ctx, cancel := context.WithTimeout(ctx, sessionWithin)
	defer cancel()
	type result struct {
		session *gocql.Session
		err     error
	}
	opened := make(chan result, 1)
	go func() { // gocql's constructor takes no context
		session, err := config.CreateSession()
		opened <- result{session, err}
	}()
	select {
	case r := <-opened:
		if r.err != nil {
			return nil, fmt.Errorf("connect to %s over CQL: %w", addr, r.err)
		}
		return r.session, nil
	case <-ctx.Done():
		go func() {
			if late := <-opened; late.session != nil {
				late.session.Close()
			}
		}()
		return nil, fmt.Errorf("connect to %s over CQL: no session within %s: %w", addr, sessionWithin, ctx.Err())
	}
}

// silent keeps gocql's remarks out of the lab's output; errors reach the lab as values.
type silent struct{}

func (silent) Print(...any)          {}
func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

// view is what one node says of itself and of the others.
type view struct {
	HostID       string
	Release      string // ScyllaDB always says 3.0.8
	DataCenter   string
	Schema       string
	Bootstrapped string
	Tokens       []string
	Peers        []peer
}

type peer struct {
	Address    string
	DataCenter string
	Schema     string
	Release    string
	Tokens     int
}

// look asks one node for its view. A peer that has no tokens yet is still joining.
func look(ctx context.Context, session *gocql.Session) (view, error) {
	var v view
	err := session.Query("SELECT host_id, release_version, data_center, schema_version, bootstrapped, tokens "+
		"FROM system.local WHERE key = 'local'").WithContext(ctx).
		Scan(&v.HostID, &v.Release, &v.DataCenter, &v.Schema, &v.Bootstrapped, &v.Tokens)
	if err != nil {
		return view{}, fmt.Errorf("read system.local: %w", err)
	}
	rows := session.Query("SELECT peer, data_center, schema_version, release_version, tokens FROM system.peers").
		WithContext(ctx).Iter()
	var address, dataCenter, schema, release string
	var tokens []string
	for rows.Scan(&address, &dataCenter, &schema, &release, &tokens) {
		v.Peers = append(v.Peers, peer{address, dataCenter, schema, release, len(tokens)})
		address, dataCenter, schema, release, tokens = "", "", "", "", nil
	}
	if err := rows.Close(); err != nil {
		return view{}, fmt.Errorf("read system.peers: %w", err)
	}
	return v, nil
}

// joined counts the peers that have finished joining.
func (v view) joined() int {
	n := 0
	for _, p := range v.Peers {
		if p.Tokens > 0 {
			n++
		}
	}
	return n
}

// joining says why this node is not a joined member of a cluster of n nodes; nil when it is.
func (v view) joining(n int) error {
	if v.Bootstrapped != "COMPLETED" {
		return fmt.Errorf("it has not joined yet: bootstrapped is %q in system.local", v.Bootstrapped)
	}
	if v.joined() != n-1 {
		return fmt.Errorf("it lists %d of %d peers in system.peers%s", v.joined(), n-1, v.peerNames())
	}
	return nil
}

// ready says why this view is not that of a finished cluster of n nodes; nil when it is.
func (v view) ready(n int) error {
	if err := v.joining(n); err != nil {
		return err
	}
	for _, p := range v.Peers {
		switch {
		case p.DataCenter != v.DataCenter:
			return fmt.Errorf("it is in data centre %q, its peer %s in %q", v.DataCenter, p.Address, p.DataCenter)
		case p.Schema != v.Schema:
			return fmt.Errorf("its schema version is %s, that of its peer %s is %q", v.Schema, p.Address, p.Schema)
		case p.Release != v.Release:
			return fmt.Errorf("its release is %s, that of its peer %s is %q", v.Release, p.Address, p.Release)
		}
	}
	return nil
}

func (v view) peerNames() string {
	if len(v.Peers) == 0 {
		return ""
	}
	var names []string
	for _, p := range v.Peers {
		state := "joined"
		if p.Tokens == 0 {
			state = "no tokens yet"
		}
		names = append(names, p.Address+" ("+state+")")
	}
	return ": " + strings.Join(names, ", ")
}

// agree says why the views of all nodes do not describe one cluster; nil when they do.
func agree(views []view) error {
	var problems []error
	for i, v := range views {
		if err := v.ready(len(views)); err != nil {
			problems = append(problems, fmt.Errorf("node %d: %w", i+1, err))
			continue
		}
		if v.Schema != views[0].Schema {
			problems = append(problems, fmt.Errorf("node %d has schema version %s, node 1 has %s",
				i+1, v.Schema, views[0].Schema))
		}
		if v.DataCenter != views[0].DataCenter {
			problems = append(problems, fmt.Errorf("node %d is in data centre %q, node 1 in %q",
				i+1, v.DataCenter, views[0].DataCenter))
		}
	}
	return errors.Join(problems...)
}
