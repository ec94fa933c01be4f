package load

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"time"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// Result is what the load node knows of a job, to the end or so far.
type Result struct {
	Job      Job    `json:"job"`
	State    string `json:"state"`
	Complete bool   `json:"complete"` // warm-up and window ran to their ends

	Generated map[trace.Phase][]uint64 `json:"generated"` // spans of each worker: indexes 0 ... n-1
	Window    record.Window            `json:"window"`
	Warmup    record.Window            `json:"warmup"` // zero without a warm-up
	Sent      record.Sent              `json:"sent"`   // of the measured phase
	Queued    *int64                   `json:"queued"` // spans queued when the flush's deadline came; null without a queue
	Request   *record.Latency          `json:"request"`
	Outcomes  []record.Outcome         `json:"-"`
}

// header is the first line of the stream; the journals' packed bytes follow in order.
type header struct {
	Version  int `json:"version"`
	Result   Result
	Codes    []string  `json:"codes"`
	Journals []chapter `json:"journals"`
}

const streamVersion = 1

// chapter is one journal of the stream.
type chapter struct {
	Phase    trace.Phase `json:"phase"`
	Worker   uint32      `json:"worker"`
	Outcomes int         `json:"outcomes"`
	Bytes    int         `json:"bytes"`
}

// write streams what is known so far: a gzip of the header's line and the journals.
func (r *run) write(w io.Writer) error {
	h := header{Version: streamVersion}
	var packed []piece
	for _, worker := range r.workers {
		worker.mu.Lock()
		for phase := range worker.journals {
			j := &worker.journals[phase]
			if j.outcomes > 0 {
				h.Journals = append(h.Journals, chapter{trace.Phase(phase), worker.number, j.outcomes, j.size()})
				packed = append(packed, j.pieces()...)
			}
		}
		worker.mu.Unlock()
	}
	h.Codes = r.codes.list()
	var err error
	if h.Result, err = r.result(); err != nil {
		return err
	}
	zip := gzip.NewWriter(w)
	if err := json.NewEncoder(zip).Encode(h); err != nil {
		return err
	}
	for _, p := range packed {
		chunk, err := r.shelf.read(p)
		if err != nil {
			return err
		}
		if _, err := zip.Write(chunk); err != nil {
			return err
		}
	}
	return zip.Close()
}

// result is everything but the outcomes.
func (r *run) result() (Result, error) {
	response, service, err := r.merged()
	if err != nil {
		return Result{}, err
	}
	r.mu.Lock()
	result := Result{
		Job: r.job, State: r.state, Complete: r.complete, Request: response,
		Window: r.windows[trace.Measured], Warmup: r.windows[trace.Warmup], Generated: map[trace.Phase][]uint64{},
		Sent: record.Sent{CPUSeconds: r.cpu, RetryRule: r.proto.RetryRule, RefusedReasons: r.reasonList()},
	}
	r.mu.Unlock()
	var totals protocol.Totals
	for _, w := range r.workers {
		w.mu.Lock()
		totals = totals.Add(w.totals[trace.Measured])
		w.mu.Unlock()
		for _, phase := range []trace.Phase{trace.Measured, trace.Warmup} {
			if w.clients[phase] != nil {
				result.Generated[phase] = append(result.Generated[phase], w.generated[phase].Load())
			}
		}
	}
	result.Sent.Requests, result.Sent.Retries, result.Sent.Bytes = totals.Requests, totals.Retries, totals.Bytes
	result.Sent.QueueDropped, result.Queued = totals.QueueDropped, totals.Queued
	r.mu.Lock()
	defer r.mu.Unlock()
	result.Sent.Pace = r.pace(totals, service)
	return result, nil
}

// merged are the latencies of all workers together.
func (r *run) merged() (response, service *record.Latency, err error) {
	responses, services := record.NewLatencyHistogram(), record.NewLatencyHistogram()
	for i := range r.latencies {
		l := &r.latencies[i]
		l.mu.Lock()
		if l.response != nil {
			responses.Merge(l.response)
			services.Merge(l.service)
		}
		l.mu.Unlock()
	}
	if response, err = record.NewLatency(responses); err != nil {
		return nil, nil, err
	}
	service, err = record.NewLatency(services)
	return response, service, err
}

// maxReasons bounds the reasons in a record; the outcomes have them all.
const maxReasons = 20

// reasonList orders the reasons of the measured phase, the most frequent first.
func (r *run) reasonList() []record.Reason {
	var list []record.Reason
	for reason, spans := range r.reasons {
		list = append(list, record.Reason{Reason: reason, Spans: spans})
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].Spans != list[j].Spans {
			return list[i].Spans > list[j].Spans
		}
		return list[i].Reason < list[j].Reason
	})
	return list[:min(len(list), maxReasons)]
}

// maxHeader bounds the header's line: codes and one entry per worker and phase.
const maxHeader = 256 << 20

// readResult reads what write wrote. The data is complete or an error.
func readResult(r io.Reader) (Result, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return Result{}, fmt.Errorf("read outcomes: %w", err)
	}
	buffered := bufio.NewReaderSize(zip, 1<<16)
	line, err := readLine(buffered)
	if err != nil {
		return Result{}, fmt.Errorf("read outcomes: header: %w", err)
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return Result{}, fmt.Errorf("read outcomes: header: %w", err)
	}
	if h.Version != streamVersion {
		return Result{}, fmt.Errorf("read outcomes: version %d of the load node, this lab reads %d; "+
			"build the load program anew", h.Version, streamVersion)
	}
	result := h.Result
	for _, c := range h.Journals {
		if result.Outcomes, err = c.read(buffered, result.Outcomes, h.Codes); err != nil {
			return Result{}, err
		}
	}
	if n, err := io.Copy(io.Discard, buffered); err != nil || n > 0 { // the checksum is behind the last byte
		return Result{}, fmt.Errorf("read outcomes: %d bytes after the last journal: %w", n, errors.Join(errCut, err))
	}
	return result, nil
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line bytes.Buffer
	for {
		part, err := r.ReadSlice('\n')
		line.Write(part)
		if err == nil {
			return line.Bytes(), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if line.Len() > maxHeader {
			return nil, fmt.Errorf("longer than %d bytes", maxHeader)
		}
	}
}

func (c chapter) read(r io.Reader, all []record.Outcome, codes []string) ([]record.Outcome, error) {
	if c.Bytes < 0 || c.Phase >= phases {
		return all, fmt.Errorf("read outcomes: journal %+v is impossible", c)
	}
	packed, err := io.ReadAll(io.LimitReader(r, int64(c.Bytes)))
	if err == nil && len(packed) < c.Bytes {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return all, fmt.Errorf("read outcomes of worker %d: %w", c.Worker, err)
	}
	before := len(all)
	if all, err = unpack(all, packed, c.Phase, c.Worker, codes); err != nil {
		return all, err
	}
	if n := len(all) - before; n != c.Outcomes {
		return all, fmt.Errorf("read outcomes of worker %d: %d, want %d", c.Worker, n, c.Outcomes)
	}
	return all, nil
}

// Progress is where a job stands; spans are those of the measured phase.
type Progress struct {
	State    string  `json:"state"`
	Complete bool    `json:"complete"`
	ElapsedS float64 `json:"elapsed_s"` // since the start, warm-up included
	PlannedS float64 `json:"planned_s"` // warm-up and window
	BoundS   float64 `json:"bound_s"`   // until it is done at the latest

	Generated  int64 `json:"generated"`
	Acked      int64 `json:"acked"`
	Refused    int64 `json:"refused"`
	Unanswered int64 `json:"unanswered"`

	WarmupGenerated int64 `json:"warmup_generated"`
}

func (r *run) progress() Progress {
	r.mu.Lock()
	state, complete := r.state, r.complete
	r.mu.Unlock()
	c := &r.counts[trace.Measured]
	return Progress{
		State: state, Complete: complete, ElapsedS: time.Since(r.began).Seconds(),
		PlannedS: (r.job.warmup() + r.job.window()).Seconds(), BoundS: r.job.bound().Seconds(),
		Generated: c.generated.Load(), Acked: c.acked.Load(), Refused: c.refused.Load(), Unanswered: c.unanswered.Load(),
		WarmupGenerated: r.counts[trace.Warmup].generated.Load(),
	}
}
