package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jaegerlab/lab/spec"
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
	for _, command := range found(`cmd/jaegerlab ([a-z]+)`, text) {
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
