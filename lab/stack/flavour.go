package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	yaml "go.yaml.in/yaml/v3"

	"jaegerlab/lab/spec"
)

// Flavour is a collector as LAB_COLLECTOR names it: which Jaeger, and whose settings.
type Flavour struct {
	Name       string   // v2, v2-stock, v1, or the file's name field
	Generation string   // "v2" or "v1": which configuration and metric names it has
	Stock      bool     // the pipeline of Jaeger's own example configuration
	File       string   // absolute path of the collector file; "" for the built-in ones
	Image      string   // own image; "" = the pinned one
	Binary     string   // own executable, absolute; "" = the pinned one
	Config     string   // own configuration with placeholders; "" = the lab's
	Env        []string // NAME=value, after the lab's own: the last one wins
	Args       []string // after the lab's own
}

// The generations of Jaeger.
const (
	V2 = "v2"
	V1 = "v1"
)

// Own reports whether the user's file changes anything of the pinned program.
func (f Flavour) Own() bool { return f.Image != "" || f.Binary != "" }

// ParseFlavour resolves a word of LAB_COLLECTOR. All faults of a collector file are returned at
// once, each with the field, its value and what is accepted.
func ParseFlavour(name string) (Flavour, error) {
	switch name {
	case "v2":
		return Flavour{Name: name, Generation: V2}, nil
	case "v2-stock":
		return Flavour{Name: name, Generation: V2, Stock: true}, nil
	case "v1":
		return Flavour{Name: name, Generation: V1}, nil
	}
	if !spec.IsFile(name) {
		return Flavour{}, fmt.Errorf("collector %q: accepted are v2, v2-stock, v1 or the path of a collector file "+
			"(.yaml, .yml, .json)", name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return Flavour{}, fmt.Errorf("read collector file: %w", err)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return Flavour{}, fmt.Errorf("read collector file %s: %w", name, err)
	}
	f, problems := parseFile(path, data)
	if len(problems) > 0 {
		return Flavour{}, fmt.Errorf("collector file %s:\n%w", name, errors.Join(problems...))
	}
	return f, nil
}

var fileFields = []string{"name", "flavour", "image", "binary", "config", "env", "args"}

// parseFile reads a collector file. YAML is a superset of JSON, so one reader serves both.
func parseFile(path string, data []byte) (Flavour, []error) {
	var fields map[string]any
	if err := yaml.Unmarshal(data, &fields); err != nil {
		return Flavour{}, []error{fmt.Errorf("not a mapping in YAML or JSON: %w; accepted fields: %s",
			err, strings.Join(fileFields, ", "))}
	}
	p := fileParser{fields: fields, folder: filepath.Dir(path)}
	p.unknownFields()
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	f := Flavour{
		File:       path,
		Name:       p.text("name", base),
		Generation: p.text("flavour", V2),
		Image:      p.text("image", ""),
		Binary:     p.text("binary", ""),
		Env:        p.list("env"),
		Args:       p.list("args"),
	}
	p.checkName(f.Name)
	if f.Generation != V2 && f.Generation != V1 {
		p.refuse("flavour", f.Generation, "accepted: v2, v1")
	}
	if f.Image != "" && !imageReference.MatchString(f.Image) {
		p.refuse("image", f.Image, "accepted: an image reference such as jaegertracing/jaeger:2.20.0")
	}
	f.Binary = p.executable(f.Binary)
	f.Config = p.config(f.Generation)
	for _, variable := range f.Env {
		if name, _, ok := strings.Cut(variable, "="); !ok || name == "" {
			p.refuse("env", variable, "accepted: a list of NAME=value")
		}
	}
	return f, p.problems
}

var (
	flavourName    = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`)
	imageReference = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._/:@-]*$`)
)

type fileParser struct {
	fields   map[string]any
	folder   string
	problems []error
}

func (p *fileParser) refuse(field string, value any, format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("%s: %q: %s", field, fmt.Sprint(value), fmt.Sprintf(format, args...)))
}

func (p *fileParser) unknownFields() {
	var names []string
	for name := range p.fields {
		if !slices.Contains(fileFields, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		nearest := slices.MinFunc(fileFields, func(a, b string) int {
			return levenshtein.ComputeDistance(name, a) - levenshtein.ComputeDistance(name, b)
		})
		p.problems = append(p.problems, fmt.Errorf("%s: no such field; the nearest is %s; accepted fields: %s",
			name, nearest, strings.Join(fileFields, ", ")))
	}
}

func (p *fileParser) text(field, missing string) string {
	value, ok := p.fields[field]
	if !ok || value == nil {
		return missing
	}
	text, ok := value.(string)
	if !ok || text == "" {
		p.refuse(field, value, "accepted: a non-empty text")
		return missing
	}
	return text
}

func (p *fileParser) list(field string) []string {
	value, ok := p.fields[field]
	if !ok || value == nil {
		return nil
	}
	items, ok := value.([]any)
	if !ok {
		p.refuse(field, value, "accepted: a list of texts")
		return nil
	}
	var texts []string
	for _, item := range items {
		switch item.(type) {
		case string, int, float64, bool:
			texts = append(texts, fmt.Sprint(item))
		default:
			p.refuse(field, item, "accepted: a list of texts")
		}
	}
	return texts
}

func (p *fileParser) checkName(name string) {
	if !flavourName.MatchString(name) {
		p.refuse("name", name, "accepted: up to 40 of a-z, 0-9, '.', '_', '-', the first a letter or digit")
	}
	if slices.Contains([]string{"v2", "v2-stock", "v1"}, name) {
		p.refuse("name", name, "this is one of the lab's own collectors; take another name")
	}
}

func (p *fileParser) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.folder, path)
}

func (p *fileParser) executable(path string) string {
	if path == "" {
		return ""
	}
	full := p.resolve(path)
	info, err := os.Stat(full)
	switch {
	case err != nil:
		p.refuse("binary", path, "%v; accepted: the path of an executable, relative to the collector file", err)
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		p.refuse("binary", path, "%s is not executable; accepted: the path of an executable", full)
	}
	return full
}

// config returns the own configuration's text: the field is the text itself when it holds more
// than one line or is a mapping, otherwise a path.
func (p *fileParser) config(generation string) string {
	value, ok := p.fields["config"]
	if !ok || value == nil {
		return ""
	}
	if generation == V1 {
		p.refuse("config", "...", "v1 takes no configuration file; accepted with flavour v1: env and args")
		return ""
	}
	var text string
	switch v := value.(type) {
	case string:
		text = v
		if !strings.Contains(strings.TrimSpace(v), "\n") {
			data, err := os.ReadFile(p.resolve(v))
			if err != nil {
				p.refuse("config", v, "%v; accepted: a path relative to the collector file, or inline YAML", err)
				return ""
			}
			text = string(data)
		}
	case map[string]any:
		data, err := yaml.Marshal(v)
		if err != nil {
			p.refuse("config", "...", "%v", err)
			return ""
		}
		text = string(data)
	default:
		p.refuse("config", value, "accepted: inline YAML or the path of a file")
		return ""
	}
	p.checkConfig(text)
	return text
}

// checkConfig refuses a configuration that the lab could not read back from or count.
func (p *fileParser) checkConfig(text string) {
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		p.refuse("config", "...", "not a mapping in YAML: %v", err)
		return
	}
	plain, err := yaml.Marshal(tree) // without comments: a placeholder in a comment does nothing
	if err != nil {
		p.refuse("config", "...", "%v", err)
		return
	}
	for _, need := range []struct{ placeholder, why string }{
		{placeholderStorage, "without it the collector would not write to the arm's backend"},
		{"${port.metrics}", "without it the lab could not read the collector's counters"},
	} {
		if !strings.Contains(string(plain), need.placeholder) {
			p.refuse("config", "...", "%s is missing: %s", need.placeholder, need.why)
		}
	}
}
