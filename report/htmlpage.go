package report

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"jaegerlab/lab/record"
)

const (
	tailLines = 15
	tailBytes = 8 << 10 // read from a log's end
)

// htmlBytes is the page of a comparison, with its logs' ends. A log that can't be read is left
// out: record and report say where it is.
func htmlBytes(folder string, doc Document, r record.Record, series map[string]Series) ([]byte, error) {
	tails := map[string]string{}
	for _, run := range r.Runs {
		for _, n := range run.Nodes {
			if n.Log == "" || !filepath.IsLocal(filepath.FromSlash(n.Log)) { // a record from elsewhere names no file of this machine
				continue
			}
			if text, err := tailOf(filepath.Join(folder, filepath.FromSlash(n.Log))); err == nil {
				tails[n.Log] = text
			}
		}
	}
	var text bytes.Buffer
	err := HTML(&text, doc, r, series, tails)
	return text.Bytes(), err
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
