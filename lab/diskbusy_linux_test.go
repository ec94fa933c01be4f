package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
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

// keepBusy has large writes under way at the folder's disk until ctx ends, past the page cache, which
// would hand them on with gaps between.
func keepBusy(ctx context.Context, folder string) error {
	const writerCount, blockBytes, fileBytes = 8, 4 << 20, 64 << 20
	block, err := unix.Mmap(-1, 0, blockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE) // aligned, as O_DIRECT needs it
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(block) }()
	var writers errgroup.Group
	for n := range writerCount {
		file, err := os.OpenFile(filepath.Join(folder, string(rune('a'+n))), os.O_CREATE|os.O_WRONLY|unix.O_DIRECT, 0o600)
		if err != nil {
			return errors.Join(err, writers.Wait())
		}
		writers.Go(func() error {
			defer file.Close()
			for at := int64(0); ctx.Err() == nil; at = (at + blockBytes) % fileBytes {
				if _, err := file.WriteAt(block, at); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return writers.Wait()
}
