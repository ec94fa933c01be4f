package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

const (
	module        = "jaegerlab"
	fileLines     = 500
	functionLines = 80
)

// vocabulary is what every step may speak.
var vocabulary = []string{"lab/spec", "lab/trace", "lab/record"}

// rooms says what each room may import of this module, itself and its own sub-packages aside. A
// package belongs to the longest room its path begins with. Nothing else may be imported: the
// flow is spec -> backend, stack -> load -> observe -> ledger -> record -> report.
var rooms = map[string][]string{
	"lab/spec":   {},
	"lab/trace":  {},
	"lab/record": {"lab/spec", "lab/trace"},

	"lab/node":             vocabulary,
	"lab/protocol":         with(vocabulary, "lab/internal/frame"),
	"lab/setup":            with(vocabulary, "lab/node", "compose/images"),
	"lab/internal/frame":   {},
	"lab/internal/need":    with(vocabulary, "lab/node", "lab/setup"),
	"lab/internal/testrun": with(vocabulary, "lab/node", "lab/setup", "lab/internal/need"),

	"lab/backend": with(vocabulary, "lab/node", "lab/protocol", "lab/internal/frame"),
	"lab/stack":   with(vocabulary, "lab/node", "lab/protocol", "lab/backend"),
	"lab/load":    with(vocabulary, "lab/node", "lab/protocol"),
	"lab/observe": with(vocabulary, "lab/node"),
	"lab/fault":   with(vocabulary, "lab/node"),
	"lab/ledger":  {"lab/trace", "lab/record"},

	"lab/exporter": {},
	// solo is the real receiver of tests and benchmarks.
	"lab/solo": with(vocabulary, "lab/node", "lab/protocol", "lab/setup"),

	"lab":         with(vocabulary, "lab/node", "lab/protocol", "lab/setup", "lab/backend", "lab/stack", "lab/load", "lab/observe", "lab/fault", "lab/ledger"),
	"report":      with(vocabulary, "report/stat"),
	"report/stat": {},
	// verify reads metrics pages and cgroup reads as observe does; no database, no container.
	"report/verify": with(vocabulary, "lab/ledger", "lab/observe", "lab/node", "report", "report/stat"),
	"experiments":   with(vocabulary, "lab", "report", "bench"),
	// bench measures the lab's own parts and their peers; it stands beside the flow.
	"bench":    with(vocabulary, "lab/node", "lab/protocol", "lab/load", "lab/setup", "lab/exporter", "lab/solo", "report"),
	"grafana":  {"lab/backend", "lab/load", "lab/observe"}, // for the names of metrics
	"lab/tidy": {},

	"compose":           with(vocabulary, "lab/node", "lab/protocol", "lab/setup", "lab/backend", "lab/stack", "lab/load"),
	"compose/images":    {},
	"compose/resources": {"lab/node", "lab/backend", "lab/observe"},
	"cmd":               {"*"}, // wires everything
}

func with(base []string, more ...string) []string { return slices.Concat(base, more) }

// pure rooms never import a container library, not even through other packages: a report renders
// on a machine that has none.
var pure = []string{"lab/spec", "lab/trace", "lab/record", "lab/ledger", "report"}

// containerLibraries are import path prefixes. lab/node runs containers and is the only user of
// testcontainers; lab/setup looks for, pulls and builds images.
var containerLibraries = []string{
	"github.com/testcontainers/", "github.com/docker/", "github.com/moby/", "github.com/containerd/",
}

// file is one Go file of the module.
type file struct {
	path string // relative to the module, with slashes
	test bool
	set  *token.FileSet
	ast  *ast.File
}

// room is the longest room that holds the package of this path; "" = none.
func room(dir string) (name string) {
	for candidate := range rooms {
		if (dir == candidate || strings.HasPrefix(dir, candidate+"/")) && len(candidate) > len(name) {
			name = candidate
		}
	}
	return name
}

func (f file) dir() string { return f.path[:max(strings.LastIndexByte(f.path, '/'), 0)] }

func (f file) at(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", f.path, f.set.Position(pos).Line, fmt.Sprintf(format, args...))
}

// imports of a file with their positions.
func (f file) imports(yield func(path string, at token.Pos) bool) {
	for _, spec := range f.ast.Imports {
		if !yield(strings.Trim(spec.Path.Value, `"`), spec.Pos()) {
			return
		}
	}
}

// direction checks the imports of one file that is no test.
func direction(f file) (problems []string) {
	if f.test {
		return nil
	}
	own := room(f.dir())
	if own == "" {
		return []string{f.at(f.ast.Package, "package %s is in no room: add a line with what it may import to rooms in lab/tidy/rules_test.go", f.dir())}
	}
	for path, at := range f.imports {
		local, ours := strings.CutPrefix(path, module+"/")
		other := room(local)
		switch {
		case !ours || other == own || slices.Contains(rooms[own], "*") || slices.Contains(rooms[own], other):
		case other == "":
			problems = append(problems, f.at(at, "%s is in no room", local))
		default:
			problems = append(problems, f.at(at, "%s must not import %s; allowed: %s. Pass a value instead, or move what both need to a package both may import",
				own, local, strings.Join(rooms[own], ", ")))
		}
	}
	return problems
}

// containers checks who uses container libraries.
func containers(f file) (problems []string) {
	own := room(f.dir())
	for path, at := range f.imports {
		for i, library := range containerLibraries {
			if strings.HasPrefix(path, library) && own != "lab/node" && (own != "lab/setup" || i == 0) {
				problems = append(problems, f.at(at, "only lab/node may import %s (and lab/setup a daemon's client): give node.Runtime what is needed", path))
			}
		}
	}
	return problems
}

// sizes checks lengths. Tests may have long tables, so their functions are not counted.
func sizes(f file) (problems []string) {
	if ast.IsGenerated(f.ast) {
		return nil
	}
	if lines := f.set.File(f.ast.Pos()).LineCount(); lines > fileLines {
		problems = append(problems, f.at(f.ast.Package, "%d lines, at most %d: split it by what its parts are about", lines, fileLines))
	}
	for _, decl := range f.ast.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok || f.test {
			continue
		}
		if lines := f.set.Position(function.End()).Line - f.set.Position(function.Pos()).Line + 1; lines > functionLines {
			problems = append(problems, f.at(function.Pos(), "function %s has %d lines, at most %d: keep the branching here and move the leaves out",
				function.Name.Name, lines, functionLines))
		}
	}
	return problems
}

// banned calls: in libraries, and in tests.
var (
	bannedInLibraries = map[string]string{
		"fmt.Print": "take an io.Writer or a say function", "fmt.Printf": "take an io.Writer or a say function",
		"fmt.Println": "take an io.Writer or a say function",
		"log.Fatal":   "return an error", "log.Fatalf": "return an error", "log.Fatalln": "return an error", "os.Exit": "return an error",
	}
	bannedInTests = map[string]string{"time.Sleep": "use testing/synctest or an injected clock"}
)

// calls checks what must not be called. In a file that uses testing/synctest sleeping costs no
// time; a helper_test.go is the program that tests start as a child, which may wait to be killed.
func calls(f file) (problems []string) {
	banned := bannedInLibraries
	switch {
	case strings.HasSuffix(f.path, "/helper_test.go"):
		return nil
	case f.test:
		banned = bannedInTests
		for path := range f.imports {
			if path == "testing/synctest" {
				return nil
			}
		}
	case f.ast.Name.Name == "main":
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Obj == nil {
			if instead, found := banned[pkg.Name+"."+selector.Sel.Name]; found {
				problems = append(problems, f.at(n.Pos(), "%s.%s is banned here: %s", pkg.Name, selector.Sel.Name, instead))
			}
		}
		return true
	})
	return problems
}
