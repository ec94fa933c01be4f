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

// Render reads the record of a comparison, writes its report.md and bench.txt again and returns the document.
// dir is anything record.Find resolves; nothing is read but the record and its runs' series.
func Render(dir string) (Document, error) {
	folder, err := record.Find(dir)
	if err != nil {
		return Document{}, fmt.Errorf("render the report: %w", err)
	}
	r, err := record.Load(folder)
	if err != nil {
		return Document{}, fmt.Errorf("render the report: %w", err)
	}
	doc, text, err := render(folder, r)
	if err != nil {
		return doc, err
	}
	for name, data := range map[string][]byte{FileName: text, BenchName: Benchmarks(r)} {
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
	_, text, err := render(dir, r)
	return map[string][]byte{FileName: text, BenchName: Benchmarks(r)}, err
}

// render gives the document and the bytes of report.md.
func render(folder string, r record.Record) (Document, []byte, error) {
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
	return doc, text.Bytes(), nil
}
