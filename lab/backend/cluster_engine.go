package backend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

const scyllaName = "ScyllaDB"

// Engine implements Cluster. What the engine is called follows from what every node answers:
// ScyllaDB sends SCYLLA_* options and has system.versions, Cassandra has neither.
func (c *cqlCluster) Engine(ctx context.Context) (record.Engine, error) {
	fail := func(err error) (record.Engine, error) {
		return record.Engine{}, fmt.Errorf("ask %s what it is: %w", c.arm.Backend, err)
	}
	var found record.Engine
	for i, n := range c.nodes {
		one, err := c.identify(ctx, i)
		if err != nil {
			return fail(err)
		}
		if i > 0 && (one.Name != found.Name || one.Version != found.Version) {
			return fail(fmt.Errorf("%s says %s %s, the first node %s %s", n.Name(), one.Name, one.Version,
				found.Name, found.Version))
		}
		if i == 0 {
			found = one
		}
	}
	views, err := c.allViews(ctx)
	if err != nil {
		return fail(err)
	}
	if err := agree(views); err != nil {
		return fail(err)
	}
	found.Nodes = len(views)
	found.Evidence = append(found.Evidence, fmt.Sprintf("system.peers: each of %d nodes lists %d others; data centre %s",
		len(views), len(views)-1, views[0].DataCenter))
	if runtime := c.env.Runtime.Name(); runtime == spec.Docker {
		found.Image = c.nodes[0].Program().Binary.Image
	}
	if err := c.kind.confirm(ctx, c, &found); err != nil {
		return fail(err)
	}
	if session, err := c.session(ctx, 0); err == nil {
		found.Settings = serverSettings(ctx, session, found.Name == scyllaName, c.env.Runtime.Name())
	}
	found.Differences = c.kind.differences(c.env.Runtime.Name())
	return found, nil
}

// identify asks one node. The two signs must agree: one without the other is no engine known here.
func (c *cqlCluster) identify(ctx context.Context, i int) (record.Engine, error) {
	addr := c.nodes[i].Addr("cql")
	probe, cancel := context.WithTimeout(ctx, sessionWithin)
	defer cancel()
	options, err := askOptions(probe, addr, cqlVersion)
	if err != nil {
		return record.Engine{}, err
	}
	session, err := c.session(ctx, i)
	if err != nil {
		return record.Engine{}, err
	}
	v, err := look(ctx, session)
	if err != nil {
		return record.Engine{}, err
	}
	evidence := []string{"system.local.release_version: " + v.Release}
	signs := scyllaOptions(options)
	if len(signs) == 0 {
		evidence = append(evidence, "SUPPORTED: no SCYLLA_ option")
		return record.Engine{Name: cassandraName, Version: v.Release, Evidence: evidence}, nil
	}
	evidence = append(evidence, "SUPPORTED: "+strings.Join(signs, ", "))
	var version, mode, build string
	err = session.Query("SELECT version, build_mode, build_id FROM system.versions WHERE key = 'local'").
		WithContext(ctx).Scan(&version, &mode, &build)
	if err != nil {
		return record.Engine{}, fmt.Errorf("it sends ScyllaDB's options (%s) but system.versions can't be read: %w",
			strings.Join(signs, ", "), err)
	}
	evidence = append(evidence, fmt.Sprintf("system.versions: %s, build mode %s, build %s", version, mode, build))
	if mode != "release" {
		return record.Engine{}, fmt.Errorf("its build mode is %q: only a release build can be measured", mode)
	}
	return record.Engine{Name: scyllaName, Version: version, Evidence: evidence}, nil
}

// scyllaOptions lists the options that only ScyllaDB sends, with their values.
func scyllaOptions(options map[string][]string) []string {
	var signs []string
	for name, values := range options {
		if strings.HasPrefix(name, "SCYLLA_") {
			signs = append(signs, name+"="+strings.Join(values, ","))
		}
	}
	slices.Sort(signs)
	return signs
}
