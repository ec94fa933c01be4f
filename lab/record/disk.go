package record

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	recordName = "record.json"
	latestName = "latest"
	idTime     = "20060102T150405Z" // sorts by time, no character that a file system refuses
	maxTries   = 100                // names tried before a folder is given up
	maxName    = 80                 // bytes of a safe name; file systems take 255
)

// Folder is one comparison on disk: <results>/<experiment>/<UTC time>-<id>/ with record.json,
// report.md and one folder per run.
type Folder struct {
	Dir        string // as Create was given it: relative when the results folder is
	ID         string // its last element, <UTC time>-<id>
	Experiment string
	results    string
}

// RunFolder holds the raw facts of one run.
type RunFolder struct {
	Name string // relative to the record's folder, with slashes: what Run.Folder holds
	Dir  string // path
	Logs string // path of its logs/ folder
}

// Create makes the folder of a new comparison below resultsDir, which is made when missing.
func Create(resultsDir, experiment string) (*Folder, error) {
	name := SafeName(experiment)
	if strings.EqualFold(name, latestName) {
		return nil, fmt.Errorf("create results of experiment %q: the name is taken by the link to the newest "+
			"comparison; name it otherwise", experiment)
	}
	parent := filepath.Join(resultsDir, name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("create results folder %s (LAB_RESULTS): %w", parent, err)
	}
	for range maxTries {
		id := newID(time.Now())
		dir := filepath.Join(parent, id)
		switch err := os.Mkdir(dir, 0o755); {
		case err == nil:
			return &Folder{Dir: dir, ID: id, Experiment: experiment, results: resultsDir}, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, fmt.Errorf("create results folder %s (LAB_RESULTS): %w", dir, err)
		}
	}
	return nil, fmt.Errorf("create results folder below %s: %d names were all taken", parent, maxTries)
}

// Open takes over the folder of a comparison that exists, to add runs to it; dir is anything that
// Find resolves.
func Open(dir string) (*Folder, Record, error) {
	folder, err := Find(dir)
	if err != nil {
		return nil, Record{}, err
	}
	r, err := Load(folder)
	if err != nil {
		return nil, Record{}, err
	}
	results := filepath.Dir(filepath.Dir(filepath.Clean(folder)))
	return &Folder{Dir: folder, ID: r.ID, Experiment: r.Experiment, results: results}, r, nil
}

func newID(now time.Time) string {
	var random [3]byte
	_, _ = rand.Read(random[:]) // never fails, by its documentation
	return now.UTC().Format(idTime) + "-" + hex.EncodeToString(random[:])
}

// Run makes the folder of one run, with logs/ below. Arms whose safe names are equal get numbered
// folders, so that no run overwrites another.
func (f *Folder) Run(arm string, round int) (RunFolder, error) {
	base := SafeName(arm) + "-round-" + strconv.Itoa(round)
	for try := range maxTries {
		name := base
		if try > 0 {
			name += "-" + strconv.Itoa(try+1)
		}
		dir := filepath.Join(f.Dir, name)
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, "logs"), 0o755)
		}
		if err != nil {
			return RunFolder{}, fmt.Errorf("create the folder of run %s, round %d: %w", arm, round, err)
		}
		return RunFolder{Name: name, Dir: dir, Logs: filepath.Join(dir, "logs")}, nil
	}
	return RunFolder{}, fmt.Errorf("create the folder of run %s, round %d: %d names like %s were all "+
		"taken", arm, round, maxTries, base)
}

// Rel gives a path below the folder as records spell it: relative, with slashes.
func (f *Folder) Rel(path string) string {
	if rel, err := filepath.Rel(f.Dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}

// SafeName turns any text into the name of one folder or file: letters, digits, dot, underscore
// and dash; never empty, hidden or longer than 80 bytes. Different texts may give one name.
func SafeName(text string) string {
	var b strings.Builder
	dash := false
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_':
			b.WriteRune(r)
			dash = false
		case !dash:
			b.WriteByte('-')
			dash = true
		}
	}
	name := strings.Trim(b.String(), ".-")
	if len(name) > maxName {
		name = strings.Trim(name[:maxName], ".-")
	}
	if name == "" {
		return "unnamed"
	}
	return name
}

// WriteFile writes a file so that a reader, or a crash, sees the old content or the new one and
// never a part: written aside, synced, renamed.
func WriteFile(path string, data []byte) error {
	aside, err := newAside(path)
	if err != nil {
		return err
	}
	if _, err := aside.Write(data); err != nil {
		aside.discard()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return aside.keep()
}

// aside is a file that takes its name only when it is complete.
type aside struct {
	*os.File
	path string
}

func newAside(path string) (*aside, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.partial")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &aside{File: f, path: path}, nil
}

func (a *aside) discard() {
	_ = a.Close()
	_ = os.Remove(a.Name())
}

func (a *aside) keep() error {
	err := errors.Join(a.Chmod(0o644), a.Sync(), a.Close())
	if err == nil {
		err = os.Rename(a.Name(), a.path)
	}
	if err != nil {
		_ = os.Remove(a.Name())
		return fmt.Errorf("write %s: %w", a.path, err)
	}
	syncDir(filepath.Dir(a.path))
	return nil
}

// syncDir makes a rename durable. Some file systems can't sync a folder; the file itself is.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// point moves results/latest to this folder: a relative link, or a text file with the same path
// where the file system has no links. Readers see the old target or the new one.
func (f *Folder) point() error {
	latest := filepath.Join(f.results, latestName)
	target, err := filepath.Rel(f.results, f.Dir)
	if err != nil {
		return fmt.Errorf("point %s to %s: %w", latest, f.Dir, err)
	}
	aside := filepath.Join(f.results, "."+latestName+"-"+f.ID)
	_ = os.Remove(aside)
	if os.Symlink(target, aside) != nil {
		return WriteFile(latest, []byte(filepath.ToSlash(target)+"\n"))
	}
	if err := os.Rename(aside, latest); err != nil {
		_ = os.Remove(aside)
		return fmt.Errorf("point %s to %s: %w; remove what stands there", latest, f.Dir, err)
	}
	return nil
}

// Find resolves what a user may name to the folder of a record: the folder itself, its
// record.json, the link results/latest, or the text file that stands for it.
func Find(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("find the record %s: %w", path, err)
	}
	switch {
	case info.IsDir():
		if target, err := os.Readlink(path); err == nil && !filepath.IsAbs(target) {
			return filepath.Join(filepath.Dir(path), target), nil
		}
		return path, nil
	case filepath.Base(path) == recordName:
		return filepath.Dir(path), nil
	case filepath.Base(path) == latestName:
		text, err := os.ReadFile(path)
		target := filepath.FromSlash(strings.TrimSpace(string(text)))
		if err == nil && !filepath.IsLocal(target) {
			err = fmt.Errorf("it holds %q, which is no folder below it", target)
		}
		if err != nil {
			return "", fmt.Errorf("find the record that %s names: %w", path, err)
		}
		return filepath.Join(filepath.Dir(path), target), nil
	}
	return "", fmt.Errorf("find the record %s: it is a file; name the folder that holds %s", path, recordName)
}
