package record

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func newFolder(t *testing.T) *Folder {
	t.Helper()
	f, err := Create(filepath.Join(t.TempDir(), "results"), "backends")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// example is a record with nulls and numbers in the places where they must not be mixed up.
func example() Record {
	stored := int64(0)
	return Record{
		Lab: "v0", Started: time.Unix(1700000000, 0).UTC(), Complete: true,
		Runs: []Run{
			{Arm: "badger v2 otlp-grpc", Round: 1, Verdict: Whole, Ledger: Ledger{Foreign: nil}},
			{Arm: "cassandra:2 v2 otlp-grpc", Round: 1, Verdict: Unknown, StoredInWindow: &stored},
		},
	}
}

func TestSaveThenLoadGivesTheSameRecord(t *testing.T) {
	f := newFolder(t)
	want := example()
	if err := f.Save(want); err != nil {
		t.Fatal(err)
	}
	want.Version, want.ID, want.Experiment = Version, f.ID, "backends"
	for _, path := range []string{f.Dir, filepath.Join(f.Dir, "record.json"), filepath.Join(f.results, "latest")} {
		got, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Load(%s) differs from what was saved (-want +got):\n%s", path, diff)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(f.Dir, ".*")); len(left) > 0 {
		t.Errorf("Save left %v behind", left)
	}
}

// An unknown figure must stay null on disk and in memory: zero would be a false statement.
func TestUnknownIsNullOnDisk(t *testing.T) {
	f := newFolder(t)
	if err := f.Save(example()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(f.Dir, "record.json"))
	if err != nil {
		t.Fatal(err)
	}
	var raw struct {
		Runs []map[string]any `json:"runs"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	if v, there := raw.Runs[0]["stored_in_window"]; !there || v != nil {
		t.Errorf("unknown stored_in_window is %v in record.json, want null", v)
	}
	if v := raw.Runs[1]["stored_in_window"]; v != 0.0 {
		t.Errorf("known stored_in_window 0 is %v in record.json, want 0", v)
	}
}

func TestLatestPointsToTheLastSaved(t *testing.T) {
	results := filepath.Join(t.TempDir(), "results")
	for _, experiment := range []string{"one", "two"} {
		f, err := Create(results, experiment)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Save(Record{}); err != nil {
			t.Fatal(err)
		}
		r, err := Load(filepath.Join(results, "latest"))
		if err != nil || r.ID != f.ID {
			t.Errorf("results/latest gives record %q, %v; want %q", r.ID, err, f.ID)
		}
	}
}

// Where a file system has no links, results/latest is a text file; it must not lead elsewhere.
func TestLatestAsTextFile(t *testing.T) {
	f := newFolder(t)
	if err := f.Save(Record{}); err != nil {
		t.Fatal(err)
	}
	latest := filepath.Join(f.results, "latest")
	for text, want := range map[string]string{"backends/" + f.ID + "\n": "", "../../etc": "no folder below", "/etc": "no folder below"} {
		if err := WriteFile(latest, []byte(text)); err != nil {
			t.Fatal(err)
		}
		_, err := Load(latest)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Load of a latest file holding %q: %v, want %q", text, err, want)
		}
	}
}

func TestSaveReplacesAFolderNamedLatestOnlyByHand(t *testing.T) {
	f := newFolder(t)
	if err := os.MkdirAll(filepath.Join(f.results, "latest", "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := f.Save(Record{})
	if err == nil || !strings.Contains(err.Error(), "remove what stands there") {
		t.Errorf("Save = %v, want an error that says what to remove", err)
	}
	if _, err := Load(f.Dir); err != nil {
		t.Errorf("the record itself was not saved: %v", err)
	}
}

func TestLoadRefusesWhatIsNoWholeRecord(t *testing.T) {
	f := newFolder(t)
	if err := f.Save(example()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir, "record.json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(good)
	for name, test := range map[string]struct{ data, want string }{
		"newer":        {strings.Replace(text, `"version": 1`, `"version": 2`, 1), "use a newer jaegerlab"},
		"version zero": {strings.Replace(text, `"version": 1`, `"version": 0`, 1), "never was"},
		"cut off":      {text[:len(text)/2], "cut off after"},
		"empty":        {"", "empty"},
		"two records":  {text + text, "mix of several"},
		"no record":    {`{"a": 1}`, "no version"},
		"a list":       {`[1]`, "no version"},
		"no JSON":      {"arm;stored\n", "not JSON"},
		"wrong type":   {strings.Replace(text, `"round": 1`, `"round": "one"`, 1), "not a record of version 1"},
		"same run twice": {strings.Replace(text, "badger v2 otlp-grpc", "cassandra:2 v2 otlp-grpc", 1),
			"there twice"},
		"run elsewhere":   {strings.Replace(text, `"folder": ""`, `"folder": "../../other"`, 1), "outside"},
		"unknown verdict": {strings.Replace(text, `"verdict": "whole"`, `"verdict": "fine"`, 1), "known: whole"},
	} {
		if err := os.WriteFile(path, []byte(test.data), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Load(f.Dir)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "record.json") {
			t.Errorf("%s: Load = %v, want the file's name and %q", name, err, test.want)
		}
	}
}

func TestLoadOfAnythingElseSaysWhatIsMissing(t *testing.T) {
	empty := t.TempDir()
	if _, err := Load(empty); err == nil || !strings.Contains(err.Error(), "has no record.json") {
		t.Errorf("Load of an empty folder = %v", err)
	}
	if _, err := Load(filepath.Join(empty, "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("Load of no folder = %v", err)
	}
}

func TestSaveRefusesWhatCanNotBeReadBack(t *testing.T) {
	f := newFolder(t)
	nan := math.NaN()
	for name, test := range map[string]struct {
		record Record
		want   string
	}{
		"not a number":  {Record{Runs: []Run{{StoredPerS: &nan}}}, "record.Runs[0].StoredPerS is not a number"},
		"other record":  {Record{ID: "20200101T000000Z-abcdef"}, "this folder is for"},
		"same run":      {Record{Runs: []Run{{Arm: "a"}, {Arm: "a"}}}, "there twice"},
		"outside files": {Record{Runs: []Run{{Files: []File{{Path: "/etc/passwd"}}}}}, "outside"},
	} {
		if err := f.Save(test.record); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Save = %v, want %q", name, err, test.want)
		}
	}
}

func TestCreateRefusesTheNameOfTheLink(t *testing.T) {
	if _, err := Create(t.TempDir(), "Latest"); err == nil || !strings.Contains(err.Error(), "newest") {
		t.Errorf("Create = %v", err)
	}
}

func TestRunFoldersNeverMeet(t *testing.T) {
	f := newFolder(t)
	seen := map[string]bool{}
	for _, arm := range []string{"cassandra:2 v2 otlp-grpc", "cassandra:2/v2 otlp-grpc", "../../etc", "/", "", ".hidden", strings.Repeat("x", 300), "a\nb|c"} {
		run, err := f.Run(arm, 1)
		if err != nil {
			t.Fatal(err)
		}
		if seen[run.Name] || !local(run.Name) || strings.Contains(run.Name, "/") || strings.HasPrefix(run.Name, ".") {
			t.Errorf("arm %q got the folder %q", arm, run.Name)
		}
		seen[run.Name] = true
		if filepath.Dir(run.Dir) != f.Dir {
			t.Errorf("arm %q got the folder %s outside of %s", arm, run.Dir, f.Dir)
		}
		if info, err := os.Stat(run.Logs); err != nil || !info.IsDir() {
			t.Errorf("arm %q has no logs folder: %v", arm, err)
		}
	}
}

// A comparison that was interrupted is opened again, and saving adds to it where it was.
func TestOpenContinuesWhereSaveEnded(t *testing.T) {
	f := newFolder(t)
	if err := f.Save(example()); err != nil {
		t.Fatal(err)
	}
	again, r, err := Open(filepath.Join(f.results, "latest"))
	if err != nil {
		t.Fatal(err)
	}
	r.Runs = append(r.Runs, Run{Arm: "badger v2 otlp-grpc", Round: 2, Verdict: Whole})
	if err := again.Save(r); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(filepath.Join(f.results, "latest")); err != nil || len(got.Runs) != 3 || got.ID != f.ID {
		t.Errorf("after a second session: %d runs of %s, %v", len(got.Runs), got.ID, err)
	}
	if _, _, err := Open(t.TempDir()); err == nil {
		t.Error("an empty folder was opened")
	}
}
