package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jaegerlab/lab/internal/need"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
)

// A disk that fills up in mid-run ends in an honest verdict and a saved record.
func TestIntegrationDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip(need.Reason + "root: a small file system is mounted")
	}
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=700m"); err != nil {
		t.Skipf("%sa small file system: %v", need.Reason, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	t.Setenv("TMPDIR", small)
	run, _, err := measureWith(t, spec.Backend{Engine: spec.Cassandra, Nodes: 1}, 10, Hooks{
		AtLoad: func(ctx context.Context, _ Stack) { fill(ctx, filepath.Join(small, "filler")) },
	})
	t.Logf("verdict %s: %v; error: %v", run.Verdict, run.Reasons, err)
	if run.Ledger.Generated == 0 {
		t.Error("nothing was accounted for")
	}
	if !strings.Contains(strings.Join(run.Warnings, "\n"), "disk full: 0 MiB are free at "+small) {
		t.Errorf("the full disk is not named: %v", run.Warnings)
	}
	if run.Verdict == record.Whole && run.Ledger.Stored < run.Ledger.Acked {
		t.Errorf("whole, with %d of %d acknowledged spans stored", run.Ledger.Stored, run.Ledger.Acked)
	}
	_ = os.Remove(filepath.Join(small, "filler"))
}

// fill writes until the file system is full and keeps it full while ctx lasts.
func fill(ctx context.Context, path string) {
	pause(ctx, 2*time.Second)
	file, err := os.Create(path)
	if err != nil {
		return
	}
	defer file.Close()
	block := make([]byte, 1<<20)
	for ctx.Err() == nil {
		if _, err := file.Write(block); err != nil {
			pause(ctx, 200*time.Millisecond)
		}
	}
}
