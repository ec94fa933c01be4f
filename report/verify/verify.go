// Package verify derives a saved comparison again from its raw facts: outcomes, rows, metrics
// pages, cgroup reads. It stands at the very end of the flow spec -> run -> record -> report,
// needs no database and no network, and says of every figure that differs what it is and what it
// should be. It uses the same pure functions that made the record: what it proves is that nothing
// was changed since, and that every figure comes from the facts that lie beside it.
package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/report"
)

// Result is what a verification found.
type Result struct {
	ID       string
	Runs     int
	Files    int      // raw facts whose checksums hold
	Figures  int      // figures that were derived again and are the same
	Problems []string // what differs; none = everything holds
	Notes    []string // what could not be derived, and why
	Taken    []Taken  // figures that no raw fact gives a second time
}

// Whole reports whether nothing differs.
func (r Result) Whole() bool { return len(r.Problems) == 0 }

// Dir verifies the comparison in dir, which is anything record.Find resolves. The error is for
// what can't be read as a record at all.
func Dir(dir string) (Result, error) {
	folder, err := record.Find(dir)
	if err != nil {
		return Result{}, fmt.Errorf("verify: %w", err)
	}
	v := &verifier{folder: folder, known: map[string]bool{"record.json": true}, taken: newTaken()}
	if err := record.CheckSeal(folder); err != nil {
		v.problem("%v", err)
	}
	r, err := record.Load(folder)
	if err != nil {
		return v.result, fmt.Errorf("verify: %w", err)
	}
	v.result.ID, v.result.Runs = r.ID, len(r.Runs)
	if name := filepath.Base(folder); name != r.ID && name != "." {
		v.note("the folder is called %s and the record %s", name, r.ID)
	}
	for _, run := range r.Runs {
		v.run(r, run)
	}
	v.result.Taken = v.taken.list()
	v.whole(r)
	v.rendered()
	v.unlisted(r.Spec.Keep)
	return v.result, nil
}

// verifier collects what it finds.
type verifier struct {
	folder string
	known  map[string]bool // files that something vouches for, relative with slashes
	where  string          // run at hand
	taken  *taken
	result Result
}

func (v *verifier) problem(format string, args ...any) {
	v.result.Problems = append(v.result.Problems, v.where+fmt.Sprintf(format, args...))
}

func (v *verifier) note(format string, args ...any) {
	v.result.Notes = append(v.result.Notes, v.where+fmt.Sprintf(format, args...))
}

// run verifies one run: its files, then every figure that they give.
func (v *verifier) run(r record.Record, run record.Run) {
	v.where = fmt.Sprintf("%s, round %d: ", run.Arm, run.Round)
	defer func() { v.where = "" }()
	sound := true
	for _, file := range run.Files {
		v.known[file.Path] = true
		if err := record.Verify(v.folder, file); err != nil {
			v.problem("%v", err)
			sound = false
			continue
		}
		v.result.Files++
	}
	if !sound {
		v.note("its figures were not derived again: they would come from changed facts")
		return
	}
	d := derive{verifier: v, record: r, run: run, dir: filepath.Join(v.folder, filepath.FromSlash(run.Folder))}
	d.load()
	d.ledger()
	d.counters()
	d.nodes()
	d.plain()
	if _, err := report.ReadSeries(v.folder, run); err != nil {
		v.problem("%v", err)
	}
	v.taken.note(run)
}

// whole says of an incomplete comparison that it is one, and refuses a complete one with broken runs.
func (v *verifier) whole(r record.Record) {
	if !r.Complete {
		v.note("the comparison is incomplete: %s", cmp.Or(r.Incomplete, "its record does not say why"))
		return
	}
	for _, run := range r.Runs {
		if run.Error != "" {
			v.problem("it is complete, and %s, round %d, did not end: %s", run.Arm, run.Round, run.Error)
		}
	}
}

// rendered compares every file of the report with what the record renders to now.
func (v *verifier) rendered() {
	files, err := report.Files(v.folder)
	if err != nil {
		v.problem("%v", err)
		return
	}
	for name, want := range files {
		v.known[name] = true
		got, err := os.ReadFile(filepath.Join(v.folder, name))
		switch {
		case os.IsNotExist(err):
			v.note("there is no %s; jaegerlab report makes it", name)
		case err != nil:
			v.problem("%v", err)
		case !bytes.Equal(got, want):
			v.problem("%s is not what the record renders to: it was changed, or another version of the lab wrote it; "+
				"jaegerlab report makes it again", name)
		default:
			v.result.Figures++
		}
	}
}

// unlisted names files that nothing vouches for. What was left up (LAB_KEEP) may open a log after
// the run.
func (v *verifier) unlisted(keep bool) {
	var extra []string
	err := filepath.WalkDir(v.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(v.folder, path)
		if rel = filepath.ToSlash(rel); err == nil && !v.known[rel] {
			extra = append(extra, rel)
		}
		return err
	})
	if err != nil {
		v.problem("list the files: %v", err)
	}
	slices.Sort(extra)
	for _, path := range extra {
		if keep && strings.Contains(path, "/logs/") {
			v.note("%s has no checksum: its program was left up (LAB_KEEP)", path)
			continue
		}
		v.problem("%s is in no list of checksums: it was added after the run, or nothing can say that it was not changed",
			path)
	}
}

// plain checks figures that follow from others of the record.
func (d derive) plain() {
	run := d.run
	if run.StoredInWindow != nil && run.WindowS > 0 {
		perSecond := float64(*run.StoredInWindow) / run.WindowS
		d.same("stored_spans_per_s", run.StoredPerS, &perSecond)
	} else {
		d.same("stored_spans_per_s", run.StoredPerS, (*float64)(nil))
	}
	if run.Error == "" {
		d.same("overcommitted", run.Overcommitted, spec.Overcommitted(run.Profile, d.record.Host.CPUs))
	}
	if f := run.Facts; f != nil && run.DrainS != nil && f.DrainEndUS > 0 {
		if bound := float64(f.DrainEndUS-run.Window.End/1000) / 1e6; *run.DrainS < 0 || *run.DrainS > max(bound, 0) {
			d.problem("drain_s is %v, and the drain ended %v s after the window", *run.DrainS, bound)
		}
	}
}
