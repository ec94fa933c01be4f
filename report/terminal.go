package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

const (
	terminalWidth = 110 // of running text
	tableWidth    = 120 // of a table; a wider one continues below, with its first columns again
	cellWidth     = 40  // of a cell's line
	headerWidth   = 11  // characters of a column's title before it is broken at a space
)

// Terminal prints the document's first lines and its tables, without the details, as plain text.
func Terminal(w io.Writer, doc Document) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "\n%s\n", doc.Title)
	for _, note := range doc.Notes {
		out.WriteString(wrap(note, "  ", "  "))
	}
	for _, t := range doc.Tables {
		if t.Detail {
			continue
		}
		fmt.Fprintf(&out, "\n%s\n", t.Title)
		for _, part := range split(t) {
			if err := terminalTable(&out, part); err != nil {
				return fmt.Errorf("print the table %q: %w", t.Title, err)
			}
		}
		for _, f := range t.Footnotes {
			mark := fmt.Sprintf("  [%d] ", f.Number)
			out.WriteString(wrap(f.Text, mark, strings.Repeat(" ", len(mark))))
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// split cuts a table that is too wide into parts, each of which begins with the columns that say what
// a row is about. A column that is too wide by itself stays whole.
func split(t Table) (parts []Table) {
	keys := 0
	for keys < len(t.Columns) && slices.Contains(keyColumns, t.Columns[keys].Title) {
		keys++
	}
	widths := make([]int, len(t.Columns))
	ofKeys := 0
	for i := range t.Columns {
		widths[i] = columnWidth(t, i)
		if i < keys {
			ofKeys += widths[i]
		}
	}
	from, width := keys, ofKeys
	for i := keys; i <= len(t.Columns); i++ {
		if i < len(t.Columns) && (width+widths[i] <= tableWidth || i == from) {
			width += widths[i]
			continue
		}
		part := Table{Title: t.Title, Columns: slices.Concat(t.Columns[:keys], t.Columns[from:i])}
		for _, row := range t.Rows {
			part.Rows = append(part.Rows, slices.Concat(row[:keys], row[from:i]))
		}
		if parts = append(parts, part); i < len(t.Columns) {
			from, width = i, ofKeys+widths[i]
		}
	}
	return parts
}

var keyColumns = []string{colArm.Title, colRound.Title, colNode.Title}

// columnWidth is what a column takes in a printed table, with its margins and rule.
func columnWidth(t Table, i int) int {
	widest := 0
	measure := func(text string) {
		for _, line := range strings.Split(text, "\n") {
			widest = max(widest, utf8.RuneCountInString(line))
		}
	}
	measure(narrow(t.Columns[i]))
	for _, row := range t.Rows {
		measure(shownCell(row[i], t.Columns[i]))
	}
	return widest + len(" ") + len(" |")
}

// shownCell is a cell as it is printed.
func shownCell(c Cell, column Column) string {
	text := c.Text + marks(c)
	if column.Left {
		text = fold(text)
	}
	return text
}

func terminalTable(w io.Writer, t Table) error {
	header := make([]string, len(t.Columns))
	align := make([]tw.Align, len(t.Columns))
	for i, c := range t.Columns {
		header[i], align[i] = narrow(c), tw.AlignRight
		if c.Left {
			align[i] = tw.AlignLeft
		}
	}
	config := tablewriter.Config{
		Header: tw.CellConfig{
			Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
			Alignment:  tw.CellAlignment{PerColumn: align},
		},
		Row: tw.CellConfig{
			Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
			Alignment:  tw.CellAlignment{PerColumn: align},
		},
		Behavior: tw.Behavior{TrimSpace: tw.Off},
	}
	table := tablewriter.NewTable(w, tablewriter.WithConfig(config),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.On, Bottom: tw.On},
			Symbols: tw.NewSymbols(tw.StyleASCII),
		})))
	table.Header(header)
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = shownCell(c, t.Columns[i])
		}
		if err := table.Append(cells); err != nil {
			return err
		}
	}
	return table.Render()
}

// fold breaks lines that foreign text made too long for a column, at any character.
func fold(text string) string {
	var folded []string
	for _, line := range strings.Split(text, "\n") {
		runes := []rune(line)
		for len(runes) > cellWidth {
			folded, runes = append(folded, string(runes[:cellWidth])), runes[cellWidth:]
		}
		folded = append(folded, string(runes))
	}
	return strings.Join(folded, "\n")
}

// marks puts the numbers of a cell's footnotes on a line of their own when there are several, so
// that figures stay below each other.
func marks(c Cell) string {
	if len(c.Notes) == 0 {
		return ""
	}
	const aLine = 3
	var b strings.Builder
	for i, n := range c.Notes {
		switch {
		case i == 0 && len(c.Notes) == 1:
			b.WriteByte(' ')
		case i%aLine == 0:
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[%d]", n)
	}
	return b.String()
}

// narrow breaks a title at spaces and puts the unit below it.
func narrow(c Column) string {
	broken := breakAt(c.Title, headerWidth)
	if c.Unit != "" {
		broken = append(broken, breakAt("("+c.Unit+")", headerWidth)...)
	}
	return strings.Join(broken, "\n")
}

// wrap breaks running text into lines with a first and a following indent.
func wrap(text, first, following string) string {
	var b strings.Builder
	for i, line := range breakAt(text, terminalWidth-len(following)) {
		indent := following
		if i == 0 {
			indent = first
		}
		b.WriteString(indent + line + "\n")
	}
	return b.String()
}

// breakAt splits text at spaces into lines of at most width characters; a longer word stays whole.
func breakAt(text string, width int) (lines []string) {
	line, length := "", 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		if length > 0 && length+1+n > width {
			lines, line, length = append(lines, line), "", 0
		}
		if length > 0 {
			line, length = line+" ", length+1
		}
		line, length = line+word, length+n
	}
	return append(lines, line)
}
