package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
)

// rowsHeader names the columns of rows.csv.gz, one line for each row read back:
//
//	trace_id       32 hexadecimal digits
//	span_id        16 hexadecimal digits
//	hash           span hash of the row key, signed decimal; 0 where the store has none
//	write_time_us  microseconds since the epoch; 0 where the store has none
const rowsHeader = "trace_id,span_id,hash,write_time_us"

const (
	rowIDs     = 32 + 1 + 16 + 1              // both ids with their commas
	rowMaxLine = rowIDs + 20 + 1 + 20         // an int64 has at most 20 characters
	hexDigits  = "0123456789abcdef"           //
	noDigit    = byte(0xff)                   //
	rowBuffer  = rowMaxLine + len(rowsHeader) // longest line that is still looked at
)

// RowWriter streams the rows of a read-back to disk. It is used by one goroutine at a time.
type RowWriter struct {
	raw  *rawWriter
	line []byte
	err  error
}

// Rows opens rows.csv.gz in the run's folder. The file appears under its name at Close.
func (run RunFolder) Rows() (*RowWriter, error) {
	raw, err := newRawWriter(run, RowsName)
	if err != nil {
		return nil, err
	}
	w := &RowWriter{raw: raw}
	_, w.err = raw.WriteString(rowsHeader + "\n")
	return w, nil
}

// Write adds one row. The first error stays: later calls and Close return it too.
func (w *RowWriter) Write(row Row) error {
	if w.err != nil {
		return w.err
	}
	w.line = appendRow(w.line[:0], row)
	if _, err := w.raw.Write(w.line); err != nil {
		w.err = fmt.Errorf("write %s: %w", w.raw.aside.path, err)
	}
	return w.err
}

// Close completes the file and describes it.
func (w *RowWriter) Close() (File, error) {
	if w.err != nil {
		w.raw.aside.discard()
		return File{}, w.err
	}
	return w.raw.finish()
}

// Abort removes what was written; after Close it must not be called.
func (w *RowWriter) Abort() { w.raw.aside.discard() }

func appendRow(line []byte, row Row) []byte {
	line = appendHex(line, row.ID.High)
	line = appendHex(line, row.ID.Low)
	line = append(line, ',')
	line = appendHex(line, row.ID.Span)
	line = append(line, ',')
	line = strconv.AppendInt(line, row.Hash, 10)
	line = append(line, ',')
	line = strconv.AppendInt(line, row.WriteTime, 10)
	return append(line, '\n')
}

func appendHex(line []byte, word uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		line = append(line, hexDigits[word>>shift&15])
	}
	return line
}

// ReadRows passes every row of a run's rows.csv.gz to sink, in the file's order, and stops at
// sink's first error.
func ReadRows(runDir string, sink func(Row) error) error {
	return readRaw(filepath.Join(runDir, RowsName), func(r io.Reader) error { return DecodeRows(r, sink) })
}

// DecodeRows reads the text of a rows file. Errors name the line.
func DecodeRows(r io.Reader, sink func(Row) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), 1<<16)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if n == 1 {
			if string(line) != rowsHeader {
				return fmt.Errorf("line 1 is %q, and a rows file begins with %q", clip(line), rowsHeader)
			}
			continue
		}
		row, ok := parseRow(line)
		if !ok {
			return fmt.Errorf("line %d is %q, and a row has %q", n, clip(line), rowsHeader)
		}
		if err := sink(row); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a line has more than %d bytes: it is no rows file", 1<<16)
	}
	return lines.Err()
}

func clip(line []byte) []byte { return line[:min(len(line), rowBuffer)] }

// parseRow takes exactly what appendRow writes.
func parseRow(line []byte) (row Row, ok bool) {
	if len(line) <= rowIDs || len(line) > rowMaxLine || line[32] != ',' || line[49] != ',' {
		return row, false
	}
	var okHigh, okLow, okSpan, okHash, okTime bool
	row.ID.High, okHigh = parseHex(line[:16])
	row.ID.Low, okLow = parseHex(line[16:32])
	row.ID.Span, okSpan = parseHex(line[33:49])
	rest := line[rowIDs:]
	comma := 0
	for comma < len(rest) && rest[comma] != ',' {
		comma++
	}
	if comma == len(rest) {
		return row, false
	}
	row.Hash, okHash = parseInt(rest[:comma])
	row.WriteTime, okTime = parseInt(rest[comma+1:])
	return row, okHigh && okLow && okSpan && okHash && okTime
}

func parseHex(text []byte) (word uint64, ok bool) {
	for _, c := range text {
		digit := noDigit
		switch {
		case c >= '0' && c <= '9':
			digit = c - '0'
		case c >= 'a' && c <= 'f':
			digit = c - 'a' + 10
		}
		if digit == noDigit {
			return 0, false
		}
		word = word<<4 | uint64(digit)
	}
	return word, true
}

// parseInt reads a plain decimal int64: an optional minus and digits, nothing else.
func parseInt(text []byte) (int64, bool) {
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	var value uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		value = value*10 + uint64(c-'0') // 19 digits fit 64 bits
	}
	if negative {
		return -int64(value), value <= 1<<63
	}
	return int64(value), value <= math.MaxInt64
}
