package ledger

import (
	"fmt"
	"path/filepath"

	"jaegerlab/lab/record"
)

// Again judges a recorded run once more, from its raw facts alone: outcomes and rows in the run's
// folder below dir, which is the record's. Every raw file is compared with its checksum first.
func Again(dir string, run record.Run) (Result, error) {
	fail := func(err error) (Result, error) {
		return Result{}, fmt.Errorf("judge %s, round %d, again: %w", run.Arm, run.Round, err)
	}
	if run.Facts == nil {
		return fail(fmt.Errorf("its record has no facts: the run ended before its spans were accounted for (%s)", run.Error))
	}
	for _, file := range run.Files {
		if err := record.Verify(dir, file); err != nil {
			return fail(err)
		}
	}
	folder := filepath.Join(dir, filepath.FromSlash(run.Folder))
	outcomes, err := record.ReadOutcomes(folder)
	if err != nil {
		return fail(err)
	}
	book, err := New(run.Numbering, run.Generated, outcomes)
	if err != nil {
		return fail(err)
	}
	if err := record.ReadRows(folder, func(row record.Row) error { book.Add(row); return nil }); err != nil {
		return fail(err)
	}
	return book.Close(*run.Facts), nil
}
