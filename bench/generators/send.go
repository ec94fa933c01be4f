package generators

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// Figures are what a bare sender says of itself, in one line of JSON.
type Figures struct {
	Requests         int64   `json:"requests"`
	AllocsPerRequest float64 `json:"allocs_per_request"`
}

// Send is the program of a bare sender: the lab's client without a load node around it, or, without
// patching, the same bytes again and again. It sends until ctx ends and then writes its figures.
func Send(ctx context.Context, client, target string, traces int, patch bool, out io.Writer) error {
	p, err := protocol.Get(client)
	if err != nil {
		return err
	}
	config := protocol.Config{Numbering: trace.New(1, children), Load: Load(traces), Seed: 1, Timeout: 30 * time.Second,
		Frozen: !patch, Report: func(record.Outcome) {}}
	var clients []protocol.Client
	for worker := range workers {
		config.Worker = uint32(worker)
		c, err := p.Open(target, config)
		if err != nil {
			return fmt.Errorf("send without a load node: %w", err)
		}
		clients = append(clients, c)
	}
	var before, after runtime.MemStats
	var working sync.WaitGroup
	runtime.ReadMemStats(&before)
	for _, c := range clients {
		working.Go(func() {
			for seq := uint64(0); ctx.Err() == nil; seq += uint64(traces) {
				c.Send(ctx, protocol.Work{Seq: seq, StartUS: time.Now().UnixMicro()})
			}
		})
	}
	working.Wait()
	runtime.ReadMemStats(&after)
	var totals protocol.Totals
	for _, c := range clients {
		totals = totals.Add(c.Close(context.WithoutCancel(ctx)))
	}
	figures := Figures{Requests: totals.Requests}
	if totals.Requests > 0 {
		figures.AllocsPerRequest = float64(after.Mallocs-before.Mallocs) / float64(totals.Requests)
	}
	return json.NewEncoder(out).Encode(figures)
}
