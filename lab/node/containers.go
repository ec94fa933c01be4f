//go:build unix

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Containers reads the usage of containers that the lab did not start, from the daemon that this
// process reaches. It is for the compose stack, whose containers belong to Docker Compose.
type Containers struct{ api *client.Client }

// OtherContainer is one container with what the daemon says of it now.
type OtherContainer struct {
	Name   string
	Labels map[string]string
	Usage  Usage
}

// OpenContainers connects to the daemon.
func OpenContainers(ctx context.Context) (*Containers, error) {
	api, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	return &Containers{api: api}, nil
}

// Close ends the connection.
func (c *Containers) Close() error { return c.api.Close() }

// Read asks for every running container that carries all labels ("name" or "name=value"). What
// could be read is returned beside the error that names what could not.
func (c *Containers) Read(ctx context.Context, labels ...string) ([]OtherContainer, error) {
	bounded, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	filters := client.Filters{}
	for _, label := range labels {
		filters = filters.Add("label", label)
	}
	list, err := c.api.ContainerList(bounded, client.ContainerListOptions{Filters: filters})
	if err != nil {
		return nil, fmt.Errorf("list containers labelled %v: %w", labels, err)
	}
	found, errs := make([]OtherContainer, len(list.Items)), make([]error, len(list.Items))
	var wait sync.WaitGroup
	for i, one := range list.Items {
		wait.Go(func() { found[i], errs[i] = c.read(bounded, one) })
	}
	wait.Wait()
	var read []OtherContainer
	for i := range found {
		if errs[i] == nil {
			read = append(read, found[i])
		}
	}
	return read, errors.Join(errs...)
}

func (c *Containers) read(ctx context.Context, one container.Summary) (OtherContainer, error) {
	o := OtherContainer{Labels: one.Labels, Name: one.ID}
	if len(one.Names) > 0 {
		o.Name = one.Names[0]
	}
	var err error
	o.Usage, err = statistics(ctx, c.api, one.ID)
	if err != nil {
		return o, fmt.Errorf("read usage of container %s: %w", o.Name, err)
	}
	return o, nil
}

// statistics asks the daemon for one sample of raw counters. OOM kills are only known at the end,
// a memory peak only under cgroup version 1.
func statistics(ctx context.Context, api *client.Client, id string) (Usage, error) {
	bounded, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	result, err := api.ContainerStats(bounded, id, client.ContainerStatsOptions{})
	if err != nil {
		return Usage{}, err
	}
	defer result.Body.Close()
	var stats container.StatsResponse
	if err := json.NewDecoder(result.Body).Decode(&stats); err != nil {
		return Usage{}, fmt.Errorf("decode the daemon's statistics: %w", err)
	}
	return usageFromStats(stats)
}
