package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"jaegerlab/lab/record"
)

// Format is one way to write a report. A new one is a file of its own and a line in Formats.
type Format struct {
	Name  string // as the command line calls it
	File  string // its name in the record's folder; "" = only printed
	Write func(w io.Writer, r Rendering) error
}

// Rendering is what formats write from: the table model, and the record behind it for those that
// show more than tables.
type Rendering struct {
	Document
	Record record.Record
	Series map[string]Series // by the runs' folders; may be nil
	Folder string            // where the runs' logs lie; "" = nowhere
}

// Formats lists every format.
func Formats() []Format {
	return []Format{
		{"terminal", "", func(w io.Writer, r Rendering) error { return Terminal(w, r.Document) }},
		{"markdown", FileName, func(w io.Writer, r Rendering) error { return Markdown(w, r.Document, r.Record) }},
		{"html", HTMLName, writePage},
		{"csv", CSVName, func(w io.Writer, r Rendering) error { return CSV(w, r.Document) }},
		{"json", JSONName, func(w io.Writer, r Rendering) error { return JSON(w, r.Document) }},
		{"benchfmt", BenchName, func(w io.Writer, r Rendering) error {
			_, err := w.Write(Benchmarks(r.Record))
			return err
		}},
	}
}

// FormatNamed finds a format; the error names all that there are.
func FormatNamed(name string) (Format, error) {
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	i := slices.Index(names, name)
	if i < 0 {
		return Format{}, fmt.Errorf("write the report as %q: there is no such format; accepted: %s", name, strings.Join(names, ", "))
	}
	return Formats()[i], nil
}
