package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const lockPoll = 200 * time.Millisecond

// Lock makes sure that only one measured run happens at a time on this machine and cache: a
// second one waits, bounded by ctx, and says for whom. The kernel frees the lock of a lab that
// was killed.
func Lock(ctx context.Context, say func(format string, args ...any)) (release func(), err error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, fmt.Errorf("lock this machine for one measured run: %w", err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("lock this machine for one measured run: create the cache folder: %w", err)
	}
	path := filepath.Join(cache, "run.lock")
	lock := flock.New(path)
	taken, err := lock.TryLock()
	if err == nil && !taken {
		say("another measured run is on this machine (%s): waiting for it to end", lockHolder(path))
		taken, err = lock.TryLockContext(ctx, lockPoll)
	}
	if err != nil || !taken {
		return nil, fmt.Errorf("wait for the measured run of %s: %w (%s)", lockHolder(path), err, path)
	}
	holder := fmt.Appendf(nil, "%d since %s\n", os.Getpid(), time.Now().Format(time.TimeOnly))
	if err := os.WriteFile(path, holder, 0o644); err != nil {
		_ = lock.Unlock()
		return nil, fmt.Errorf("lock this machine for one measured run: %w", err)
	}
	return func() { _ = lock.Unlock() }, nil
}

func lockHolder(path string) string {
	text, _ := os.ReadFile(path)
	if holder := strings.TrimSpace(string(text)); holder != "" {
		return "pid " + holder
	}
	return "an unknown process"
}
