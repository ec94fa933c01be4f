package exporters

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"

	"jaegerlab/bench"
	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/solo"
)

// realJaeger exports one batch with every arm that has a receiver to a real Jaeger v2 on the
// memory store, reads every trace back and says what became of each span. absent says why there
// are no rows where Jaeger is not built.
func realJaeger(ctx context.Context, o Options, in *input) (rows []bench.Row, absent string, err error) {
	program, err := solo.Program(ctx)
	if err != nil {
		return nil, err.Error(), nil
	}
	for _, a := range arms() {
		if a.hole == "" || strings.Contains(a.name, "double") {
			continue
		}
		a.name = "jaeger-v2/" + a.name
		o.Say("exporters: %s", a.name)
		row := bench.Row{Name: a.name + "/batches=1"}
		if err := intoJaeger(ctx, program, a, in, &row); err != nil {
			return rows, "", fmt.Errorf("measure exporter %s: %w", a.name, err)
		}
		rows = append(rows, row)
	}
	return rows, "", nil
}

func intoJaeger(ctx context.Context, program string, a arm, in *input, row *bench.Row) (err error) {
	p, err := protocol.Get(a.hole)
	if err != nil {
		return err
	}
	jaeger, err := solo.Start(ctx, program, p)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, jaeger.Close()) }()
	s, err := a.open(ctx, jaeger.Target, in)
	if err != nil {
		return err
	}
	kernel, counted := protocol.ReadUDPErrors()
	var once bench.Row // a first batch, with the connection's set-up in it: no figure of speed
	sampled := sample(ctx, s, nil, 1, len(in.spans), &once)
	for _, unit := range []string{batchesPerOp, createdPerOp, exportedOp, failedPerOp} {
		row.Add(unit, once.Median(unit))
	}
	ended := s.close(context.WithoutCancel(ctx)) // whatever it still held has left
	if err := errors.Join(sampled, ended); err != nil {
		return err
	}
	t, err := readBack(ctx, jaeger, in.spans, p.UDP)
	if err != nil {
		return err
	}
	row.Add(storedPerOp, float64(t.equal))
	lacking := len(in.spans) - t.equal - t.differing
	text := fmt.Sprintf("of %d spans %d stored with equal content, %d differing, %d not stored, %d foreign",
		len(in.spans), t.equal, t.differing, lacking, t.foreign)
	if p.UDP {
		row.Doubt("UDP: no delivery guarantee")
		text = "sent without reply, so not stored is not lost: " + text
		if now, err := protocol.ReadUDPErrors(); counted == nil && err == nil {
			lost := now.Since(kernel)
			row.Add(kernelPerOp, float64(lost.InErrors))
			text += fmt.Sprintf("; the kernel dropped %d packets, %d of them at a full receive buffer",
				lost.InErrors, lost.ReceiveFull)
		}
	} else {
		verdict := record.Whole
		if t.equal < len(in.spans) || t.foreign > 0 {
			verdict = record.Lossy
		}
		text = fmt.Sprintf("ledger %s: %s", verdict, text)
	}
	row.Notes = append(row.Notes, text)
	return nil
}

// taken is what a Jaeger has stored of a batch, in spans.
type taken struct{ equal, differing, foreign int }

// readBack reads every trace. Nobody says when a packet was taken in, so over UDP what lacks is
// asked for again, for two seconds in all.
func readBack(ctx context.Context, jaeger *solo.Jaeger, spans []trace.ReadOnlySpan, udp bool) (t taken, err error) {
	deadline := time.Now().Add(2 * time.Second)
	for first := 0; first < len(spans); first += width {
		want := spans[first:min(first+width, len(spans))]
		id := want[0].SpanContext().TraceID()
		high, low := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
		stored, err := jaeger.Trace(ctx, high, low)
		for err == nil && udp && len(stored) < len(want) && time.Now().Before(deadline) {
			stored, err = jaeger.Trace(ctx, high, low)
		}
		if err != nil {
			return t, err
		}
		t.match(want, stored)
	}
	return t, nil
}

// match sets the stored spans of a trace against those exported.
func (t *taken) match(want []trace.ReadOnlySpan, stored []solo.Span) {
	rest := map[uint64]solo.Span{}
	for _, s := range stored {
		rest[s.ID.Span] = s
	}
	t.foreign += len(stored) - len(rest) // a second one of the same id
	for _, w := range want {
		id := w.SpanContext().SpanID()
		number := binary.BigEndian.Uint64(id[:])
		s, found := rest[number]
		delete(rest, number)
		switch {
		case found && equal(w, s):
			t.equal++
		case found:
			t.differing++
		}
	}
	t.foreign += len(rest)
}

// equal compares all that the batch's spans have; clients may add tags of their own.
func equal(w trace.ReadOnlySpan, s solo.Span) bool {
	parent := w.Parent().SpanID()
	service, _ := w.Resource().Set().Value("service.name")
	if s.Service != service.AsString() || s.Operation != w.Name() || s.StartUS != w.StartTime().UnixMicro() ||
		s.DurationUS != w.EndTime().Sub(w.StartTime()).Microseconds() || s.Parent != binary.BigEndian.Uint64(parent[:]) {
		return false
	}
	stored := map[string]string{}
	for _, tag := range s.Tags {
		stored[tag.Key] = tag.Value
	}
	for _, kv := range w.Attributes() {
		if value, ok := stored[string(kv.Key)]; !ok || value != kv.Value.AsString() {
			return false
		}
	}
	return true
}
