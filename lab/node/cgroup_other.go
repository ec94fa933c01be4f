//go:build unix && !linux

package node

import (
	"context"
	"errors"
	"syscall"

	"jaegerlab/lab/spec"
)

var errNoGroups = errors.New("limits are not enforced: this system has no control groups")

func cgroupVersion() int { return 0 }

func probeGroups(context.Context, string) error { return errNoGroups }

func newGroup(string, string, spec.Limits) (*cgroup, error) { return nil, errNoGroups }

func runGroups(string) []string { return nil }

func removeRunGroups(string) error { return nil }

func (g *cgroup) signal(syscall.Signal) {}

func (g *cgroup) kill() {}
