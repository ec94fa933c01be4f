package verify

import (
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jaegerlab/lab/record"
)

// eachFile calls test for every file below dir that holds something, and restores it.
func eachFile(t *testing.T, dir string, test func(rel string, data []byte)) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || len(data) == 0 {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files++
		test(filepath.ToSlash(rel), slices.Clone(data))
		return os.WriteFile(path, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// said is everything that verify says of what is wrong.
func said(dir string) string {
	result, err := Dir(dir)
	if err != nil {
		return err.Error()
	}
	return strings.Join(result.Problems, "\n")
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// One changed bit anywhere, or a part that is gone, fails, and the file is named.
func TestDamageNamesTheFile(t *testing.T) {
	dir := saved(t, nil)
	random := rand.New(rand.NewPCG(5, 1))
	files := eachFile(t, dir, func(rel string, data []byte) {
		path := filepath.Join(dir, rel)
		for _, at := range []int{0, random.IntN(len(data)), len(data) - 1} {
			bit := byte(1) << random.IntN(8)
			data[at] ^= bit
			write(t, path, data)
			if all := said(dir); !strings.Contains(all, filepath.Base(rel)) {
				t.Errorf("bit %08b of byte %d of %s changed, and what is said is %q", bit, at, rel, all)
			}
			data[at] ^= bit
		}
		write(t, path, data[:random.IntN(len(data))])
		if all := said(dir); !strings.Contains(all, filepath.Base(rel)) {
			t.Errorf("%s was cut off, and what is said is %q", rel, all)
		}
	})
	if files < 25 {
		t.Errorf("%d files were tried", files)
	}
	if all := said(dir); all != "" {
		t.Errorf("restored, and still: %s", all)
	}
}

// A raw fact that is gone fails. A report that is gone can be made again, which is said.
func TestMissingFiles(t *testing.T) {
	dir := saved(t, nil)
	eachFile(t, dir, func(rel string, _ []byte) {
		if err := os.Remove(filepath.Join(dir, rel)); err != nil {
			t.Fatal(err)
		}
		result, err := Dir(dir)
		all := strings.Join(result.Problems, "\n")
		if rel == "record.json" {
			if err == nil || !strings.Contains(err.Error(), rel) {
				t.Errorf("without a record: %v", err)
			}
			return
		}
		if report := !strings.Contains(rel, "/"); report {
			if notes := strings.Join(result.Notes, "\n"); !result.Whole() || !strings.Contains(notes, "there is no "+rel) {
				t.Errorf("without %s: %q, notes %q", rel, all, notes)
			}
		} else if !strings.Contains(all, rel) {
			t.Errorf("without %s: %q", rel, all)
		}
	})
}

// Files of two runs that changed places are both named.
func TestSwappedFiles(t *testing.T) {
	dir := saved(t, nil)
	r, err := record.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, b := r.Runs[0].Folder, r.Runs[1].Folder
	for _, name := range []string{"outcomes.csv.gz", "rows.csv.gz", "load.json", "usage.json", "series.csv.gz", "collector-after.prom"} {
		swap := func() {
			one, two := filepath.Join(dir, a, name), filepath.Join(dir, b, name)
			for _, move := range [][2]string{{one, one + ".aside"}, {two, one}, {one + ".aside", two}} {
				if err := os.Rename(move[0], move[1]); err != nil {
					t.Fatal(err)
				}
			}
		}
		swap()
		if all := said(dir); !strings.Contains(all, a+"/"+name) || !strings.Contains(all, b+"/"+name) {
			t.Errorf("%s: %q", name, all)
		}
		swap()
	}
}

// What the load node said, changed together with the record and every checksum, contradicts the
// outcomes.
func TestForgedLoad(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*record.Run)
		want   string
	}{
		"requests": {func(run *record.Run) { run.Sent.Requests += 10 }, "sent.requests is"},
		"retries":  {func(run *record.Run) { run.Sent.Retries++ }, "sent.retries is"},
		"reasons": {func(run *record.Run) {
			run.Sent.RefusedReasons = []record.Reason{{Reason: "forged", Spans: 1}}
		}, "sent.refused_reasons is"},
		"latency": {func(run *record.Run) {
			hist := record.NewLatencyHistogram()
			record.CountLatency(hist, 1_000_000)
			run.Request, _ = record.NewLatency(hist)
		}, "latencies.request has 1 values"},
		"window too short": {func(run *record.Run) { run.Window.End -= 500_000_000 }, "its window is"},
		"window too late":  {func(run *record.Run) { run.Window.Start += 400_000_000 }, "before the window began"},
	} {
		dir := saved(t, nil)
		r, err := record.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		run := &r.Runs[0]
		test.change(run)
		forge(t, dir, run)
		_ = (&record.Folder{Dir: dir, ID: r.ID, Experiment: r.Experiment}).Save(r) // the link to the newest has no place here
		if all := said(dir); !strings.Contains(all, test.want) || strings.Contains(all, loadFile) {
			t.Errorf("%s: %q, want %q", name, all, test.want)
		}
	}
}

// forge makes load.json say what the run does, and sums it anew.
func forge(t *testing.T, dir string, run *record.Run) {
	t.Helper()
	path := filepath.Join(dir, run.Folder, loadFile)
	var file map[string]any
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	file["sent"], file["request"], file["window"] = run.Sent, run.Request, run.Window
	again, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, again)
	sum, err := (&record.Folder{Dir: dir}).Sum(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, old := range run.Files {
		if old.Path == sum.Path {
			run.Files[i] = sum
		}
	}
}

// Every figure of a run is derived, or listed with the file it was taken from.
func TestNothingIsTakenInSilence(t *testing.T) {
	result := verified(t, savedFrom(t, "testdata/open", func(r *record.Record) { r.Runs[0].Unfit = "its driver did not recover" }))
	listed := map[string][]string{}
	for _, taken := range result.Taken {
		listed[taken.File] = taken.Figures
	}
	for _, want := range []string{"window", "sent.bytes", "sent.pace.bound", "sent.pace.offered_spans", "generated_per_worker"} {
		if !slices.Contains(listed[loadFile], want) {
			t.Errorf("%s is not in %q", want, listed[loadFile])
		}
	}
	for _, want := range []string{"drain_s", "read_back_s", "start_to_load_s", "unfit", "resources[].in_force"} {
		if !slices.Contains(listed[recordFile], want) {
			t.Errorf("%s is not in %q", want, listed[recordFile])
		}
	}
	for file, figures := range listed {
		for _, derived := range []string{"sent", "sent.requests", "ledger", "latencies", "latencies.request", "stored_in_window", "resources"} {
			if slices.Contains(figures, derived) {
				t.Errorf("%s is derived, and said to be taken from %s", derived, file)
			}
		}
	}
}

// A run that was interrupted is what it says it is: no more is claimed of it, and no less is checked.
func TestIncompleteIsSaid(t *testing.T) {
	dir := saved(t, func(r *record.Record) {
		run := &r.Runs[0]
		r.Complete, r.Incomplete = false, "interrupted"
		run.Error, run.Facts, run.Verdict, run.Reasons = "interrupted", nil, record.Unknown, nil
		run.StoredInWindow, run.StoredPerS, run.StoredAfterDrain, run.SendToStore = nil, nil, nil, nil
	})
	result := verified(t, dir)
	notes := strings.Join(result.Notes, "\n")
	if !result.Whole() || !strings.Contains(notes, "the comparison is incomplete: interrupted") ||
		!strings.Contains(notes, "nothing to derive") {
		t.Errorf("%q, notes %q", result.Problems, notes)
	}
	claimed := saved(t, func(r *record.Record) { r.Complete, r.Runs[0].Error = true, "interrupted" })
	if all := said(claimed); !strings.Contains(all, "it is complete, and") {
		t.Errorf("%q", all)
	}
}

// A black hole stores nothing: that is derived too.
func TestABlackHoleStoresNothing(t *testing.T) {
	dir := saved(t, func(r *record.Record) { r.Runs[0].Facts.NoStore = true })
	if all := said(dir); !strings.Contains(all, "verdict is") {
		t.Errorf("a run that stored was taken for one of a black hole: %q", all)
	}
}
