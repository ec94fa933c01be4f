package lab

import (
	"os"
	"path/filepath"
	"testing"
)

// Case 18: what the store says about large partitions is found in its log, however it spells it.
func TestLargePartitionsAreFoundInLogs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cassandra-1.log")
	log := `INFO  [main] CassandraDaemon.java - Startup complete
WARN  [CompactionExecutor:2] BigTableWriter.java:269 - Writing large partition jaeger/tag_index:a:b:c (104.857MiB) to sstable /x/nb-1-big-Data.db
WARN  [CompactionExecutor:2] Guardrail.java - Guardrail partition_size violated: partition jaeger.tag_index:a has size 120MiB
WARN  2026-01-01 00:00:00 [shard 0] large_data - Writing large row jaeger/traces: key (12345 bytes) to me-1-big-Data.db
INFO  Writing large file
`
	if err := os.WriteFile(path, []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	found := 0
	if err := eachLine(path, func(line string) {
		if largeData.MatchString(line) {
			found++
		}
	}); err != nil || found != 3 {
		t.Errorf("found %d of 3 lines, %v", found, err)
	}
}
