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
	parts     []part
	transport transport
	random    *rand.Rand
	totals    Totals
}

// openSender plans the requests of a trace first: what can't be sent is refused before anything is opened.
func openSender(name string, encode encoder, config Config, connect func() (transport, error)) (Client, error) {
	parts, err := plan(encode, name, config.Content(), config.Numbering.Width)
	if err != nil {
		return nil, err
	}
	t, err := connect()
	if err != nil {
		return nil, err
	}
	stream := uint64(config.Worker)<<1 | uint64(config.Phase)
	return &sender{config: config, parts: parts, transport: t, random: rand.New(rand.NewPCG(config.Seed, stream))}, nil
}

func (s *sender) Send(ctx context.Context, seq uint64, startUS int64) {
	for _, p := range s.parts {
		if ctx.Err() != nil {
			return
		}
		first := seq*uint64(s.config.Numbering.Width) + uint64(p.position)
		p.fill(s.config.Numbering, s.config.Phase, s.config.Worker, first, startUS+int64(p.position))
		s.send(ctx, p.template, first)
	}
}

func (s *sender) send(ctx context.Context, t *template, first uint64) {
	bounded, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	o := record.Outcome{Phase: s.config.Phase, Worker: s.config.Worker, First: first, Spans: uint32(len(t.marks))}
	attempts, free := deliver(bounded, s.transport, t.bytes, newPauses(s.random), &o)
	s.totals.Requests++
	s.totals.Retries += int64(attempts - 1)
	s.totals.Bytes += int64(attempts) * int64(len(t.bytes))
	if !free {
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
