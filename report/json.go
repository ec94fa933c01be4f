package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// JSONName is the report's tables for programs, in a record's folder; record.json beside it holds
// what they were made of.
const JSONName = "report.json"

// The shape of report.json. Values are numbers where the column holds figures, text where it holds
// text, and null where the value is not known.
type (
	jsonDocument struct {
		Title  string      `json:"title"`
		Notes  []string    `json:"notes"`
		Tables []jsonTable `json:"tables"`
	}
	jsonTable struct {
		Title     string            `json:"title"`
		Columns   []jsonColumn      `json:"columns"`
		Rows      [][]jsonCell      `json:"rows"`
		Footnotes map[string]string `json:"footnotes,omitempty"` // by number; later tables refer to them too
	}
	jsonColumn struct {
		Title string `json:"title"`
		Unit  string `json:"unit,omitempty"`
		How   string `json:"how,omitempty"`
	}
	jsonCell struct {
		Value any    `json:"value"`
		Bound string `json:"bound,omitempty"` // ">=" or "<=": the value is a limit of the true one
		Shown string `json:"shown"`           // as the other formats print it, with ranges
		Notes []int  `json:"footnotes,omitempty"`
	}
)

// JSON writes the document's tables.
func JSON(w io.Writer, doc Document) error {
	out := jsonDocument{Title: doc.Title, Notes: append([]string{}, doc.Notes...), Tables: []jsonTable{}}
	for _, t := range doc.Tables {
		one := jsonTable{Title: t.Title, Rows: [][]jsonCell{}}
		for _, c := range t.Columns {
			one.Columns = append(one.Columns, jsonColumn{c.Title, c.Unit, c.How})
		}
		for _, cells := range t.Rows {
			row := make([]jsonCell, len(cells))
			for i, c := range cells {
				row[i] = jsonCellOf(c, t.Columns[i])
			}
			one.Rows = append(one.Rows, row)
		}
		for _, f := range t.Footnotes {
			if one.Footnotes == nil {
				one.Footnotes = map[string]string{}
			}
			one.Footnotes[fmt.Sprint(f.Number)] = f.Text
		}
		out.Tables = append(out.Tables, one)
	}
	encoder := json.NewEncoder(w) // it escapes <, > and &, so the text is safe inside a page, too
	encoder.SetIndent("", " ")
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

func jsonCellOf(c Cell, column Column) jsonCell {
	cell := jsonCell{Shown: c.Text, Notes: c.Notes}
	if c.Plain == "" {
		return cell // null
	}
	cell.Value = c.Plain
	if column.Left {
		return cell
	}
	digits := c.Plain
	for _, sign := range []string{">=", "<="} {
		if rest, found := strings.CutPrefix(digits, sign); found {
			cell.Bound, digits = sign, rest
		}
	}
	if number := json.Number(digits); isNumber(digits) {
		cell.Value = number
	} else {
		cell.Bound = ""
	}
	return cell
}

// isNumber reports whether text is a number as JSON spells one.
func isNumber(text string) bool {
	var number json.Number
	return json.Unmarshal([]byte(text), &number) == nil && !strings.HasPrefix(text, `"`)
}
