// Package standin is a program that takes ScyllaDB's command line and runs Cassandra: with it the
// lab's orchestration of ScyllaDB is tested where ScyllaDB can't be had. It is as strict as
// ScyllaDB 6.2.3's image: an unknown option is an error, and what ScyllaDB refuses for want of
// memory or AIO slots it refuses too. It says everywhere that it is none of ScyllaDB's. It serves
// package backend, which recognises it by its metrics page.
package standin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jaegerlab/lab/backend/seastar"
)

// form is how an option of ScyllaDB's command line takes its value.
type form int

const (
	text   form = iota // any text
	number             // a whole number, not negative
	flag               // 0 or 1, true or false
	size               // a number with k, M, G or T
	bare               // no value
)

// known lists the options of the image's entrypoint and of ScyllaDB 6.2.3 and Seastar that people
// use in containers.
var known = map[string]form{
	"developer-mode": flag, "seeds": text, "cpuset": text, "smp": number, "memory": size, "reserve-memory": size,
	"overprovisioned": flag, "io-setup": flag, "listen-address": text, "rpc-address": text,
	"broadcast-address": text, "broadcast-rpc-address": text, "api-address": text, "disable-version-check": bare,
	"authenticator": text, "authorizer": text, "cluster-name": text, "endpoint-snitch": text,
	"replace-node-first-boot": text, "replace-address-first-boot": text, "experimental": flag,
	"experimental-features": text, "alternator-address": text, "alternator-port": number,
	"alternator-https-port": number, "alternator-write-isolation": text,

	"reactor-backend": text, "max-networking-io-control-blocks": number, "unsafe-bypass-fsync": flag,
	"kernel-page-cache": flag, "commitlog-use-o-dsync": flag, "ring-delay-ms": number,
	"skip-wait-for-gossip-to-settle": text, "enable-tablets": flag, "auto-snapshot": flag, "num-tokens": number,
	"prometheus-port": number, "prometheus-address": text, "idle-poll-time-us": number, "default-log-level": text,
}

// fixed are options that the image of 6.2.3 sets itself: given once more they are an error.
var fixed = []string{"log-to-syslog", "log-to-stdout", "network-stack", "blocked-reactor-notify-ms"}

// Options is a command line of ScyllaDB, checked.
type Options struct {
	values map[string]string
	Shards int    // --smp; 0 = not given: a shard for each CPU
	Asked  int64  // --memory in bytes; 0 = not given
	Keep   *int64 // --reserve-memory in bytes; nil = not given
	Blocks int64  // --max-networking-io-control-blocks; 0 = not given
}

// Parse reads ScyllaDB's arguments. An unknown option, one given twice, one without its value and
// a value of the wrong form are errors that name it.
func Parse(args []string) (Options, error) {
	options := Options{values: map[string]string{}}
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		if !strings.HasPrefix(name, "--") {
			return Options{}, fmt.Errorf("read ScyllaDB's command line: %q is no option", args[i])
		}
		name = strings.TrimPrefix(name, "--")
		want, isKnown := known[name]
		switch {
		case slices.Contains(fixed, name):
			return Options{}, fmt.Errorf("read ScyllaDB's command line: option '--%s' cannot be specified more than once: "+
				"the image sets it", name)
		case !isKnown:
			return Options{}, fmt.Errorf("read ScyllaDB's command line: unrecognised option '--%s'", name)
		}
		if _, twice := options.values[name]; twice {
			return Options{}, fmt.Errorf("read ScyllaDB's command line: option '--%s' cannot be specified more than once", name)
		}
		if want != bare && !given {
			if i+1 == len(args) || strings.HasPrefix(args[i+1], "--") {
				return Options{}, fmt.Errorf("read ScyllaDB's command line: the required argument for option '--%s' "+
					"is missing", name)
			}
			i++
			value = args[i]
		}
		if err := options.set(name, value, want, given); err != nil {
			return Options{}, fmt.Errorf("read ScyllaDB's command line: the argument ('%s') for option '--%s' is invalid: %w",
				value, name, err)
		}
	}
	return options, nil
}

func (o *Options) set(name, value string, want form, given bool) error {
	o.values[name] = value
	switch want {
	case bare:
		if given {
			return fmt.Errorf("it takes no argument")
		}
	case flag:
		if !slices.Contains([]string{"0", "1", "true", "false"}, value) {
			return fmt.Errorf("it must be 0 or 1")
		}
	case number:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("it must be a whole number")
		}
		switch name {
		case "smp":
			o.Shards = int(n)
		case "max-networking-io-control-blocks":
			o.Blocks = n
		}
	case size:
		n, err := seastar.ParseSize(value)
		if err != nil {
			return err
		}
		if name == "memory" {
			o.Asked = n
		} else {
			o.Keep = &n
		}
	}
	return nil
}

// get returns an option's value, or what holds when it is not given.
func (o Options) get(name, otherwise string) string {
	if value, given := o.values[name]; given {
		return value
	}
	return otherwise
}

func (o Options) on(name string) bool {
	value := o.get(name, "0")
	return value == "1" || value == "true"
}
