package node

import (
	"io"
	"os"
	"strings"
)

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
