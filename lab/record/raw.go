package record

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"path/filepath"
)

// Names of the raw facts in a run's folder. Both are gzipped CSV with a header line; numbers are
// decimal digits without separators, whatever the locale.
const (
	OutcomesName = "outcomes.csv.gz"
	RowsName     = "rows.csv.gz"
)

// rawWriter writes one gzipped file aside and sums it while it is written.
type rawWriter struct {
	*bufio.Writer
	aside *aside
	zip   *gzip.Writer
	sum   hash.Hash
	bytes int64
	name  string // as File.Path spells it
}

func newRawWriter(run RunFolder, name string) (*rawWriter, error) {
	aside, err := newAside(filepath.Join(run.Dir, name))
	if err != nil {
		return nil, err
	}
	w := &rawWriter{aside: aside, sum: sha256.New(), name: run.Name + "/" + name}
	w.zip, _ = gzip.NewWriterLevel(writerFunc(w.put), gzip.BestSpeed) // the level is a valid one
	w.Writer = bufio.NewWriterSize(w.zip, 1<<16)
	return w, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// put is the end of the pipe: what reaches the file is what is summed.
func (w *rawWriter) put(p []byte) (int, error) {
	n, err := w.aside.Write(p)
	w.sum.Write(p[:n])
	w.bytes += int64(n)
	return n, err
}

// finish completes the file under its name; after an error nothing is left of it.
func (w *rawWriter) finish() (File, error) {
	if err := errors.Join(w.Flush(), w.zip.Close()); err != nil {
		w.aside.discard()
		return File{}, fmt.Errorf("write %s: %w", w.aside.path, err)
	}
	if err := w.aside.keep(); err != nil {
		return File{}, err
	}
	return File{Path: w.name, SHA256: hex.EncodeToString(w.sum.Sum(nil)), Bytes: w.bytes}, nil
}

// readRaw opens a gzipped raw file and hands its text to decode.
func readRaw(path string, decode func(io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read raw facts: %w", err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<16))
	if err == nil {
		err = decode(zip)
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("read %s: the file is cut off", path)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("read %s: the file is damaged: %w", path, err)
	case err != nil:
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// Sum describes a file that another program wrote, a log for example, as records list it.
func (f *Folder) Sum(path string) (File, error) {
	sum, size, err := sumFile(path, math.MaxInt64)
	return File{Path: f.Rel(path), SHA256: sum, Bytes: size}, err
}

// SumGrowing describes a file that its program goes on writing: what it holds now.
func (f *Folder) SumGrowing(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, fmt.Errorf("sum raw facts: %w", err)
	}
	sum, size, err := sumFile(path, info.Size())
	return File{Path: f.Rel(path), SHA256: sum, Bytes: size, Grows: true}, err
}

// Verify compares a raw fact below the record's folder with its checksum.
func Verify(dir string, file File) error {
	if !local(file.Path) {
		return fmt.Errorf("verify %q: the path leads out of the record's folder", file.Path)
	}
	most := int64(math.MaxInt64)
	if file.Grows {
		most = file.Bytes // what was written after the run is not the run's
	}
	sum, size, err := sumFile(filepath.Join(dir, filepath.FromSlash(file.Path)), most)
	if err != nil {
		return err
	}
	if sum != file.SHA256 || size != file.Bytes {
		return fmt.Errorf("verify %s: it has %d bytes and sha256 %s, and the record says %d and %s: it was changed "+
			"after the run",
			file.Path, size, sum, file.Bytes, file.SHA256)
	}
	return nil
}

// sumFile sums the first bytes of a file, at most so many.
func sumFile(path string, most int64) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, fmt.Errorf("sum raw facts: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, io.LimitReader(f, most))
	if err != nil {
		return "", 0, fmt.Errorf("sum %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
