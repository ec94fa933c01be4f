package report

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"

	"jaegerlab/lab/record"
)

// FileName is the report in a record's folder.
const FileName = "report.md"

// Render reads the record of a comparison, writes every format that has a file again and returns
// the document. dir is anything record.Find resolves; nothing is read but the record, its runs'
// series and the ends of their logs.
func Render(dir string) (Document, error) {
	r, err := Read(dir)
	if err != nil {
		return Document{}, err
	}
	files, err := r.files()
	if err != nil {
		return r.Document, err
	}
	for name, data := range files {
		if err := record.WriteFile(filepath.Join(r.Folder, name), data); err != nil {
			return r.Document, err
		}
	}
	return r.Document, nil
}

// Files gives what Render writes, by name, without writing it.
func Files(dir string) (map[string][]byte, error) {
	r, err := Read(dir)
	if err != nil {
		return nil, err
	}
	return r.files()
}

// Read makes the tables of a saved comparison. dir is anything record.Find resolves.
func Read(dir string) (Rendering, error) {
	folder, err := record.Find(dir)
	if err != nil {
		return Rendering{}, fmt.Errorf("render the report: %w", err)
	}
	r, err := record.Load(folder)
	if err != nil {
		return Rendering{}, fmt.Errorf("render the report: %w", err)
	}
	series := map[string]Series{}
	for _, run := range r.Runs {
		one, err := ReadSeries(folder, run)
		if err != nil {
			r.Warnings = append(slices.Clone(r.Warnings), "the evidence of what held a run back lacks its series: "+err.Error())
		}
		series[run.Folder] = one
	}
	return Rendering{Document: OfSeries(r, series), Record: r, Series: series, Folder: folder}, nil
}

// files gives every format that has a file, by the file's name.
func (r Rendering) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, f := range Formats() {
		if f.File == "" {
			continue
		}
		var out bytes.Buffer
		if err := f.Write(&out, r); err != nil {
			return nil, fmt.Errorf("render the report as %s: %w", f.Name, err)
		}
		files[f.File] = out.Bytes()
	}
	return files, nil
}
