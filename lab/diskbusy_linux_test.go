package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"jaegerlab/lab/internal/need"
	"jaegerlab/lab/spec"
	"jaegerlab/report"
)

// A disk that others keep busy through the window is named beside the rate, which nothing held back.
func TestIntegrationDiskBusy(t *testing.T) {
	s := plantedSpec(t, spec.Null)
	s.Load.Rate, s.Load.DurationS = "200", 12 // the pages that tell are read some tenths of a second around the window
	needs(t, s)
	folder := t.TempDir()
	var system unix.Statfs_t
	if err := unix.Statfs(folder, &system); err != nil || system.Type == unix.TMPFS_MAGIC {
		t.Skipf("%sa temporary folder on a disk, not in memory: %s, %v", need.Reason, folder, err)
	}
	limit := limitOf(t, s, func(ctx context.Context, _ Stack) error { return keepBusy(ctx, folder) })
	evidence := strings.Join(limit.Evidence, "; ")
	if limit.Kind != report.LimitRate || !strings.Contains(evidence, "also disk: ") || !strings.Contains(evidence, "% of the time") {
		t.Errorf("named %s: %s", limit.Text(), evidence)
	}
}

// keepBusy has writes under way at the folder's disk until ctx ends, each of which waits for it.
func keepBusy(ctx context.Context, folder string) error {
	var writers sync.WaitGroup
	failed := make(chan error, 4)
	for n := range cap(failed) {
		file, err := os.OpenFile(filepath.Join(folder, string(rune('a'+n))), os.O_CREATE|os.O_WRONLY|unix.O_DSYNC, 0o600)
		if err != nil {
			return err
		}
		writers.Go(func() {
			defer file.Close()
			block := make([]byte, 256<<10)
			for at := int64(0); ctx.Err() == nil; at = (at + int64(len(block))) % (64 << 20) {
				if _, err := file.WriteAt(block, at); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	writers.Wait()
	close(failed)
	return <-failed
}
