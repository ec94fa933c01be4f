// Package report turns a recorded comparison into tables: record -> one table model -> one small
// file per format. It is the last step of the flow and pure: it needs no database, no container
// and no clock, and renders a record again in an instant. It ranks nothing: with what a record
// holds today it can show figures, say how they were got, and say what is not known.
package report

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Document is what every format renders. Text in it is clean: one line, no control characters;
// line breaks stand only where the model put them. Escaping for a place is each format's own.
type Document struct {
	Title  string
	Notes  []string // what a reader must know before any figure
	Tables []Table

	Judgements []Judgement // of the comparisons; Notes have them too
}

// Judgement is what one comparison came to.
type Judgement struct {
	Sentence string // what was found, and whether it ranks
	Fairness string // what else differed
	Fair     bool
}

// Table is one table with the footnotes that are first used in it.
type Table struct {
	Title     string
	Columns   []Column
	Rows      [][]Cell
	Footnotes []Footnote
	Detail    bool // too long for a terminal: only in files
}

// Column says what a figure is; columns.go lists them all.
type Column struct {
	Title string
	Unit  string // "" = none
	Left  bool   // text, aligned left; figures are aligned right
	How   string // how to read it
}

// Cell is one value, ready to print.
type Cell struct {
	Text  string // for people: thousands separators, "n/a"
	Plain string // for programs: plain digits, empty where the value is not known
	Notes []int  // numbers of footnotes
}

// Footnote is a doubt, a reason or a warning; numbers run through the whole document, and equal
// texts share one.
type Footnote struct {
	Number int
	Text   string
}

const notAvailable = "n/a" // never 0: what is not known is not nothing

// builder collects tables and gives equal footnotes one number.
type builder struct {
	tables  []Table
	numbers map[string]int
}

func (b *builder) begin(title string, columns ...Column) {
	b.tables = append(b.tables, Table{Title: title, Columns: columns})
}

func (b *builder) table() *Table { return &b.tables[len(b.tables)-1] }

func (b *builder) row(cells ...Cell) {
	t := b.table()
	t.Rows = append(t.Rows, cells)
}

// note returns the cell with a footnote of this text; an empty text adds none.
func (b *builder) note(c Cell, text string) Cell {
	text = clean(text)
	if text == "" {
		return c
	}
	number, ok := b.numbers[text]
	if !ok {
		number = len(b.numbers) + 1
		b.numbers[text] = number
		t := b.table()
		t.Footnotes = append(t.Footnotes, Footnote{Number: number, Text: text})
	}
	if !slices.Contains(c.Notes, number) {
		c.Notes = append(slices.Clone(c.Notes), number)
	}
	return c
}

func (b *builder) notes(c Cell, texts []string) Cell {
	for _, text := range texts {
		c = b.note(c, text)
	}
	return c
}

// unknown is the cell of a value that is null in the record, with the reason.
func (b *builder) unknown(why string) Cell { return b.note(Cell{Text: notAvailable}, why) }

// count shows a whole number, or n/a with the reason.
func (b *builder) count(value *int64, why string) Cell {
	if value == nil {
		return b.unknown(why)
	}
	return whole(*value)
}

// number shows a figure with fixed decimals, or n/a with the reason.
func (b *builder) number(value *float64, decimals int, why string) Cell {
	if value == nil {
		return b.unknown(why)
	}
	return fixed(*value, decimals)
}

func text(s string) Cell {
	s = clean(s)
	return Cell{Text: s, Plain: s}
}

// lines is a cell whose parts stand below each other.
func lines(parts ...string) Cell {
	for i := range parts {
		parts[i] = clean(parts[i])
	}
	return Cell{Text: strings.Join(parts, "\n"), Plain: strings.Join(parts, " ")}
}

func whole(n int64) Cell {
	plain := strconv.FormatInt(n, 10)
	return Cell{Text: grouped(plain), Plain: plain}
}

func fixed(f float64, decimals int) Cell {
	plain := strconv.FormatFloat(f, 'f', decimals, 64)
	return Cell{Text: grouped(plain), Plain: plain}
}

// bound marks a figure that is only a limit of the true one: ">=" or "<=".
func bound(sign string, c Cell) Cell {
	c.Text, c.Plain = sign+c.Text, sign+c.Plain
	return c
}

// grouped puts a comma between groups of three digits before the decimal point, in every locale.
func grouped(plain string) string {
	sign, digits, fraction := "", plain, ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	if dot := strings.IndexByte(digits, '.'); dot >= 0 {
		digits, fraction = digits[:dot], digits[dot:]
	}
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return sign + b.String() + fraction
}

// clean makes foreign text fit for one line of any format: line breaks and tabs become spaces,
// other control and invisible characters (terminal escapes, text direction) become visible.
func clean(s string) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(s) {
		switch {
		case r == utf8.RuneError:
			b.WriteRune(r)
		case r == '\n' || r == '\r' || r == '\t' || unicode.Is(unicode.Zs, r) || r == '\u2028' || r == '\u2029':
			if !strings.HasSuffix(b.String(), " ") {
				b.WriteByte(' ')
			}
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
