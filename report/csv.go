package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// CSVName is the report's tables for spreadsheets, in a record's folder.
const CSVName = "report.csv"

// CSV writes the document as one rectangle of RFC 4180, so that every reader takes it: the first
// field of each line names the table, and the last field lists the numbers of the line's footnotes.
// Each table's first line holds its columns' names. Figures are plain digits; what is not known is
// an empty field. The first lines are the table "Notes", the footnotes the table "Footnotes".
func CSV(w io.Writer, doc Document) error {
	blocks := csvBlocks(doc)
	width := 0
	for _, row := range blocks {
		width = max(width, len(row.fields))
	}
	out := csv.NewWriter(w)
	for _, row := range blocks {
		line := make([]string, width+2)
		line[0], line[len(line)-1] = harmless(row.table), row.notes
		for i, field := range row.fields {
			line[i+1] = harmless(field)
		}
		if err := out.Write(line); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

type csvRow struct {
	table  string
	fields []string
	notes  string
}

func csvBlocks(doc Document) (rows []csvRow) {
	rows = append(rows, csvRow{table: "Notes", fields: []string{clean(doc.Title)}})
	for _, note := range doc.Notes {
		rows = append(rows, csvRow{table: "Notes", fields: []string{note}})
	}
	var footnotes []csvRow
	for _, t := range doc.Tables {
		head := csvRow{table: t.Title, notes: "footnotes"}
		for _, c := range t.Columns {
			head.fields = append(head.fields, c.Name())
		}
		rows = append(rows, head)
		for _, cells := range t.Rows {
			row := csvRow{table: t.Title}
			var numbers []string
			for _, c := range cells {
				row.fields = append(row.fields, c.Plain)
				for _, n := range c.Notes {
					numbers = append(numbers, strconv.Itoa(n))
				}
			}
			row.notes = strings.Join(numbers, " ")
			rows = append(rows, row)
		}
		for _, f := range t.Footnotes {
			footnotes = append(footnotes, csvRow{table: "Footnotes", fields: []string{strconv.Itoa(f.Number), f.Text}})
		}
	}
	if footnotes != nil {
		rows = append(rows, csvRow{table: "Footnotes", fields: []string{"number", "text"}})
	}
	return append(rows, footnotes...)
}

var figure = regexp.MustCompile(`^[+-]?[0-9][0-9.,]*([eE][+-]?[0-9]+)? ?%?$`)

// harmless keeps a spreadsheet from running a field as a formula: text that begins as one gets an
// apostrophe before it, which spreadsheets take for "text follows". So that it can be taken away
// again, text that begins with an apostrophe gets one too. Figures stay as they are.
func harmless(field string) string {
	const formula = "=+-@\t\r\n'＝＋－＠"
	if field == "" || !strings.ContainsRune(formula, []rune(field)[0]) || figure.MatchString(field) {
		return field
	}
	return "'" + field
}
