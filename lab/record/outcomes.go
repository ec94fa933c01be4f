package record

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"jaegerlab/lab/trace"
)

// outcomesHeader names the columns of outcomes.csv.gz, one line for each request, in the order of
// Outcome's fields: times in nanoseconds since the epoch (answered 0 = no answer), class as
// Class.String spells it, code with backslash, line feed and carriage return escaped as \\, \n, \r.
var outcomesHeader = []string{
	"phase", "worker", "first", "spans", "intended_ns", "sent_ns", "answered_ns", "attempts", "class", "code",
}

var phaseNames = map[trace.Phase]string{trace.Measured: "measured", trace.Warmup: "warmup"}

// csv changes line ends inside quoted fields, so a code carries none.
var (
	escapeCode   = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
	unescapeCode = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
)

// WriteOutcomes writes outcomes.csv.gz in the run's folder and describes it.
func (run RunFolder) WriteOutcomes(outcomes []Outcome) (File, error) {
	raw, err := newRawWriter(run, OutcomesName)
	if err != nil {
		return File{}, err
	}
	if err := EncodeOutcomes(raw, outcomes); err != nil {
		raw.aside.discard()
		return File{}, fmt.Errorf("write %s: %w", raw.aside.path, err)
	}
	return raw.finish()
}

// ReadOutcomes reads the outcomes.csv.gz of a run's folder.
func ReadOutcomes(runDir string) (outcomes []Outcome, err error) {
	err = readRaw(filepath.Join(runDir, OutcomesName), func(r io.Reader) error {
		outcomes, err = DecodeOutcomes(r)
		return err
	})
	return outcomes, err
}

// EncodeOutcomes writes the text of an outcomes file.
func EncodeOutcomes(w io.Writer, outcomes []Outcome) error {
	out := csv.NewWriter(w)
	if err := out.Write(outcomesHeader); err != nil {
		return err
	}
	fields := make([]string, len(outcomesHeader))
	for i, o := range outcomes {
		phase, ok := phaseNames[o.Phase]
		if !ok || int(o.Class) >= len(classNames) {
			return fmt.Errorf("outcome %d has phase %d and class %d, which do not exist", i, o.Phase, o.Class)
		}
		fields = append(fields[:0], phase,
			strconv.FormatUint(uint64(o.Worker), 10), strconv.FormatUint(o.First, 10), strconv.FormatUint(uint64(o.Spans), 10),
			strconv.FormatInt(o.Intended, 10), strconv.FormatInt(o.Sent, 10), strconv.FormatInt(o.Answered, 10),
			strconv.FormatUint(uint64(o.Attempts), 10), o.Class.String(), escapeCode.Replace(o.Code))
		if err := out.Write(fields); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// DecodeOutcomes reads the text of an outcomes file. Errors name the line and the column.
func DecodeOutcomes(r io.Reader) ([]Outcome, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = len(outcomesHeader)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if strings.Join(header, ",") != strings.Join(outcomesHeader, ",") {
		return nil, fmt.Errorf("line 1 is %q, and an outcomes file begins with %q", header, outcomesHeader)
	}
	outcomes := []Outcome{}
	codes := map[string]string{} // few codes, many outcomes: keep one copy of each
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return outcomes, nil
		}
		if err != nil {
			return nil, err // csv errors name the line
		}
		outcome, err := parseOutcome(fields, codes)
		if err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		outcomes = append(outcomes, outcome)
	}
}

func parseOutcome(fields []string, codes map[string]string) (Outcome, error) {
	p := outcomeParser{fields: fields}
	o := Outcome{
		Phase:    p.phase(0),
		Worker:   uint32(p.unsigned(1, math.MaxUint32)),
		First:    p.unsigned(2, math.MaxUint64),
		Spans:    uint32(p.unsigned(3, math.MaxUint32)),
		Intended: p.signed(4),
		Sent:     p.signed(5),
		Answered: p.signed(6),
		Attempts: uint16(p.unsigned(7, math.MaxUint16)),
		Class:    p.class(8),
	}
	code, ok := codes[fields[9]]
	if !ok {
		text := strings.Clone(fields[9])
		code = unescapeCode.Replace(text)
		codes[text] = code
	}
	o.Code = code
	return o, p.err
}

// outcomeParser keeps the first error of a line.
type outcomeParser struct {
	fields []string
	err    error
}

func (p *outcomeParser) fail(column int, accepted string) {
	if p.err == nil {
		p.err = fmt.Errorf("column %s is %q; accepted: %s", outcomesHeader[column], p.fields[column], accepted)
	}
}

func (p *outcomeParser) unsigned(column int, most uint64) uint64 {
	value, err := strconv.ParseUint(p.fields[column], 10, 64)
	if err != nil || value > most {
		p.fail(column, fmt.Sprintf("a whole number up to %d", most))
	}
	return value
}

func (p *outcomeParser) signed(column int) int64 {
	value, err := strconv.ParseInt(p.fields[column], 10, 64)
	if err != nil {
		p.fail(column, "a whole number of 64 bits")
	}
	return value
}

func (p *outcomeParser) phase(column int) trace.Phase {
	for phase, name := range phaseNames {
		if name == p.fields[column] {
			return phase
		}
	}
	p.fail(column, "measured, warmup")
	return 0
}

func (p *outcomeParser) class(column int) Class {
	for class, name := range classNames {
		if name == p.fields[column] {
			return Class(class)
		}
	}
	p.fail(column, strings.Join(classNames[:], ", "))
	return 0
}
