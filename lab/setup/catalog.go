package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jaegerlab/lab/node"
	"jaegerlab/lab/spec"
)

// findLimit bounds Find: it looks, and builds only the load program, which is small.
const findLimit = 5 * time.Minute

// Catalog says what every program is made of on this machine, in one runtime.
type Catalog struct {
	Runtime spec.Runtime
	entries map[string]entry
}

// entry is a program that is there, or why it is not.
type entry struct {
	binary node.Binary
	absent *Absent
}

// Find looks for every program in a resolved runtime. It downloads, pulls and builds nothing, but
// for the load program, which is built from the checkout each time. Overrides (program name ->
// image) belong to the docker runtime. A program that is absent is no error here: Missing and
// Binary tell.
func Find(ctx context.Context, runtime spec.Runtime, overrides map[string]string) (*Catalog, error) {
	ctx, cancel := context.WithTimeout(ctx, findLimit)
	defer cancel()
	b, err := newBuilder(func(string, ...any) {})
	if err != nil {
		return nil, err
	}
	switch runtime {
	case spec.Process:
		return b.findProcess(ctx, overrides)
	case spec.Docker:
		d, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		defer d.close()
		return b.findDocker(ctx, d, overrides)
	}
	return nil, fmt.Errorf("find programs for runtime %q: only docker and process have programs", runtime)
}

// Binary gives a program that was found. The error is an *AbsentError with the remedy.
func (c *Catalog) Binary(program string) (node.Binary, error) {
	e, known := c.entries[program]
	if !known {
		return node.Binary{}, fmt.Errorf("find program %q: there is no such program; known are %v", program, programNames())
	}
	if e.absent != nil {
		return node.Binary{}, &AbsentError{Items: []Absent{*e.absent}}
	}
	return e.binary, nil
}

// Missing names everything of these programs that is absent, at once; an unknown name is absent too.
func (c *Catalog) Missing(programs ...string) []Absent {
	var absent []Absent
	for _, name := range programs {
		e, known := c.entries[name]
		switch {
		case !known:
			absent = append(absent, Absent{Program: name, What: "there is no such program",
				Remedy: "known are " + strings.Join(programNames(), ", ")})
		case e.absent != nil:
			absent = append(absent, *e.absent)
		}
	}
	return absent
}

// Missing is Find and Catalog.Missing in one, for those that only have to refuse with the hint.
func Missing(ctx context.Context, need Need) ([]Absent, error) {
	catalog, err := Find(ctx, need.Runtime, need.Images)
	if err != nil {
		return nil, err
	}
	return catalog.Missing(need.Programs...), nil
}

func (b builder) findProcess(ctx context.Context, overrides map[string]string) (*Catalog, error) {
	for program, ref := range overrides {
		return nil, fmt.Errorf("use image %s for %s: images belong to the docker runtime, this one is process; "+
			"set LAB_RUNTIME=docker, or leave the image out", ref, program)
	}
	catalog := &Catalog{Runtime: spec.Process, entries: map[string]entry{}}
	for _, p := range programs {
		e, err := b.findProgram(ctx, p)
		if err != nil {
			return nil, err
		}
		catalog.entries[p.name] = e
	}
	return catalog, nil
}

func (b builder) findProgram(ctx context.Context, p program) (entry, error) {
	switch {
	case p.name == Cassandra:
		return b.findCassandra(ctx), nil
	case p.name == Scylla || p.name == ScyllaStandIn:
		return entry{absent: &Absent{Program: p.name, What: "runs in Docker only",
			Remedy: "set LAB_RUNTIME=docker, or leave it out of LAB_BACKENDS"}}, nil
	case p.fromCheckout():
		path, err := b.build(ctx, p, thisPlatform())
		if err != nil {
			return entry{}, err
		}
		return checkoutEntry(p, path), nil
	}
	path, why, err := b.built(p, thisPlatform())
	if err != nil {
		return entry{}, err
	}
	if why != "" {
		return entry{absent: &Absent{Program: p.name, What: path, Why: why, Remedy: Hint}}, nil
	}
	return entry{binary: node.Binary{Command: append([]string{path}, p.command...), Version: p.version,
		Source: path + ", built from " + p.module}}, nil
}

// checkoutEntry names the program by the hash of its content, which is in its file name.
func checkoutEntry(p program, path string) entry {
	version := strings.Split(strings.TrimPrefix(filepath.Base(path), p.name+"-"), "-")[0]
	return entry{binary: node.Binary{Command: append([]string{path}, p.command...), Version: version,
		Source: path + ", built from the checkout"}}
}

// findCassandra needs the jars and a Java; what is missing is told together.
func (b builder) findCassandra(ctx context.Context) entry {
	java, javaErr := FindJava(ctx)
	var what, remedies []string
	if javaErr != nil {
		what, remedies = append(what, javaErr.Error()), append(remedies, "install a Java 17 runtime")
	}
	if !jarsPresent(b.cache) {
		what, remedies = append(what, jarFolder(b.cache)+" not fetched yet"), append(remedies, Hint)
	}
	if len(what) > 0 {
		return entry{absent: &Absent{Program: Cassandra, What: strings.Join(what, "; and "),
			Remedy: strings.Join(remedies, ", then ")}}
	}
	return entry{binary: node.Binary{
		Command: []string{java.Path, "-cp", filepath.Join(jarFolder(b.cache), "*")}, Version: CassandraVersion,
		Source: fmt.Sprintf("org.apache.cassandra:cassandra-all:%s from Maven, on Java %s (%s)",
			CassandraVersion, java.Version, java.Path),
	}}
}

// imageStore looks for images; tests give another one.
type imageStore interface {
	inspect(ctx context.Context, ref string) (img image, present bool, err error)
}

func (b builder) findDocker(ctx context.Context, d *docker, overrides map[string]string) (*Catalog, error) {
	catalog, err := findImages(ctx, d, overrides)
	if err != nil {
		return nil, err
	}
	if overrides[Load] == "" {
		binary, err := b.loadImage(ctx, d)
		if err != nil {
			return nil, err
		}
		catalog.entries[Load] = entry{binary: binary}
	}
	return catalog, nil
}

// findImages resolves every program but the load program to an image.
func findImages(ctx context.Context, store imageStore, overrides map[string]string) (*Catalog, error) {
	catalog := &Catalog{Runtime: spec.Docker, entries: map[string]entry{}}
	var problems []error
	for name := range overrides {
		if _, err := find(name); err != nil {
			problems = append(problems, err)
		}
	}
	for _, p := range programs {
		if p.name == Load && overrides[Load] == "" {
			continue
		}
		e, err := findImage(ctx, store, p, overrides[p.name])
		problems = append(problems, err)
		catalog.entries[p.name] = e
	}
	return catalog, errors.Join(problems...)
}

// findImage takes the override, else the public image, else the one made here, and of these only
// what is present.
func findImage(ctx context.Context, store imageStore, p program, override string) (entry, error) {
	candidates := []string{override}
	if override == "" {
		candidates = p.images()
	}
	for _, ref := range candidates {
		img, present, err := store.inspect(ctx, ref)
		if err != nil {
			return entry{}, err
		}
		if present {
			return entry{binary: imageBinary(ref, img)}, nil
		}
	}
	return entry{absent: &Absent{Program: p.name, What: "image " + strings.Join(candidates, " or ") + " not in the daemon",
		Remedy: p.imageRemedy(override)}}, nil
}

// images are the names an image of the program may have, the preferred one first.
func (p program) images() []string {
	var refs []string
	if p.public != "" {
		refs = append(refs, p.public)
	}
	if p.local != "" {
		refs = append(refs, p.localRef())
	}
	return refs
}

func (p program) imageRemedy(override string) string {
	switch {
	case override != "":
		return "docker pull " + override
	case p.public == "":
		return "make images"
	case p.local == "":
		return "docker pull " + p.public
	}
	return "docker pull " + p.public + ", or make images"
}

// imageBinary describes an image. Its version is its tag, the only thing known before it runs: a
// public tag such as 5.0 moves. A stand-in is named as one, whatever it stands for.
func imageBinary(ref string, img image) node.Binary {
	binary := node.Binary{Image: ref, Version: strings.TrimPrefix(tagOf(ref), "v"), Source: ref + " " + img.id}
	if img.labels[labelStandIn] != "" {
		binary.Version = "stand-in, not ScyllaDB (" + tagOf(ref) + ")"
	}
	return binary
}

// tagOf is the tag or digest of a reference; without one Docker takes latest.
func tagOf(ref string) string {
	if _, digest, found := strings.Cut(ref, "@"); found {
		return digest
	}
	if i := strings.LastIndex(ref, ":"); i > strings.LastIndex(ref, "/") {
		return ref[i+1:]
	}
	return "latest"
}

// memoryAvailable is what the kernel would give to new programs, in bytes (Linux).
func memoryAvailable(readFile func(string) ([]byte, error)) (int64, error) {
	return meminfo(readFile, "MemAvailable")
}

func meminfo(readFile func(string) ([]byte, error), field string) (int64, error) {
	data, err := readFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if rest, found := strings.CutPrefix(line, field+":"); found {
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				return 0, fmt.Errorf("read %s of /proc/meminfo: %w", field, err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("read /proc/meminfo: no %s: %w", field, os.ErrNotExist)
}
