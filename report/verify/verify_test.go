package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jaegerlab/lab/record"
	"jaegerlab/report"
)

// saved is a real comparison (testdata/saved: one second of load on a Cassandra node and on badger)
// saved and rendered again, so that it has a seal and its reports; change may alter the record.
func saved(t *testing.T, change func(*record.Record)) string {
	t.Helper()
	return savedFrom(t, "testdata/saved", change)
}

func savedFrom(t *testing.T, from string, change func(*record.Record)) string {
	t.Helper()
	r, err := record.Load(from)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := record.Create(t.TempDir(), r.Experiment)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder.Dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	r.ID = folder.ID
	if change != nil {
		change(&r)
	}
	if err := folder.Save(r); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Render(folder.Dir); err != nil {
		t.Fatal(err)
	}
	return folder.Dir
}

func verified(t *testing.T, dir string) Result {
	t.Helper()
	result, err := Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestARealComparisonHolds(t *testing.T) {
	result := verified(t, saved(t, nil))
	if !result.Whole() || result.Runs != 2 || result.Files < 20 || result.Figures < 100 {
		t.Errorf("%+v", result)
	}
	if _, err := Dir(t.TempDir()); err == nil {
		t.Error("an empty folder was verified")
	}
}

// A figure that does not come from its facts is named, also under a fresh seal and report.
func TestFiguresThatTheFactsDoNotGive(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*record.Run)
		want   string
	}{
		"stored in window": {func(run *record.Run) { *run.StoredInWindow++ }, "stored_in_window is"},
		"saved counter":    {func(run *record.Run) { *run.SavedInWindowCounter += 5 }, "saved_in_window_counter is"},
		"after drain":      {func(run *record.Run) { *run.StoredAfterDrain-- }, "stored_after_drain is"},
		"each second":      {func(run *record.Run) { run.StoredEachS = []int64{1, 2} }, "stored_each_s is"},
		"per second":       {func(run *record.Run) { *run.StoredPerS *= 2 }, "stored_spans_per_s is"},
		"acked":            {func(run *record.Run) { run.Ledger.Acked-- }, "ledger.acked is"},
		"a cell":           {func(run *record.Run) { run.Ledger.Cells[2].Spans++ }, "ledger.cells[2].spans is"},
		"verdict":          {func(run *record.Run) { run.Verdict = record.Lossy }, "verdict is lossy"},
		"reasons":          {func(run *record.Run) { run.Reasons = []string{"so"} }, "reasons is"},
		"window":           {func(run *record.Run) { run.WindowS = 60 }, "window_s is 60"},
		"requests":         {func(run *record.Run) { run.Sent.Requests++ }, "sent.requests is"},
		"p99":              {func(run *record.Run) { run.Request.P99 /= 2 }, "p99_ms is"},
		"send to store":    {func(run *record.Run) { run.SendToStore.P50 = 1 }, "send_to_store.p50_ms is 1"},
		"a counter":        {func(run *record.Run) { *run.Counters[0].Value = 7 }, "counters[0].value is 7"},
		"usage":            {func(run *record.Run) { run.UsageOfWindow = true }, "usage_of_window is true"},
		"statements":       {func(run *record.Run) { *run.WriteStatementsPerSpan = 3 }, "write_statements_per_span is 3"},
		"CPU":              {func(run *record.Run) { *run.Nodes[0].CPUSeconds = 0.001 }, "cpu_s is 0.001"},
		"peak":             {func(run *record.Run) { *run.Nodes[0].MemoryPeakBytes = 1 }, "memory_peak_bytes is 1"},
		"limits":           {func(run *record.Run) { run.LimitsInForce = false }, "limits_in_force is false"},
		"not enforced":     {func(run *record.Run) { run.Nodes[0].InForce.MemoryBytes = 1 << 40 }, "enforced is true"},
		"overcommitted":    {func(run *record.Run) { run.Overcommitted = false }, "overcommitted is false"},
		"others":           {func(run *record.Run) { *run.HostLoad = 1 }, "host_load is 1"},
		"generated":        {func(run *record.Run) { run.Generated[0][0]++ }, "generated_per_worker"},
		"drain":            {func(run *record.Run) { *run.DrainS = 1e6 }, "drain_s is"},
		"ranges":           {func(run *record.Run) { run.Ranges.Read-- }, "ranges.read is"},
		"no facts":         {func(run *record.Run) { run.Facts = nil }, "no facts"},
		"no checksum":      {func(run *record.Run) { run.Files = run.Files[1:] }, "in no list of checksums"},
	} {
		result := verified(t, saved(t, func(r *record.Record) { test.change(&r.Runs[0]) }))
		if all := strings.Join(result.Problems, "\n"); !strings.Contains(all, test.want) {
			t.Errorf("%s: %q, want %q", name, result.Problems, test.want)
		}
	}
}

// The same of a ramp after a warm-up (testdata/open: three seconds of load at a RATE on a Cassandra node
// and on badger): pace, warm-up, and what is of the window alone.
func TestAnOpenLoopAfterAWarmUp(t *testing.T) {
	const open = "testdata/open"
	if result := verified(t, savedFrom(t, open, nil)); !result.Whole() || result.Runs != 2 || result.Figures < 110 {
		t.Errorf("%+v", result)
	}
	for name, test := range map[string]struct {
		change func(*record.Run)
		want   string
	}{
		"begun":             {func(run *record.Run) { run.Sent.Pace.BegunSpans++ }, "sent.pace.begun_spans is"},
		"achieved":          {func(run *record.Run) { run.Sent.Pace.AchievedPerS = 5000 }, "sent.pace.achieved_spans_per_s is 5000"},
		"service time":      {func(run *record.Run) { run.Sent.Pace.Service.P99 /= 2 }, "sent.pace.service.p99_ms is"},
		"response time":     {func(run *record.Run) { run.Request = run.Sent.Pace.Service }, "latencies.request has"},
		"warm-up's ledger":  {func(run *record.Run) { run.WarmupLedger.Stored-- }, "warmup_ledger.stored is"},
		"CPU of the window": {func(run *record.Run) { run.UsageOfWindow = false }, "usage_of_window is false"},
		"warm-up's CPU":     {func(run *record.Run) { *run.Nodes[0].CPUSeconds *= 1.5 }, "cpu_s is"},
		"disk":              {func(run *record.Run) { run.Disk.Busy = 1 }, "busiest_disk.busy is 1"},
		"each second":       {func(run *record.Run) { run.StoredEachS[0]++ }, "stored_each_s[0] is"},
	} {
		result := verified(t, savedFrom(t, open, func(r *record.Record) { test.change(&r.Runs[0]) }))
		if all := strings.Join(result.Problems, "\n"); !strings.Contains(all, test.want) {
			t.Errorf("%s: %q, want %q", name, result.Problems, test.want)
		}
	}
}

// A raw fact that was changed together with its checksum contradicts the figures.
func TestForgedFacts(t *testing.T) {
	dir := saved(t, nil)
	r, err := record.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	run := record.RunFolder{Name: r.Runs[0].Folder, Dir: filepath.Join(dir, r.Runs[0].Folder)}
	outcomes, err := record.ReadOutcomes(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	outcomes[0].Class, outcomes[0].Code = record.Refused, "forged"
	file, err := run.WriteOutcomes(outcomes)
	if err != nil {
		t.Fatal(err)
	}
	for i, old := range r.Runs[0].Files {
		if old.Path == file.Path {
			r.Runs[0].Files[i] = file
		}
	}
	folder := record.Folder{Dir: dir, ID: r.ID, Experiment: r.Experiment}
	_ = folder.Save(r) // the link to the newest has no place here
	result := verified(t, dir)
	if all := strings.Join(result.Problems, "\n"); !strings.Contains(all, "ledger.acked is") || !strings.Contains(all, "ledger.refused is 0") {
		t.Errorf("%q", result.Problems)
	}
}

// What was added after the run has nobody to vouch for it; logs of a stack that was left up may grow.
func TestAddedFiles(t *testing.T) {
	dir := saved(t, nil)
	if err := os.WriteFile(filepath.Join(dir, "extra.csv"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if result := verified(t, dir); result.Whole() || !strings.Contains(result.Problems[0], "extra.csv") {
		t.Errorf("%q", result.Problems)
	}
	kept := saved(t, func(r *record.Record) {
		r.Spec.Keep = true
		files := r.Runs[0].Files[:0]
		for _, f := range r.Runs[0].Files {
			if !strings.Contains(f.Path, "/logs/") {
				files = append(files, f)
			}
		}
		r.Runs[0].Files = files
	})
	if result := verified(t, kept); !result.Whole() || len(result.Notes) == 0 {
		t.Errorf("%+v", result)
	}
}

// A log that a program left up goes on writing breaks nothing; what was there at the run's end stays
// vouched for, and the page shows no more than that.
func TestGrownLogs(t *testing.T) {
	var logs []string
	dir := saved(t, func(r *record.Record) {
		r.Spec.Keep = true
		for i, f := range r.Runs[0].Files {
			if strings.Contains(f.Path, "/logs/") {
				r.Runs[0].Files[i].Grows = true
				logs = append(logs, f.Path)
			}
		}
	})
	if len(logs) == 0 {
		t.Fatal("the example has no logs")
	}
	for _, path := range logs {
		f, err := os.OpenFile(filepath.Join(dir, path), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("written after the run\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if result := verified(t, dir); !result.Whole() {
		t.Errorf("%q", result.Problems)
	}
	for _, path := range logs { // what was there may not change, nor go
		whole, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if at := len(whole) - len("written after the run\n"); at > 0 {
			if err := os.WriteFile(filepath.Join(dir, path), whole[:at-1], 0o644); err != nil {
				t.Fatal(err)
			}
			if result := verified(t, dir); result.Whole() {
				t.Errorf("%s lost a byte of the run and nothing was said", path)
			}
			return
		}
	}
	t.Error("every log of the example is empty")
}
