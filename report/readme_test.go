package report

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jaegerlab/lab/record"
)

// The README's example is a real run: the first lines and the headline of the record in testdata,
// as report.md shows them.
func TestReadmeExample(t *testing.T) {
	r, err := record.Load("testdata/readme")
	if err != nil {
		t.Fatal(err)
	}
	doc := Of(r)
	m := &markdown{}
	m.line("From a real run of `make lab` (%s, lab %s), its host: %d CPUs, %s.", r.ID, r.Lab, r.Host.CPUs, escape(r.Host.CPUModel))
	m.line("")
	for _, note := range doc.Notes {
		m.line("- %s", escape(note))
	}
	headline := doc.Tables[0]
	headline.Title = ""
	m.table(headline)
	want := strings.Replace(m.String(), "\n\n## \n\n", "\n\n", 1)

	const readme = "../README.md"
	data, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- example: begin -->\n", "<!-- example: end -->"
	before, rest, found := strings.Cut(string(data), begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("README.md has no section example")
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
	t.Errorf("README.md's example is stale: go test ./report -run Readme -update\n%s", cmp.Diff(want, got))
}
