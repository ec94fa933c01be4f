// Package node runs one program under limits and tells the truth about it: its addresses, its
// log, what its cgroup says, and when it died. Everything that the lab starts is a node:
// collectors, database nodes, Prometheus, node-exporter and the load node. docker.go is the only
// user of testcontainers; process.go runs plain processes. It is a tool of the steps backend,
// stack and load.
package node

import (
	"context"
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// Runtime starts nodes, all of one run, and ends every one of them.
type Runtime interface {
	// Name is spec.Docker or spec.Process.
	Name() spec.Runtime
	// Host describes the machine the nodes run on: the daemon's in the docker runtime.
	Host() record.Host
	// Start starts a program and returns as soon as it runs (not: is ready). On an error nothing
	// of it is left and the error holds the tail of its log.
	Start(ctx context.Context, p Program) (Node, error)
	// Close ends every node of this run, the network and the temporary files. It is bounded, and
	// safe to call twice; ctx may already be cancelled.
	Close(ctx context.Context) error
}

// Program is what to start. In Args, Env values and Files these placeholders are expanded by the
// runtime, so that one description serves both:
//
//	${ip}         address to listen on: 0.0.0.0 in a container, the node's loopback address as a process
//	${host}       name other nodes reach it by
//	${dir}        its own folder, where Files are (container: /lab)
//	${port.NAME}  number of the port to listen on
type Program struct {
	Name     string        // unique in the run; the container's name in the network
	Host     spec.Host     // the original machine it stands on
	Binary   Binary        // what to run
	Args     []string      // after the image's entrypoint or the binary
	Env      []string      // NAME=value; children also get LC_ALL=C
	Files    []File        // written below ${dir} before the start
	Ports    []Port        // every port that anyone uses
	Loopback string        // process runtime: address to listen on; "" = 127.0.0.1
	Limits   spec.Limits   // enforced where the machine allows it
	Grace    time.Duration // from the polite signal to the kill; 0 = 10 s
}

// Binary is what a program is made of, as package setup found it on this machine.
type Binary struct {
	Image      string   // docker: reference of an image that is present
	Entrypoint []string // docker: replaces the image's; nil = the image's own
	Command    []string // process: path of the executable and fixed first arguments
	Version    string   // what the record says of it
	Source     string   // image id, or module it was built from
}

// File is one configuration file.
type File struct {
	Name string // relative to ${dir}
	Data []byte // placeholders are expanded
}

// Port is one listening port.
type Port struct {
	Name   string // "cql", "otlp-grpc", ...
	Number int    // inside a container
	Local  int    // process runtime: the port to take; 0 = a free one
	UDP    bool
}

// Node is one running program.
type Node interface {
	Name() string
	Program() Program
	// Addr is host:port of a named port as the lab's own process reaches it, always IPv4 loopback.
	Addr(port string) string
	// PeerAddr is host:port of a named port as other nodes reach it.
	PeerAddr(port string) string
	// PeerHost is the name or address other nodes reach it by.
	PeerHost() string
	// Done is closed when the program has ended for whatever reason.
	Done() <-chan struct{}
	// Exit says how it ended, with signal, status and OOM kill by name; "" while it runs.
	Exit() string
	// Read gives the cgroup's counters since the start. Fields that can't be read are nil.
	Read(ctx context.Context) (Usage, error)
	// LimitsInForce reads the limits back from the cgroup; nil when nothing can be read.
	LimitsInForce(ctx context.Context) (*spec.Limits, error)
	// LogFile is the path of its output, complete once Done is closed.
	LogFile() string
	// Tail returns the last lines of its output.
	Tail(lines int) string
	// Stop ends it: the polite signal, and the kill after its grace. Its log and last Usage stay
	// readable. Stopping a node twice is no error.
	Stop(ctx context.Context) error
	// Kill ends it at once (SIGKILL); for faults.
	Kill(ctx context.Context) error
	// Pause and Resume freeze it; for faults.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Usage is one read of a node's cgroup. Counters run since the node's start.
type Usage struct {
	At              time.Time
	CPUSeconds      *float64
	ThrottledS      *float64
	MemoryBytes     *int64 // in use, without page cache that the kernel can drop (inactive file pages)
	MemoryPeakBytes *int64 // the kernel's own peak, page cache included
	OOMKills        *int64
}
