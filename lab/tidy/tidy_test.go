package tidy

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files parses every Go file of the module; programs of other modules and test data are theirs.
func files(t *testing.T) (all []file) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path == root {
				return nil
			}
			_, module := os.Stat(filepath.Join(path, "go.mod"))
			if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "results" || module == nil {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all = append(all, parse(t, filepath.ToSlash(rel), string(text)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d Go files were found below %s: the rules would hold for nothing", len(all), root)
	}
	return all
}

func parse(t *testing.T, path, text string) file {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file{path: path, test: strings.HasSuffix(path, "_test.go"), set: set, ast: parsed}
}

func check(t *testing.T, rule func(file) []string) {
	t.Helper()
	for _, f := range files(t) {
		for _, problem := range rule(f) {
			t.Error(problem)
		}
	}
}

func TestImportsFollowTheFlow(t *testing.T)           { check(t, direction) }
func TestOnlyNodeUsesContainerLibraries(t *testing.T) { check(t, containers) }
func TestFilesAndFunctionsAreShort(t *testing.T)      { check(t, sizes) }
func TestBannedCalls(t *testing.T)                    { check(t, calls) }

func TestEveryPackageSaysWhereItStands(t *testing.T) {
	commented := map[string]bool{}
	for _, f := range files(t) {
		if !f.test || !commented[f.dir()] {
			commented[f.dir()] = commented[f.dir()] || f.ast.Doc != nil
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(commented)) {
		if !commented[dir] {
			t.Errorf("%s: no package comment: say in one what the package is and where it stands in the flow", dir)
		}
	}
}

// Rendering and judging again must work where no container library does, so none may come in
// through another package either.
func TestPureRoomsNeedNoContainers(t *testing.T) {
	imports := map[string][]string{}
	for _, f := range files(t) {
		if !f.test {
			for path := range f.imports {
				imports[f.dir()] = append(imports[f.dir()], path)
			}
		}
	}
	for _, start := range pure {
		if trail := reaches(imports, start, nil); trail != nil {
			t.Errorf("%s imports a container library: %s", start, strings.Join(trail, " -> "))
		}
	}
}

// reaches gives the way from a package to a container library, or nil.
func reaches(imports map[string][]string, dir string, trail []string) []string {
	if slices.Contains(trail, dir) {
		return nil
	}
	trail = append(slices.Clone(trail), dir)
	for _, path := range imports[dir] {
		for _, library := range containerLibraries {
			if strings.HasPrefix(path, library) {
				return append(trail, path)
			}
		}
		if local, ours := strings.CutPrefix(path, module+"/"); ours {
			if found := reaches(imports, local, trail); found != nil {
				return found
			}
		}
	}
	return nil
}

// Each rule finds a planted breach and lets its neighbour pass.
func TestRulesFindWhatTheyAreFor(t *testing.T) {
	long := "package p\n\nfunc f() {\n" + strings.Repeat("\t_ = 1\n", functionLines) + "}\n"
	for _, test := range []struct {
		name, path, text string
		rule             func(file) []string
		want             string // "" = passes
	}{
		{"report imports a tool", "report/x.go", `package report; import "jaegerlab/lab/node"`, direction, "report must not import lab/node"},
		{"report imports the record", "report/x.go", `package report; import "jaegerlab/lab/record"`, direction, ""},
		{"ledger imports a backend", "lab/ledger/x.go", `package ledger; import "jaegerlab/lab/backend"`, direction, "ledger must not import"},
		{"step calls back", "lab/backend/x.go", `package backend; import "jaegerlab/lab"`, direction, "must not import lab"},
		{"sub-package of its own room", "lab/backend/x.go", `package backend; import "jaegerlab/lab/backend/seastar"`, direction, ""},
		{"sub-package of a lower room", "lab/load/x.go", `package load; import "jaegerlab/lab/protocol/sink"`, direction, ""},
		{"new room", "lab2/x.go", `package lab2`, direction, "in no room"},
		{"containers elsewhere", "lab/x.go", `package lab; import "github.com/testcontainers/testcontainers-go"`, containers, "only lab/node"},
		{"containers in setup", "lab/setup/x.go", `package setup; import "github.com/testcontainers/testcontainers-go"`, containers, "only lab/node"},
		{"images in setup", "lab/setup/x.go", `package setup; import "github.com/moby/moby/client"`, containers, ""},
		{"containers in node", "lab/node/x.go", `package node; import "github.com/moby/moby/client"`, containers, ""},
		{"long function", "lab/x.go", long, sizes, "function f has 82 lines"},
		{"long table of a test", "lab/x_test.go", long, sizes, ""},
		{"long file", "lab/x.go", "package p\n" + strings.Repeat("\n", fileLines), sizes, "at most 500"},
		{"print in a library", "lab/x.go", `package lab; import "fmt"; func f() { fmt.Println() }`, calls, "fmt.Println is banned"},
		{"print to a writer", "lab/x.go", `package lab; import "fmt"; func f() { fmt.Fprintln(nil) }`, calls, ""},
		{"print in a program", "cmd/x/main.go", `package main; import "fmt"; func f() { fmt.Println() }`, calls, ""},
		{"exit in a library", "lab/x.go", `package lab; import "os"; func f() { os.Exit(1) }`, calls, "os.Exit is banned"},
		{"sleep in a test", "lab/x_test.go", `package lab; import "time"; func f() { time.Sleep(1) }`, calls, "testing/synctest"},
		{"sleep in a bubble", "lab/x_test.go", `package lab; import ("time"; "testing/synctest"); func f() { synctest.Test(nil, nil); time.Sleep(1) }`, calls, ""},
	} {
		got := strings.Join(test.rule(parse(t, test.path, test.text)), "\n")
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: the rule says %q, want %q", test.name, got, test.want)
		}
	}
	cycle := map[string][]string{
		"report": {module + "/lab/record"}, "lab/record": {module + "/report", module + "/lab/x"}, "lab/x": {"github.com/docker/docker"},
	}
	if trail := reaches(cycle, "report", nil); len(trail) != 4 {
		t.Errorf("the way to a container library was not found: %v", trail)
	}
}
