//go:build unix

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/moby/moby/client"
)

// leftover is a container or network that carries the lab's label.
type leftover struct {
	kind   string // "container" or "network"
	name   string
	labels map[string]string
}

// sweepContainers removes the lab's own containers and networks whose lab process is gone. No
// daemon is no error: then there is nothing to sweep now.
func sweepContainers(ctx context.Context, scope Scope) ([]string, []error) {
	api, err := connect(ctx)
	if err != nil {
		return nil, nil
	}
	defer api.Close()
	found, err := labelled(ctx, api, labLabel+"=1")
	if err != nil {
		return nil, []error{err}
	}
	kept := keptRuns()
	var told []string
	var errs []error
	for _, one := range found { // containers come first: a network goes when they are gone
		remove, why := one.judge(scope, kept)
		if !remove {
			if why != "" {
				told = append(told, "left alone: "+why)
			}
			continue
		}
		if one.kind == "container" {
			r := containers{client: api}
			err = r.removeContainer(ctx, one.name)
		} else {
			err = removeNetwork(ctx, api, one.name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		told = append(told, fmt.Sprintf("%s %s of run %s", one.kind, one.name, one.labels[runLabel]))
	}
	return told, errs
}

// labelled lists containers, then networks, with a label.
func labelled(ctx context.Context, api *client.Client, label string) ([]leftover, error) {
	bounded, cancel := context.WithTimeout(ctx, removeBound)
	defer cancel()
	mine := client.Filters{}.Add("label", label)
	list, err := api.ContainerList(bounded, client.ContainerListOptions{All: true, Filters: mine})
	if err != nil {
		return nil, fmt.Errorf("list containers labelled "+label+": %w", err)
	}
	networks, err := api.NetworkList(bounded, client.NetworkListOptions{Filters: mine})
	if err != nil {
		return nil, fmt.Errorf("list networks labelled "+label+": %w", err)
	}
	var found []leftover
	for _, c := range list.Items {
		name := c.ID
		if len(c.Names) > 0 {
			name = strings.TrimPrefix(c.Names[0], "/")
		}
		found = append(found, leftover{kind: "container", name: name, labels: c.Labels})
	}
	for _, n := range networks.Items {
		found = append(found, leftover{kind: "network", name: n.Name, labels: n.Labels})
	}
	return found, nil
}

// keptRuns tells, for every run on record, whether it was left up on purpose.
func keptRuns() map[string]bool {
	kept := map[string]bool{}
	states, err := runStates()
	if err != nil {
		return kept
	}
	for _, s := range states {
		kept[s.owner.RunID] = s.owner.Kept
	}
	return kept
}

// judge decides whether a sweep may remove it; why names what it leaves alone, for clean.
func (l leftover) judge(scope Scope, kept map[string]bool) (remove bool, why string) {
	what := fmt.Sprintf("%s %s of run %s", l.kind, l.name, l.labels[runLabel])
	var owner runOwner
	if err := json.Unmarshal([]byte(l.labels[ownerLabel]), &owner); err != nil {
		return scope == All, ""
	}
	left, onRecord := kept[owner.RunID]
	isKept := left || !onRecord && l.labels[keepLabel] != ""
	switch {
	case !owner.here():
		what += fmt.Sprintf(" (lab process %d on host %s)", owner.Lab.PID, owner.Host)
	case isKept:
		return scope == All, ""
	case !owner.live():
		return true, ""
	default:
		what += fmt.Sprintf(" (of the live lab process %d)", owner.Lab.PID)
	}
	if scope != All {
		return false, ""
	}
	return false, what
}
