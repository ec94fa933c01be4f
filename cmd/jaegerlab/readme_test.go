package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jaegerlab/bench"
	"jaegerlab/bench/exporters"
	"jaegerlab/lab/spec"
	"jaegerlab/report"
)

var update = flag.Bool("update", false, "rewrite the generated parts of the README")

const readme = "../../README.md"

// The README's settings are those of package spec: name, default, what is accepted.
func TestReadmeSettings(t *testing.T) {
	var table strings.Builder
	table.WriteString("| variable | default | accepted | meaning |\n|---|---|---|---|\n")
	for _, s := range spec.Settings() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", s.Name, s.Default, s.Accepted, s.Doc)
	}
	checkSection(t, "settings", table.String())
}

// from takes newer records before -update writes the README: a folder of results, of which the
// newest benchmark of each kind goes to testdata.
var from = flag.String("from", "", "with -update: folder of results whose newest benchmarks the README is to show")

// The README's tables of generators and exporters are those of the records in testdata. To show
// newer ones, after `make bench-load` and the experiment exporters:
//
//	go test ./cmd/jaegerlab -run Readme -update -from ../../results
func TestReadmeBenchmarks(t *testing.T) {
	for name, text := range map[string]string{
		"generators": "From a real run of `make bench-load`",
		"exporters":  "From a real run of `go test ./experiments -run Exporters`",
	} {
		dir := filepath.Join("testdata", name)
		if *update && *from != "" {
			takeNewest(t, name, dir)
		}
		r, doc, err := benchDocument(dir)
		if err != nil {
			t.Fatal(err)
		}
		if name == "exporters" {
			r.Rows = slices.DeleteFunc(r.Rows, func(row bench.Row) bool { return !inReadme(row, r.Rows) })
			doc = exporters.Document(r)
		}
		var part strings.Builder
		fmt.Fprintf(&part, "%s (%s), its host: %d CPUs, %s.\n\n", text, r.ID, r.Host.CPUs, r.Host.CPUModel)
		for _, line := range doc.Notes {
			fmt.Fprintf(&part, "- %s\n", line)
		}
		part.WriteString("\n")
		if err := report.MarkdownTable(&part, doc.Tables[0]); err != nil {
			t.Fatal(err)
		}
		checkSection(t, name, part.String())
	}
}

// inReadme picks an exporter's row of the most batches; of the lab's own over UDP, whose memory is
// the question, and of a real Jaeger every row.
func inReadme(row bench.Row, all []bench.Row) bool {
	const unit = "batches/op"
	most := 0.0
	for _, other := range all {
		most = max(most, other.Median(unit))
	}
	return row.Median(unit) == most || strings.HasPrefix(row.Name, "lab/udp/batches=") ||
		strings.HasPrefix(row.Name, "jaeger-v2/")
}

func takeNewest(t *testing.T, name, to string) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(*from, name, "*", "benchmark.json"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("%s has no benchmark of %s: %v", *from, name, err)
	}
	data, err := os.ReadFile(slices.Max(folders)) // folders begin with the time
	if err == nil {
		err = os.MkdirAll(to, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "benchmark.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checkSection compares the text between a section's two marks with what it should be.
func checkSection(t *testing.T, name, want string) {
	t.Helper()
	data, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
	before, rest, found := strings.Cut(string(data), begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("README.md has no section %s", name)
	}
	if got == want {
		return
	}
	if *update {
		if err := os.WriteFile(readme, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("README.md's section %s is stale: go test ./cmd/jaegerlab -run Readme -update\n%s", name, cmp.Diff(want, got))
}

// Every make target and every command of the lab that the README shows exists.
func TestReadmeCommandsExist(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range found("(?m)(?:^|`)make ([a-z-]+)", text) {
		if !regexp.MustCompile(`(?m)^` + target + `:`).Match(makefile) {
			t.Errorf("README.md shows make %s, which is no target", target)
		}
	}
	var help strings.Builder
	if err := run(t.Context(), []string{"help"}, &help, &help); err != nil {
		t.Fatal(err)
	}
	for _, command := range found(`cmd/jaegerlab ([a-z][a-z-]*)`, text) {
		if !strings.Contains(help.String(), "\n  "+command+" ") {
			t.Errorf("README.md shows jaegerlab %s, which is no command", command)
		}
	}
}

// Every relative link of the README leads to a file or folder.
func TestReadmeLinks(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range found(`\]\(([^)#:]+)\)`, text) {
		if _, err := os.Stat("../../" + link); err != nil {
			t.Errorf("README.md links to %s: %v", link, err)
		}
	}
}

func found(pattern string, text []byte) []string {
	var words []string
	for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		if word := string(match[1]); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}
