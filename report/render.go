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

// Render reads the record of a comparison, writes its report.md, report.html and bench.txt again and
// returns the document. dir is anything record.Find resolves; nothing is read but the record, its
// runs' series and the ends of their logs.
func Render(dir string) (Document, error) {
	folder, err := record.Find(dir)
	if err != nil {
		return Document{}, fmt.Errorf("render the report: %w", err)
	}
	r, err := record.Load(folder)
	if err != nil {
		return Document{}, fmt.Errorf("render the report: %w", err)
	}
	doc, files, err := render(folder, r)
	if err != nil {
		return doc, err
	}
	for name, data := range files {
		if err := record.WriteFile(filepath.Join(folder, name), data); err != nil {
			return doc, err
		}
	}
	return doc, nil
}

// Files gives what Render writes, by name, without writing it.
func Files(dir string) (map[string][]byte, error) {
	r, err := record.Load(dir)
	if err != nil {
		return nil, err
	}
	_, files, err := render(dir, r)
	return files, err
}

// render gives the document and every file of the report by its name.
func render(folder string, r record.Record) (Document, map[string][]byte, error) {
	series := map[string]Series{}
	for _, run := range r.Runs {
		one, err := ReadSeries(folder, run)
		if err != nil {
			r.Warnings = append(slices.Clone(r.Warnings), "the evidence of what held a run back lacks its series: "+err.Error())
		}
		series[run.Folder] = one
	}
	doc := OfSeries(r, series)
	var text bytes.Buffer
	if err := Markdown(&text, doc, r); err != nil {
		return doc, nil, fmt.Errorf("render the report: %w", err)
	}
	page, err := htmlBytes(folder, doc, r, series)
	if err != nil {
		return doc, nil, fmt.Errorf("render the report: %w", err)
	}
	return doc, map[string][]byte{FileName: text.Bytes(), HTMLName: page, BenchName: Benchmarks(r)}, nil
}
