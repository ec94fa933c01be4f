package backend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gocql/gocql"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

const (
	leastRanges    = 256 // pieces of the ring, at least
	readersPerCPU  = 2   // per node: what one coordinator works on at once
	readAttempts   = 4   // of one range
	firstPause     = 250 * time.Millisecond
	rangeTimeout   = 20 * time.Second
	hurriedTimeout = 3 * time.Second
	maxReadErrors  = 8 // texts of failed ranges kept in full
)

// rangeReader reads one token range, all of it or an error; rows are appended to the buffer.
type rangeReader func(ctx context.Context, r tokenRange, rows []record.Row) ([]record.Row, error)

// reading is one read-back: ranges, who reads them, and what became of them.
type reading struct {
	ranges  []tokenRange
	readers int
	read    rangeReader
	pause   time.Duration // before the second attempt; doubles
	sink    func(record.Row) error
}

// Read implements Store. It reads by token ranges at consistency ALL, each range by the node that
// owns it. When a node is gone it reads at ONE, and an absent row is then not known to be absent.
func (k *keyspace) Read(ctx context.Context, _ Ask, sink func(record.Row) error) (ReadResult, error) {
	result := ReadResult{HasForeign: true, HasDuplicates: true, HasWriteTime: true, Consistency: "ALL"}
	level := gocql.All
	up := k.cluster.alive()
	if len(up) == 0 {
		return result, fmt.Errorf("read back keyspace %s: %w", k.name, errNoNode)
	}
	if len(up) < len(k.cluster.nodes) {
		level, result.Consistency, result.AbsentUnknown = gocql.One, "ONE", true
	}
	ranges, err := k.cluster.ring()
	if err != nil {
		return result, fmt.Errorf("read back keyspace %s: %w", k.name, err)
	}
	job := reading{
		ranges: ranges, readers: readersPerCPU * len(up), pause: firstPause, sink: sink,
		read: func(ctx context.Context, r tokenRange, rows []record.Row) ([]record.Row, error) {
			session, err := k.cluster.coordinator(ctx, r.Owner)
			if err != nil {
				return rows, err
			}
			return readRange(ctx, session, k.traces(), r, level, rows)
		},
	}
	result.Ranges, result.Failed, err = job.run(ctx)
	if err != nil {
		return result, fmt.Errorf("read back keyspace %s: %w", k.name, err)
	}
	return result, nil
}

// ring splits the token space by what the nodes said of themselves when the cluster was checked:
// a node that has died since still owns its ranges.
func (c *cqlCluster) ring() ([]tokenRange, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tokens := make([][]string, len(c.views))
	for i, v := range c.views {
		tokens[i] = v.Tokens
	}
	return ring(tokens, leastRanges)
}

// coordinator is the session of a range's owner, or of any node that runs when the owner does not.
func (c *cqlCluster) coordinator(ctx context.Context, owner int) (*gocql.Session, error) {
	up := c.alive()
	if len(up) == 0 {
		return nil, errNoNode
	}
	for _, i := range up {
		if i == owner {
			return c.session(ctx, owner)
		}
	}
	return c.session(ctx, up[owner%len(up)])
}

// readRange reads the row keys of one range with the time their columns were written.
func readRange(ctx context.Context, session *gocql.Session, table string, r tokenRange, level gocql.Consistency,
	rows []record.Row,
) ([]record.Row, error) {
	iter := session.Query("SELECT trace_id, span_id, span_hash, WRITETIME(start_time) FROM "+table+
		" WHERE token(trace_id) > ? AND token(trace_id) <= ?", r.After, r.Upto).
		Consistency(level).PageSize(pageRows).WithContext(ctx).Iter()
	var traceID []byte
	var span, hash, written int64
	into := []any{&traceID, &span, &hash, &written}
	for iter.Scan(into...) {
		high, low := words(traceID)
		rows = append(rows, record.Row{
			ID: trace.ID{High: high, Low: low, Span: uint64(span)}, Hash: hash, WriteTime: written,
		})
	}
	return rows, iter.Close()
}

// words splits a trace id. Ids of other lengths than 16 bytes are foreign; they keep their last
// bytes, so that two of them are told apart.
func words(id []byte) (high, low uint64) {
	var full [16]byte
	if len(id) > len(full) {
		id = id[len(id)-len(full):]
	}
	copy(full[len(full)-len(id):], id)
	return binary.BigEndian.Uint64(full[:8]), binary.BigEndian.Uint64(full[8:])
}

// run reads all ranges with several readers. A range is retried with growing pauses; when it
// stays unreadable it is counted and named, and none of its rows reach the sink. An error is one
// of the sink's or the context's: the ranges' own errors are in failed.
func (j reading) run(ctx context.Context) (record.Ranges, []string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan tokenRange)
	var readers sync.WaitGroup
	tally := tally{sink: j.sink}
	var owners owners
	for range max(j.readers, 1) {
		readers.Go(func() {
			var rows []record.Row
			for r := range work {
				var err error
				if rows, err = j.attempt(ctx, r, &owners, rows[:0]); err != nil {
					tally.failed(fmt.Sprintf("range %s of node %d", r, r.Owner+1), err)
				} else if err := tally.pass(rows); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, r := range interleave(j.ranges) {
		select {
		case work <- r:
		case <-ctx.Done():
		}
	}
	close(work)
	readers.Wait()
	return record.Ranges{Asked: len(j.ranges), Read: tally.read}, tally.texts(), context.Cause(ctx)
}

// attempt reads one range, several times if need be.
func (j reading) attempt(ctx context.Context, r tokenRange, owners *owners, rows []record.Row) ([]record.Row, error) {
	most, within := owners.patience(r.Owner)
	if most == 0 {
		return rows, errSkipped
	}
	read, err := again(ctx, most, j.pause, func(int) ([]record.Row, error) {
		bounded, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		var err error
		rows, err = j.read(bounded, r, rows[:0]) // its memory serves the next attempt too
		return rows, err
	}, func(err error) bool { return errors.Is(err, errNoNode) })
	owners.note(r.Owner, err)
	return read, err
}

// owners remembers how many ranges of a node in a row stayed unreadable. A node that is gone or
// stands still would hold every reader for the full patience on each of its ranges: soon each is
// tried once and shortly, then no more; one that is read makes up for all.
type owners struct {
	mu   sync.Mutex
	lost map[int]int
}

const (
	lostToHurry = 3 // from then on one short try
	lostToSkip  = 12
)

var errSkipped = fmt.Errorf("not tried: %d ranges of this node in a row could not be read", lostToSkip)

func (o *owners) note(owner int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost == nil {
		o.lost = map[int]int{}
	}
	if o.lost[owner]++; err == nil {
		o.lost[owner] = 0
	}
}

// patience says how often and how long to try a range of this node; no attempts: skip it.
func (o *owners) patience(owner int) (attempts int, within time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch lost := o.lost[owner]; {
	case lost >= lostToSkip:
		return 0, 0
	case lost >= lostToHurry:
		return 1, hurriedTimeout
	}
	return readAttempts, rangeTimeout
}

// interleave orders ranges so that neighbours in the list belong to different owners.
func interleave(ranges []tokenRange) []tokenRange {
	byOwner := map[int][]tokenRange{}
	owners := 0
	for _, r := range ranges {
		byOwner[r.Owner] = append(byOwner[r.Owner], r)
		owners = max(owners, r.Owner+1)
	}
	mixed := make([]tokenRange, 0, len(ranges))
	for i := 0; len(mixed) < len(ranges); i++ {
		for owner := range owners {
			if i < len(byOwner[owner]) {
				mixed = append(mixed, byOwner[owner][i])
			}
		}
	}
	return mixed
}

// tally passes rows to the sink, one at a time, and counts ranges.
type tally struct {
	mu     sync.Mutex
	sink   func(record.Row) error
	read   int
	errors []string
	lost   int
}

func (t *tally) pass(rows []record.Row) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, row := range rows {
		if err := t.sink(row); err != nil {
			return err
		}
	}
	t.read++
	return nil
}

func (t *tally) failed(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost++
	if len(t.errors) < maxReadErrors {
		t.errors = append(t.errors, fmt.Sprintf("%s: %v", what, err))
	}
}

// texts names the failed ranges, the first few in full.
func (t *tally) texts() []string {
	if more := t.lost - len(t.errors); more > 0 {
		return append(t.errors, fmt.Sprintf("%d more ranges", more))
	}
	return t.errors
}
