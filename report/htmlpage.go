package report

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	tailLines = 15
	tailBytes = 8 << 10 // read from a log's end
)

// writePage is the page of a comparison, with its logs' ends, of which only what the record vouches
// for is shown: a program that LAB_KEEP left up goes on writing. A log that can't be read is left
// out; record and report say where it is.
func writePage(w io.Writer, r Rendering) error {
	tails := map[string]string{}
	for _, run := range r.Record.Runs {
		sizes := map[string]int64{}
		for _, file := range run.Files {
			sizes[file.Path] = file.Bytes
		}
		for _, n := range run.Nodes {
			size, listed := sizes[n.Log]
			if !listed || !filepath.IsLocal(filepath.FromSlash(n.Log)) { // a record from elsewhere names no file of this machine
				continue
			}
			if text, err := tailOf(filepath.Join(r.Folder, filepath.FromSlash(n.Log)), size); err == nil {
				tails[n.Log] = text
			}
		}
	}
	return HTML(w, r.Document, r.Record, r.Series, tails)
}

// tailOf reads the last lines of a file's first bytes.
func tailOf(path string, size int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	from := max(size-tailBytes, 0)
	data, err := io.ReadAll(io.NewSectionReader(f, from, size-from))
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n"), nil
}
