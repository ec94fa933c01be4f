package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"jaegerlab/lab/record"
)

// Markdown writes report.md: everything of the document in GitHub's flavour of Markdown, then
// what the figures rest on: host, versions, settings, raw facts and logs, and how to read it.
func Markdown(w io.Writer, doc Document, r record.Record) error {
	m := &markdown{}
	m.line("# %s", escape(doc.Title))
	m.line("")
	for _, note := range doc.Notes {
		m.line("- %s", escape(note))
	}
	for _, t := range doc.Tables {
		m.table(t)
	}
	m.errors(r)
	m.background(r)
	m.how(doc)
	_, err := w.Write(m.Bytes())
	return err
}

// MarkdownTables writes a document without a comparison behind it: title, notes and tables.
func MarkdownTables(w io.Writer, doc Document) error {
	m := &markdown{}
	m.line("# %s", escape(doc.Title))
	m.line("")
	for _, note := range doc.Notes {
		m.line("- %s", escape(note))
	}
	for _, t := range doc.Tables {
		m.table(t)
	}
	m.head("How to read it")
	m.signs()
	m.columns(doc)
	_, err := w.Write(m.Bytes())
	return err
}

// MarkdownTable writes one table and its notes, without a heading: for a page that has its own.
func MarkdownTable(w io.Writer, t Table) error {
	m := &markdown{}
	t.Title = ""
	m.table(t)
	_, err := io.WriteString(w, strings.TrimPrefix(m.String(), "\n## \n\n"))
	return err
}

// markdown is the text so far.
type markdown struct{ bytes.Buffer }

func (m *markdown) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

func (m *markdown) head(title string) {
	m.line("")
	m.line("## %s", escape(title))
	m.line("")
}

func (m *markdown) table(t Table) {
	m.head(t.Title)
	header, rule := "|", "|"
	for _, c := range t.Columns {
		header += " " + escape(c.Name()) + " |"
		if c.Left {
			rule += " :--- |"
		} else {
			rule += " ---: |"
		}
	}
	m.line("%s", header)
	m.line("%s", rule)
	for _, row := range t.Rows {
		line := "|"
		for _, c := range row {
			line += " " + markdownCell(c) + " |"
		}
		m.line("%s", line)
	}
	for i, f := range t.Footnotes {
		if i == 0 {
			m.line("")
		}
		m.line("- (%d) %s", f.Number, escape(f.Text))
	}
}

func markdownCell(c Cell) string {
	parts := strings.Split(c.Text, "\n")
	for i := range parts {
		parts[i] = escape(parts[i])
	}
	cell := strings.Join(parts, "<br>")
	for _, n := range c.Notes {
		cell += fmt.Sprintf(" (%d)", n)
	}
	return cell
}

// escape makes text show as itself at any place of a Markdown line, table cells included: no
// markup, no links or images, no HTML, no column of its own.
func escape(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch r {
		case '\\', '`', '*', '_', '[', ']', '|', '~', '$':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '\n', '\r': // the model's own breaks are handled before; none may start a line
			b.WriteByte(' ')
		case '#', '+', '-', '=':
			if i == 0 && len(text) > 1 { // would open a heading, a list or a rule
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return strings.ReplaceAll(b.String(), "://", "&#58;//") // a bare address would become a link
}

// code puts text of several lines into a fence that the text can't close.
func (m *markdown) code(text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	m.line("%s", fence)
	for line := range strings.Lines(text) {
		m.line("%s", cleanLine(line))
	}
	m.line("%s", fence)
}

// cleanLine keeps the indentation that clean would drop.
func cleanLine(line string) string {
	body := strings.TrimLeft(line, " ")
	return line[:len(line)-len(body)] + clean(body)
}
