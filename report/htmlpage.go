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

// writePage is the page of a comparison, with its logs' ends. A log that can't be read is left
// out: record and report say where it is.
func writePage(w io.Writer, r Rendering) error {
	tails := map[string]string{}
	for _, run := range r.Record.Runs {
		for _, n := range run.Nodes {
			if n.Log == "" || !filepath.IsLocal(filepath.FromSlash(n.Log)) { // a record from elsewhere names no file of this machine
				continue
			}
			if text, err := tailOf(filepath.Join(r.Folder, filepath.FromSlash(n.Log))); err == nil {
				tails[n.Log] = text
			}
		}
	}
	return HTML(w, r.Document, r.Record, r.Series, tails)
}

// tailOf reads the last lines of a file.
func tailOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if skip := info.Size() - tailBytes; skip > 0 {
		if _, err := f.Seek(skip, io.SeekStart); err != nil {
			return "", err
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n"), nil
}
