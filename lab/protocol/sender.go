package protocol

import (
	"context"
	"math/rand/v2"

	"jaegerlab/lab/record"
)

// sender is a synchronous client: it fills a request, delivers it, reports its outcome, and only
// then goes on.
type sender struct {
	config    Config
	pool      pool
	transport transport
	random    *rand.Rand
	totals    Totals
}

// openSender plans the requests of a batch first: what can't be sent is refused before anything is opened.
func openSender(w wire, config Config, connect func() (transport, error)) (Client, error) {
	planned, err := w.within(config).plan(config.Content(), config.Numbering.Width, config.Traces())
	if err != nil {
		return nil, err
	}
	if err := planned.fits(w.client, config.Load.Concurrency); err != nil {
		return nil, err
	}
	t, err := connect()
	if err != nil {
		return nil, err
	}
	stream := uint64(config.Worker)<<1 | uint64(config.Phase)
	return &sender{config: config, pool: planned, transport: t, random: rand.New(rand.NewPCG(config.Seed, stream))}, nil
}

// within lowers the limits to what the load asks for.
func (w wire) within(config Config) wire {
	if most := config.Load.MaxRequestSpans; most > 0 {
		w.maxSpans = most
	}
	return w
}

func (s *sender) Send(ctx context.Context, work Work) {
	first := work.Seq * uint64(s.config.Numbering.Width)
	number := work.Seq / uint64(s.config.Traces())
	for _, p := range s.pool[number%uint64(len(s.pool))] {
		if ctx.Err() != nil {
			return
		}
		if !s.config.Frozen || s.totals.Requests == 0 {
			p.fill(s.config.Numbering, s.config.Phase, s.config.Worker, first+uint64(p.from), work.StartUS+int64(p.from))
		}
		s.send(ctx, p.template, first+uint64(p.from), work.Intended)
	}
}

func (s *sender) send(ctx context.Context, t *template, first uint64, intended int64) {
	bounded, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	o := record.Outcome{Phase: s.config.Phase, Worker: s.config.Worker, First: first, Spans: uint32(t.count)}
	sent := deliver(bounded, s.transport, t.bytes, newPauses(s.random), &o)
	if intended != 0 {
		o.Intended = intended
	}
	s.totals.Requests++
	s.totals.Retries += int64(sent.attempts - 1)
	s.totals.Bytes += sent.bytes
	s.totals.SocketErrors += int64(sent.local)
	if !sent.free {
		t.renew()
	}
	if o.Class == record.Refused && ctx.Err() != nil && o.Answered == 0 {
		return // the run was called off before this request could leave: unsent, not refused
	}
	s.config.Report(o)
}

func (s *sender) Close(context.Context) Totals {
	s.transport.close()
	return s.totals
}
