package node

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// freeLog names the log of a node. A node that is started again under its name, after a fault,
// gets <name>-2.log, so that the log of its first life stays.
func freeLog(dir, name string) string {
	path := filepath.Join(dir, name+".log")
	for life := 2; ; life++ {
		if _, err := os.Lstat(path); err != nil {
			return path
		}
		path = filepath.Join(dir, fmt.Sprintf("%s-%d.log", name, life))
	}
}

const tailBytes = 256 << 10 // at most this much of a log is looked at

// tail returns the last lines of a file; "" when there is nothing to read.
func tail(path string, lines int) string { return tailFrom(path, 0, lines) }

// tailFrom is tail of what stands behind an offset.
func tailFrom(path string, from int64, lines int) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	from = max(from, info.Size()-tailBytes)
	data, err := io.ReadAll(io.NewSectionReader(file, from, max(info.Size()-from, 0)))
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}
