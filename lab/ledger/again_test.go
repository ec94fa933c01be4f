package ledger

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// A run that was saved and loaded is judged exactly as it was while it ran; one changed row file
// is noticed.
func TestARecordedRunIsJudgedTheSameAgain(t *testing.T) {
	folder, err := record.Create(t.TempDir(), "again")
	if err != nil {
		t.Fatal(err)
	}
	runFolder, err := folder.Run("cassandra:2 v2 otlp-grpc", 1)
	if err != nil {
		t.Fatal(err)
	}
	generated, outcomes := load(3, 20)
	generated[trace.Warmup] = []uint64{5}
	rows, err := runFolder.Rows()
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, generated, outcomes)
	for _, o := range outcomes {
		for i := range uint64(o.Spans) {
			if ref := (trace.Ref{Worker: o.Worker, Index: o.First + i}); ref.Index%50 != 7 {
				row := row(ref, o.Sent, 20)
				b.Add(row)
				if err := rows.Write(row); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	f := facts()
	want := b.Close(f)
	run := record.Run{Arm: "cassandra:2 v2 otlp-grpc", Round: 1, Folder: runFolder.Name, Numbering: numbering, Generated: generated, Facts: &f, Verdict: want.Verdict}
	outcomesFile, err := runFolder.WriteOutcomes(outcomes)
	if err != nil {
		t.Fatal(err)
	}
	rowsFile, err := rows.Close()
	if err != nil {
		t.Fatal(err)
	}
	run.Files = []record.File{outcomesFile, rowsFile}
	if err := folder.Save(record.Record{Runs: []record.Run{run}}); err != nil {
		t.Fatal(err)
	}
	loaded, err := record.Load(folder.Dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Again(folder.Dir, loaded.Runs[0])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Verdict != record.Lossy {
		t.Errorf("verdict %s; judged again it differs (-want +got):\n%s", got.Verdict, diff)
	}
	if err := os.WriteFile(filepath.Join(runFolder.Dir, record.RowsName), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Again(folder.Dir, loaded.Runs[0]); err == nil || !strings.Contains(err.Error(), "changed after the run") {
		t.Errorf("Again with a changed file = %v", err)
	}
	loaded.Runs[0].Facts = nil
	if _, err := Again(folder.Dir, loaded.Runs[0]); err == nil || !strings.Contains(err.Error(), "no facts") {
		t.Errorf("Again without facts = %v", err)
	}
}
