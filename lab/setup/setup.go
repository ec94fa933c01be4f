// Package setup finds or makes everything a run needs: programs built from pinned modules,
// Cassandra's jars, a usable Java, and Docker images. It stands before the first step of the flow
// spec -> setup -> backend, stack -> load -> observe -> ledger -> record -> report: it hands
// node.Binary values to the steps that start nodes. All it makes is below one cache folder
// (CacheDir) or in the Docker daemon under the name jaegerlab/...; nothing is installed
// system-wide. Slow work (builds, pulls, downloads) is done by Install and BuildImages only; Find
// and Missing look, and refuse with a hint.
package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jaegerlab/lab/spec"
)

// Say prints one line of progress.
type Say func(format string, args ...any)

// Names of the programs (artifacts) that package setup finds or makes.
const (
	Jaeger            = "jaeger"
	JaegerV1Collector = "jaeger-v1-collector"
	JaegerV1AllInOne  = "jaeger-v1-all-in-one"
	Prometheus        = "prometheus"
	NodeExporter      = "node-exporter"
	Cassandra         = "cassandra"
	Scylla            = "scylla"
	ScyllaStandIn     = "scylla-stand-in"
	Load              = "load"
)

// Hint is the remedy for anything that Install could make.
const Hint = "make setup"

// CacheDir is the folder of everything that setup makes: LAB_CACHE, or jaegerlab in the user's
// cache folder. It is not created here.
func CacheDir() (string, error) {
	if dir := os.Getenv("LAB_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w; set LAB_CACHE to a folder", err)
	}
	return filepath.Join(dir, "jaegerlab"), nil
}

// checkout finds the lab's own module by walking up from the working directory: the tools'
// go.mod files and the load program are built from there.
func checkout() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the lab's checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && isLabModule(data) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the lab's checkout: no go.mod of module jaegerlab in %s or above; "+
				"run the command inside the checkout", start)
		}
	}
}

func isLabModule(goMod []byte) bool {
	first, _, _ := strings.Cut(string(goMod), "\n")
	return strings.TrimSpace(first) == "module jaegerlab"
}

// Need is what the planned arms need of this machine.
type Need struct {
	Runtime  spec.Runtime      // Docker or Process
	Programs []string          // names of programs, without repeats
	Images   map[string]string // docker: overrides, program name -> image
	Named    bool              // the user named the backends: one that can't be had is an error, not left out
}

// NeedOf lists what the arms of a spec need in a runtime that is already resolved.
func NeedOf(s spec.Spec, runtime spec.Runtime) Need {
	need := Need{Runtime: runtime, Images: s.Images, Named: s.Named}
	if s.Target != nil {
		need.Programs = []string{Load}
		if s.Target.Prometheus == "" {
			need.Programs = append(need.Programs, NodeExporter, Prometheus)
		}
		return need
	}
	for _, arm := range s.Arms() {
		for _, program := range ArmPrograms(arm) {
			if !slices.Contains(need.Programs, program) {
				need.Programs = append(need.Programs, program)
			}
		}
	}
	return need
}

// ArmPrograms lists the programs that one arm starts. A collector given as a file brings its own
// binary or image; beside it only what the lab adds is listed. Stores that speak CQL always need
// the pinned v2, which creates their schema.
func ArmPrograms(arm spec.Arm) []string {
	programs := []string{Load, NodeExporter, Prometheus}
	embedded := arm.Backend.Engine.Embedded()
	switch arm.Backend.Engine {
	case spec.Cassandra:
		programs = append(programs, Cassandra)
	case spec.Scylla:
		programs = append(programs, Scylla)
	}
	v2 := arm.Collector == "v2" || arm.Collector == "v2-stock"
	if v2 || !embedded {
		programs = append(programs, Jaeger)
	}
	if arm.Collector == "v1" {
		if embedded {
			return append(programs, JaegerV1AllInOne)
		}
		return append(programs, JaegerV1Collector)
	}
	return programs
}

// Absent is one thing that a run needs and this machine does not have.
type Absent struct {
	Program string // its name
	What    string // the image or file that was looked for
	Why     string // what was seen instead
	Remedy  string // what the user can do
}

// String is one line: program, what is missing, and the remedy.
func (a Absent) String() string {
	text := a.Program + ": " + a.What
	if a.Why != "" {
		text += " (" + a.Why + ")"
	}
	return text + ": " + a.Remedy
}

// AbsentError names everything that is missing at once.
type AbsentError struct {
	Items []Absent
}

// Error lists all items, one a line.
func (e *AbsentError) Error() string {
	lines := []string{"start the run: not everything it needs is on this machine"}
	for _, item := range e.Items {
		lines = append(lines, "  "+item.String())
	}
	return strings.Join(lines, "\n")
}
