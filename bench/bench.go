// Package bench keeps and shows benchmarks of the lab's own parts and their peers: what a
// comparison of stores does with its record, this does with rows of repeated samples. It stands
// beside the flow; generators and exporters measure, this package writes benchmark.json, report.md
// and benchstat's format into a folder of results and prints the table.
package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"jaegerlab/lab/record"
	"jaegerlab/report"
)

// Version of benchmark.json.
const Version = 1

// Record is one benchmark: rows that were measured in turn, again and again.
type Record struct {
	Version    int               `json:"version"`
	ID         string            `json:"id"`
	Experiment string            `json:"experiment"`
	Started    time.Time         `json:"started"`
	Ended      time.Time         `json:"ended"`
	Host       record.Host       `json:"host"`
	Settings   map[string]string `json:"settings"`
	Rows       []Row             `json:"rows"`
	Lines      []string          `json:"lines,omitempty"` // what it came to
	Notes      []string          `json:"notes,omitempty"` // what a reader must know before any figure
}

// Row is what one thing measured, sample after sample.
type Row struct {
	Name    string               `json:"name"`             // as benchstat takes it: words and name=value joined by slashes
	Notes   []string             `json:"notes,omitempty"`  // how it was measured: flags of a peer
	Doubts  []string             `json:"doubts,omitempty"` // reasons to read it with care
	Samples map[string][]float64 `json:"samples"`          // by unit: "spans/s", "B/span"
}

// Add appends one sample.
func (r *Row) Add(unit string, value float64) {
	if r.Samples == nil {
		r.Samples = map[string][]float64{}
	}
	r.Samples[unit] = append(r.Samples[unit], value)
}

// Doubt adds a reason to read the row with care, once.
func (r *Row) Doubt(text string) {
	if !slices.Contains(r.Doubts, text) {
		r.Doubts = append(r.Doubts, text)
	}
}

// Median of a row's samples; NaN when it has none of this unit.
func (r Row) Median(unit string) float64 { return median(r.Samples[unit]) }

func median(samples []float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(samples))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Ratio is the median of the ratios of two rows' samples, taken round by round: what disturbed one
// round disturbed both. NaN when there are none.
func Ratio(of, to Row, unit string) float64 {
	a, b := of.Samples[unit], to.Samples[unit]
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			ratios = append(ratios, a[i]/b[i])
		}
	}
	return median(ratios)
}

// Column is a figure of the table.
type Column struct {
	report.Column
	Decimals int
	Of       func(Row) (value float64, known bool)
}

// MedianOf is the column of a unit's medians.
func MedianOf(title, unit string, decimals int, how string) Column {
	return Column{Column: report.Column{Title: title, Unit: unit, How: how}, Decimals: decimals,
		Of: func(r Row) (float64, bool) { m := r.Median(unit); return m, !math.IsNaN(m) }}
}

// Document shows the record as one table.
func Document(r Record, title string, columns []Column) report.Document {
	t := report.Table{Title: title, Columns: []report.Column{{Title: "row", Left: true, How: "what was measured"}}}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Column)
	}
	numbers := map[string]int{}
	for _, row := range r.Rows {
		name := report.Cell{Text: row.Name, Plain: row.Name}
		for _, note := range slices.Concat(row.Notes, row.Doubts) {
			if numbers[note] == 0 {
				numbers[note] = len(numbers) + 1
				t.Footnotes = append(t.Footnotes, report.Footnote{Number: numbers[note], Text: note})
			}
			name.Notes = append(name.Notes, numbers[note])
		}
		cells := []report.Cell{name}
		for _, c := range columns {
			cells = append(cells, cell(c, row))
		}
		t.Rows = append(t.Rows, cells)
	}
	return report.Document{Title: r.Experiment + ", " + r.ID, Notes: append(slices.Clone(r.Notes), r.Lines...),
		Tables: []report.Table{t}}
}

func cell(c Column, row Row) report.Cell {
	value, known := c.Of(row)
	if !known {
		return report.Cell{Text: "n/a"}
	}
	plain := strconv.FormatFloat(value, 'f', c.Decimals, 64)
	return report.Cell{Text: grouped(plain), Plain: plain}
}

// grouped puts a comma between groups of three digits before the decimal point.
func grouped(plain string) string {
	digits, fraction, _ := strings.Cut(plain, ".")
	sign := ""
	if rest, ok := strings.CutPrefix(digits, "-"); ok {
		sign, digits = "-", rest
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if fraction != "" {
		digits += "." + fraction
	}
	return sign + digits
}

// Benchfmt is the record as the Go benchmark format, a line for each sample, which benchstat reads.
func Benchfmt(r Record) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: jaegerlab/%s\ncpu: %s\n",
		r.Host.OS, r.Host.Arch, r.Experiment, r.Host.CPUModel)
	for _, row := range r.Rows {
		units := make([]string, 0, len(row.Samples))
		most := 0
		for unit, samples := range row.Samples {
			units = append(units, unit)
			most = max(most, len(samples))
		}
		slices.Sort(units)
		for i := range most {
			fmt.Fprintf(&b, "Benchmark%s-%d\t1", strings.ReplaceAll(row.Name, " ", "_"), r.Host.CPUs)
			for _, unit := range units {
				if samples := row.Samples[unit]; i < len(samples) {
					fmt.Fprintf(&b, "\t%s %s", strconv.FormatFloat(samples[i], 'g', -1, 64), strings.ReplaceAll(unit, " ", "-"))
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// Files of a saved benchmark.
const (
	recordName = "benchmark.json"
	linesName  = "bench.txt"
)

// Is reports whether a folder of results holds a benchmark, and not a comparison of stores.
func Is(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, recordName))
	return err == nil
}

// Load reads the benchmark that Save wrote into a folder.
func Load(dir string) (r Record, err error) {
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return r, fmt.Errorf("read the benchmark in %s: %w", dir, err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read the benchmark in %s: %s: %w", dir, recordName, err)
	}
	if r.Version != Version {
		return r, fmt.Errorf("read the benchmark in %s: it has version %d, this program reads %d; "+
			"render it with the program that wrote it", dir, r.Version, Version)
	}
	return r, nil
}

// Save writes benchmark.json, report.md and bench.txt into the folder.
func Save(folder *record.Folder, r Record, doc report.Document) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("save the benchmark in %s: %w", folder.Dir, err)
	}
	if err := record.WriteFile(filepath.Join(folder.Dir, recordName), append(data, '\n')); err != nil {
		return err
	}
	return Rewrite(folder.Dir, r, doc)
}

// Rewrite makes what is read by people and by benchstat from the record again: report.md, bench.txt.
func Rewrite(dir string, r Record, doc report.Document) error {
	var page bytes.Buffer
	if err := report.MarkdownTables(&page, doc); err != nil {
		return fmt.Errorf("render the benchmark in %s: %w", dir, err)
	}
	page.WriteString("\n## Settings\n\n")
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		fmt.Fprintf(&page, "- %s: `%s`\n", name, r.Settings[name])
	}
	fmt.Fprintf(&page, "- host: %s\n- every sample: `%s`; for benchstat: `%s`\n", HostLine(r.Host), recordName, linesName)
	if err := record.WriteFile(filepath.Join(dir, report.FileName), page.Bytes()); err != nil {
		return err
	}
	return record.WriteFile(filepath.Join(dir, linesName), Benchfmt(r))
}

// HostLine names the machine in a line.
func HostLine(h record.Host) string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s, kernel %s", h.OS, h.Arch, h.CPUs, h.CPUModel, h.Kernel)
}
