package backend

import (
	"fmt"

	"jaegerlab/lab/spec"
)

// For returns the backend of an engine.
func For(engine spec.Engine) (Backend, error) {
	switch engine {
	case spec.Cassandra:
		return cqlBackend{kind: cassandra{}}, nil
	case spec.Scylla:
		return cqlBackend{kind: scylla{}}, nil
	case spec.Badger, spec.Memory:
		return embedded{engine: engine}, nil
	case spec.Null:
		return null{}, nil
	}
	return nil, fmt.Errorf("find the backend of engine %q: there is none; known are %v", engine, spec.Engines)
}
