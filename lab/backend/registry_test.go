package backend

import (
	"strings"
	"testing"

	"jaegerlab/lab/spec"
)

// What LAB_BACKENDS accepts has a backend: an engine stands in spec.Engines, in the setting's
// accepted values and in For, and the one that lacks it is named here.
func TestEveryEngineHasABackend(t *testing.T) {
	for _, engine := range spec.Engines {
		if _, err := For(engine); err != nil {
			t.Errorf("%v: add it to For in registry.go", err)
		}
		word := string(engine)
		if !engine.Embedded() {
			word += ":2"
		}
		s, err := spec.FromEnv([]string{"LAB_BACKENDS=" + word})
		if err != nil || s.Backends[0].Engine != engine {
			t.Errorf("LAB_BACKENDS=%s: %v, %v", word, s.Backends, err)
		}
		_, err = spec.ParseBackend("none at all")
		if !strings.Contains(err.Error(), string(engine)) {
			t.Errorf("engine %s is not among what LAB_BACKENDS says that it accepts: %v; add it to the tag in lab/spec/env.go", engine, err)
		}
	}
	if _, err := For("none at all"); err == nil || !strings.Contains(err.Error(), string(spec.Cassandra)) {
		t.Errorf("%v, want the known engines", err)
	}
}
