package report

import (
	"bytes"
	"fmt"
	"path/filepath"

	"jaegerlab/lab/record"
)

// FileName is the report in a record's folder.
const FileName = "report.md"

// Render reads the record of a comparison, writes its report.md again and returns the document.
// dir is anything record.Find resolves; nothing else than the record is read.
func Render(dir string) (Document, error) {
	folder, err := record.Find(dir)
	if err != nil {
		return Document{}, fmt.Errorf("render the report: %w", err)
	}
	r, err := record.Load(folder)
	if err != nil {
		return Document{}, fmt.Errorf("render the report: %w", err)
	}
	doc := Of(r)
	var text bytes.Buffer
	if err := Markdown(&text, doc, r); err != nil {
		return doc, fmt.Errorf("render the report: %w", err)
	}
	return doc, record.WriteFile(filepath.Join(folder, FileName), text.Bytes())
}
