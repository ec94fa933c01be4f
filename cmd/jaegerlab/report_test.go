package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// A format goes to standard output alone, and nothing is written beside the record.
func TestReportInAFormat(t *testing.T) {
	const dir = "../../report/testdata/readme"
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	print := func(format string) []byte {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"report", dir, "--format", format}, &out, &out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	if lines, err := csv.NewReader(bytes.NewReader(print("csv"))).ReadAll(); err != nil || len(lines) < 10 {
		t.Errorf("csv: %d lines, %v", len(lines), err)
	}
	var document struct{ Tables []any }
	if err := json.Unmarshal(print("json"), &document); err != nil || len(document.Tables) == 0 {
		t.Errorf("json: %d tables, %v", len(document.Tables), err)
	}
	if out := string(print("markdown")); !strings.HasPrefix(out, "# ") {
		t.Errorf("markdown begins %.40q", out)
	}
	if after, _ := os.ReadDir(dir); len(after) != len(before) {
		t.Errorf("the folder had %d files and has %d", len(before), len(after))
	}
	if err := run(t.Context(), []string{"report", dir, "--format", "pdf"}, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
		t.Error("an unknown format is no error")
	}
}

// Folders of benchmarks are rendered as folders of comparisons are.
func TestReportOfABenchmark(t *testing.T) {
	for _, name := range []string{"generators", "exporters"} {
		dir := t.TempDir()
		data, err := os.ReadFile("testdata/" + name + "/benchmark.json")
		if err == nil {
			err = os.WriteFile(dir+"/benchmark.json", data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := run(t.Context(), []string{"report", dir}, &out, &out); err != nil || !strings.Contains(out.String(), "lab/") {
			t.Errorf("%s: %v:\n%s", name, err, &out)
		}
		for _, file := range []string{"report.md", "bench.txt"} {
			if text, err := os.ReadFile(dir + "/" + file); err != nil || !strings.Contains(string(text), "lab/") {
				t.Errorf("%s: %s: %v:\n%s", name, file, err, text)
			}
		}
		for format, want := range map[string]string{"benchfmt": "Benchmarklab/", "markdown": "| lab/"} {
			out.Reset()
			err := run(t.Context(), []string{"report", dir, "--format", format}, &out, &out)
			if err != nil || !strings.Contains(out.String(), want) {
				t.Errorf("%s as %s: %v:\n%.500s", name, format, err, &out)
			}
		}
		err = run(t.Context(), []string{"report", dir, "--format", "html"}, &out, &out)
		if err == nil || !strings.Contains(err.Error(), "terminal, markdown or benchfmt") {
			t.Errorf("html: %v", err)
		}
	}
}
