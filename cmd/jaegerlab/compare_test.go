package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// saveResult saves rounds of one arm that stored so much in the window.
func saveResult(t *testing.T, stored ...int64) string {
	t.Helper()
	folder, err := record.Create(t.TempDir(), "backends")
	if err != nil {
		t.Fatal(err)
	}
	arm := spec.Arm{Backend: spec.Backend{Engine: spec.Cassandra, Nodes: 2}, Collector: "v2", Client: "otlp-grpc", Profile: spec.T2, Replication: 1}
	r := record.Record{Complete: true}
	for i, n := range stored {
		r.Runs = append(r.Runs, record.Run{Arm: arm.Name(), Spec: arm, Round: i + 1, WindowS: 60, Verdict: record.Whole, LimitsInForce: true,
			StoredInWindow: &n, Engine: record.Engine{Name: "Apache Cassandra", Version: "5.0.6", Nodes: 2}})
	}
	if err := folder.Save(r); err != nil {
		t.Fatal(err)
	}
	return folder.Dir
}

// A pipeline tells by the exit code alone whether it got worse, whether that is not known, and
// whether there was anything to compare.
func TestCompareExitCodes(t *testing.T) {
	old := saveResult(t, 1000, 1001, 1002, 1003, 1004)
	worse := saveResult(t, 900, 901, 902, 903, 904)
	noisy := saveResult(t, 1000, 700, 1300, 1002, 900)
	few := saveResult(t, 900, 901)
	newer := saveResult(t, 1000)
	rewrite(t, newer, `"version": 1`, `"version": 99`)
	cut := saveResult(t, 1000)
	if err := os.Truncate(filepath.Join(cut, "record.json"), 300); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"the same":          {[]string{old, old}, 0, "Gate: ok"},
		"better":            {[]string{worse, old}, 0, "Gate: ok"},
		"a regression":      {[]string{old, worse}, 1, "Gate: REGRESSION"},
		"a wide threshold":  {[]string{old, worse, "--threshold", "20%"}, 0, "Gate: ok"},
		"as a share":        {[]string{old, worse, "--threshold=0.05"}, 1, "Gate: REGRESSION"},
		"noise":             {[]string{old, noisy}, 3, "Gate: unknown"},
		"too few rounds":    {[]string{old, few}, 3, "needs"},
		"no such result":    {[]string{old, "nowhere"}, 2, "NEW"},
		"a newer version":   {[]string{newer, old}, 2, "use a newer jaegerlab"},
		"cut off":           {[]string{old, cut}, 2, "cut off"},
		"one result":        {[]string{old}, 2, "two results are needed"},
		"a bad threshold":   {[]string{old, old, "--threshold", "much"}, 2, "accepted is a percentage"},
		"a bad quantity":    {[]string{old, old, "--quantity", "speed"}, 2, "accepted are"},
		"an unknown option": {[]string{old, old, "--treshold", "5%"}, 2, "treshold"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"compare"}, test.args...), &out, &out)
		code, text := 0, out.String()
		if err != nil {
			code, text = exitCode(err), text+err.Error()
		}
		if code != test.code || !strings.Contains(text, test.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", name, code, test.code, test.want, text)
		}
	}
}

func rewrite(t *testing.T, dir, old, new string) {
	t.Helper()
	path := filepath.Join(dir, "record.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
