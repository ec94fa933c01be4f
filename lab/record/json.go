package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// Save writes record.json, aside and then renamed, and moves results/latest to this folder. It
// is called after every run, so that an abort loses nothing that was measured. Version, ID and
// Experiment are set where they are empty; a record of another folder is refused.
func (f *Folder) Save(r Record) error {
	path := filepath.Join(f.Dir, recordName)
	if err := f.stamp(&r); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	r.Seal = noSeal
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		if field := notFinite(reflect.ValueOf(r), "record"); field != "" {
			err = fmt.Errorf("%s is not a number; leave it null", field)
		}
		return fmt.Errorf("save %s: %w", path, err)
	}
	if err := WriteFile(path, sealed(append(data, '\n'))); err != nil {
		return err
	}
	return f.point()
}

func (f *Folder) stamp(r *Record) error {
	if r.Version == 0 {
		r.Version = Version
	}
	if r.ID == "" {
		r.ID = f.ID
	}
	if r.Experiment == "" {
		r.Experiment = f.Experiment
	}
	if r.Runs == nil {
		r.Runs = []Run{}
	}
	if r.Version != Version || r.ID != f.ID {
		return fmt.Errorf("it is record %s of version %d, and this folder is for %s of version "+
			"%d", r.ID, r.Version, f.ID, Version)
	}
	return nil
}

// Load reads the record of a comparison: dir is its folder, or anything that Find resolves. It
// refuses a newer version, a file that is cut off, and a file that holds parts of several records.
func Load(dir string) (Record, error) {
	folder, err := Find(dir)
	if err != nil {
		return Record{}, err
	}
	path := filepath.Join(folder, recordName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("load the record in %s: it has no %s; it is no folder of a comparison, or its run "+
			"never got that far", folder, recordName)
	}
	if err != nil {
		return Record{}, fmt.Errorf("load the record in %s: %w", folder, err)
	}
	r, err := decode(data)
	if err != nil {
		return Record{}, fmt.Errorf("load %s: %w", path, err)
	}
	return r, nil
}

// decode reads the version before anything else, so that a newer record is named as such and not
// as a broken one.
func decode(data []byte) (Record, error) {
	var whole json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(data))
	switch err := decoder.Decode(&whole); {
	case errors.Is(err, io.EOF):
		return Record{}, errors.New("the file is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Record{}, fmt.Errorf("the file is cut off after %d bytes", len(data))
	case err != nil:
		return Record{}, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Record{}, fmt.Errorf("more follows after the record's end at byte %d: the file is a mix of "+
			"several", decoder.InputOffset())
	}
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(whole, &head); err != nil || head.Version == nil {
		return Record{}, errors.New("it has no version: it is not a record of this lab")
	}
	if *head.Version > Version {
		return Record{}, fmt.Errorf("it is of version %d, and this program knows up to %d: use a newer "+
			"jaegerlab", *head.Version, Version)
	}
	if *head.Version < 1 {
		return Record{}, fmt.Errorf("it is of version %d, which never was", *head.Version)
	}
	var r Record
	if err := json.Unmarshal(whole, &r); err != nil {
		return Record{}, fmt.Errorf("it is not a record of version %d: %w", *head.Version, err)
	}
	r.Seal = "" // it is the file's, not the comparison's
	return r, r.check()
}

// check holds what is true of every record that comes from one comparison.
func (r Record) check() error {
	seen := map[string]bool{}
	for i, run := range r.Runs {
		what := fmt.Sprintf("runs[%d] (%s, round %d)", i, run.Arm, run.Round)
		key := fmt.Sprintf("%s\x00%d", run.Arm, run.Round)
		if seen[key] {
			return fmt.Errorf("%s is there twice: the record is a mix of several", what)
		}
		seen[key] = true
		if run.Folder != "" && !local(run.Folder) {
			return fmt.Errorf("%s has the folder %q, which is outside of the record's", what, run.Folder)
		}
		for _, file := range run.Files {
			if !local(file.Path) {
				return fmt.Errorf("%s names the file %q, which is outside of the record's folder", what, file.Path)
			}
		}
		switch run.Verdict {
		case Whole, Lossy, Unknown, "": // none: the run did not end
		default:
			return fmt.Errorf("%s has the verdict %q; known: %s, %s, %s", what, run.Verdict, Whole, Lossy, Unknown)
		}
	}
	return nil
}

// local is filepath.IsLocal for the slash-separated paths of a record, on every system.
func local(path string) bool {
	return !strings.Contains(path, `\`) && fs.ValidPath(path)
}

// notFinite names the first NaN or infinite number below v: JSON has none, and the encoder does
// not say where it met one.
func notFinite(v reflect.Value, path string) string {
	switch v.Kind() {
	case reflect.Float64:
		if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
			return path
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return notFinite(v.Elem(), path)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if found := notFinite(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if found := notFinite(v.Field(i), path+"."+v.Type().Field(i).Name); found != "" {
				return found
			}
		}
	}
	return ""
}
