package report

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"jaegerlab/lab/record"
)

// Series are the per-second samples of one run, by node and metric, in the order of time.
type Series map[SeriesKey][]Sample

// SeriesKey names one series: "cassandra-1", "cpu".
type SeriesKey struct{ Node, Metric string }

// Sample is one value; AtS counts from the window's start in seconds, negative before it.
type Sample struct{ AtS, Value float64 }

const seriesHeader = "offset_s,node,metric,unit,value"

// ReadSeries reads the series of a run below dir, the record's folder; nil when the run has none.
func ReadSeries(dir string, run record.Run) (Series, error) {
	if run.Series == "" {
		return nil, nil
	}
	path := filepath.Join(dir, filepath.FromSlash(run.Series))
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the series of %s, round %d: %w", run.Arm, run.Round, err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(bufio.NewReader(f))
	var series Series
	if err == nil {
		series, err = decodeSeries(zip)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return series, nil
}

func decodeSeries(r io.Reader) (Series, error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return nil, err
	}
	if strings.Join(header, ",") != seriesHeader {
		return nil, fmt.Errorf("line 1 is %q, and a series begins with %q", header, seriesHeader)
	}
	series := Series{}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return series, nil
		}
		if err != nil {
			return nil, err // csv errors name the line
		}
		at, errAt := strconv.ParseFloat(fields[0], 64)
		value, errValue := strconv.ParseFloat(fields[4], 64)
		if err := errors.Join(errAt, errValue); err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		key := SeriesKey{strings.Clone(fields[1]), strings.Clone(fields[2])}
		series[key] = append(series[key], Sample{at, value})
	}
}

// within gives the samples inside the window.
func (s Series) within(key SeriesKey, windowS float64) (samples []Sample) {
	for _, sample := range s[key] {
		if sample.AtS >= 0 && sample.AtS <= windowS {
			samples = append(samples, sample)
		}
	}
	return samples
}

// standstill is how many seconds of the window a counter did not move at all, and how many it
// was watched.
func (s Series) standstill(key SeriesKey, windowS float64) (still, watched float64) {
	samples := s.within(key, windowS)
	for i := 1; i < len(samples); i++ {
		took := samples[i].AtS - samples[i-1].AtS
		watched += took
		if samples[i].Value == samples[i-1].Value {
			still += took
		}
	}
	return still, watched
}
