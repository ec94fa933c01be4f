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
