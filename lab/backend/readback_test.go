package backend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

func TestRingCoversEveryTokenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 5).Draw(t, "nodes")
		tokens := make([][]string, nodes)
		owner := map[int64]int{}
		for i := range tokens {
			drawn := rapid.SliceOfNDistinct(rapid.Int64Range(math.MinInt64+1, math.MaxInt64-1), 1, 20, rapid.ID)
			for _, token := range drawn.Draw(t, fmt.Sprint("tokens", i)) {
				if _, twice := owner[token]; !twice {
					owner[token] = i
					tokens[i] = append(tokens[i], strconv.FormatInt(token, 10))
				}
			}
		}
		ranges, err := ring(tokens, 256)
		if err != nil {
			t.Fatal(err)
		}
		after, widest := int64(math.MinInt64), new(big.Int).Lsh(big.NewInt(1), 56)
		widest.Add(widest, big.NewInt(1))
		for _, r := range ranges {
			if r.After != after || r.Upto <= r.After {
				t.Fatalf("range %s follows %d", r, after)
			}
			if width := new(big.Int).Sub(big.NewInt(r.Upto), big.NewInt(r.After)); width.Cmp(widest) > 0 {
				t.Fatalf("range %s is wider than a 256th of the space", r)
			}
			if want, marked := owner[r.Upto]; marked && want != r.Owner {
				t.Fatalf("range %s belongs to node %d, its token to node %d", r, r.Owner, want)
			}
			after = r.Upto
		}
		if after != math.MaxInt64 || len(ranges) < 256 {
			t.Fatalf("%d ranges end at %d", len(ranges), after)
		}
		if first, last := ranges[0], ranges[len(ranges)-1]; first.Owner != last.Owner {
			t.Fatalf("what lies above the last token belongs to node %d, below the first to node %d", last.Owner, first.Owner)
		}
	})
}

func TestRingRefusesWhatIsNoMurmur3Ring(t *testing.T) {
	for _, tokens := range [][][]string{nil, {{}}, {{"00ff"}, {"1"}}} {
		if ranges, err := ring(tokens, 256); err == nil {
			t.Errorf("ring(%q) = %d ranges", tokens, len(ranges))
		}
	}
}

// plan is ranges that a fake reader finds its rows by: After is the index.
func plan(n int) []tokenRange {
	ranges := make([]tokenRange, n)
	for i := range ranges {
		ranges[i] = tokenRange{After: int64(i), Upto: int64(i) + 1, Owner: i % 2}
	}
	return ranges
}

// rowsOf appends k rows of range i, each with an id of its own.
func rowsOf(i int64, k int, rows []record.Row) []record.Row {
	for j := range k {
		rows = append(rows, record.Row{ID: trace.ID{High: 1, Low: uint64(i), Span: uint64(j)}, Hash: 7, WriteTime: 9})
	}
	return rows
}

// Case 20: a range that fails once is read again, one that stays unreadable is counted and named,
// and none of its rows are passed.
func TestRangesThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries [256]atomic.Int32
		seen := map[trace.ID]int{}
		job := reading{ranges: plan(256), readers: 4, pause: firstPause,
			sink: func(row record.Row) error { seen[row.ID]++; return nil },
			read: func(_ context.Context, r tokenRange, rows []record.Row) ([]record.Row, error) {
				try := tries[r.After].Add(1)
				switch {
				case r.After == 17: // never
					return rowsOf(r.After, 2, rows), errors.New("timed out at 2 of 3 pages")
				case r.After%50 == 3 && try < 3: // the third time
					return rowsOf(r.After, 1, rows), errors.New("one replica did not answer")
				}
				return rowsOf(r.After, 3, rows), nil
			}}
		ranges, failed, err := job.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ranges != (record.Ranges{Asked: 256, Read: 255}) {
			t.Errorf("ranges = %+v", ranges)
		}
		if len(failed) != 1 || !strings.Contains(failed[0], "range (17, 18] of node 2: timed out at 2 of 3 pages") {
			t.Errorf("failed = %q", failed)
		}
		if len(seen) != 255*3 {
			t.Errorf("%d rows passed; want %d", len(seen), 255*3)
		}
		for id, n := range seen {
			if n != 1 || id.Low == 17 {
				t.Errorf("row %s was passed %d times", id, n)
			}
		}
		if n := tries[17].Load(); n != readAttempts {
			t.Errorf("the unreadable range was tried %d times", n)
		}
	})
}

func TestManyFailedRangesAreSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		job := reading{ranges: plan(100), readers: 1, pause: firstPause, sink: func(record.Row) error { return nil },
			read: func(context.Context, tokenRange, []record.Row) ([]record.Row, error) {
				tries++
				return nil, errors.New("gone")
			}}
		ranges, failed, err := job.run(t.Context())
		if want := 2 * (lostToSkip + lostToHurry*(readAttempts-1)); tries != want {
			t.Errorf("%d reads of 100 ranges of two nodes that are gone; want %d", tries, want)
		}
		if err != nil || ranges.Read != 0 || len(failed) != maxReadErrors+1 || failed[maxReadErrors] != "92 more ranges" {
			t.Errorf("run() = %+v, %q, %v", ranges, failed, err)
		}
	})
}

// A node that stands still answers nothing: the read ends all the same, and the other node's rows
// are all there.
func TestNodeThatStandsStillDoesNotHoldTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, rows := time.Now(), 0
		job := reading{ranges: plan(256), readers: 4, pause: firstPause, sink: func(record.Row) error { rows++; return nil },
			read: func(ctx context.Context, r tokenRange, into []record.Row) ([]record.Row, error) {
				if r.Owner == 1 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return rowsOf(r.After, 3, into), nil
			}}
		ranges, _, err := job.run(t.Context())
		if err != nil || ranges.Read != 128 || rows != 128*3 {
			t.Errorf("run() = %+v, %d rows, %v", ranges, rows, err)
		}
		if took := time.Since(began); took > 3*time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestSinkIsNeverCalledAtOnceAndItsErrorEndsTheRead(t *testing.T) {
	var inside atomic.Int32
	full := errors.New("disk full")
	rows := 0
	job := reading{ranges: plan(256), readers: 8, sink: func(record.Row) error {
		if inside.Add(1) != 1 {
			t.Error("two rows at once")
		}
		defer inside.Add(-1)
		if rows++; rows == 100 {
			return full
		}
		return nil
	}, read: func(_ context.Context, r tokenRange, rows []record.Row) ([]record.Row, error) {
		return rowsOf(r.After, 10, rows), nil
	}}
	if _, _, err := job.run(t.Context()); !errors.Is(err, full) {
		t.Errorf("run() = %v; want the sink's error", err)
	}
}

func TestCancelledReadEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	job := reading{ranges: plan(256), readers: 2, pause: firstPause, sink: func(record.Row) error { return nil },
		read: func(ctx context.Context, _ tokenRange, _ []record.Row) ([]record.Row, error) {
			once.Do(cancel)
			<-ctx.Done()
			return nil, ctx.Err()
		}}
	if _, _, err := job.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("run() = %v", err)
	}
}

func TestIdsOfOtherLengthsStayApart(t *testing.T) {
	for _, c := range []struct {
		id        []byte
		high, low uint64
	}{
		{[]byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2}, 1, 2},
		{[]byte{5}, 0, 5},
		{nil, 0, 0},
		{[]byte{9, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2}, 1, 2},
	} {
		if high, low := words(c.id); high != c.high || low != c.low {
			t.Errorf("words(%x) = %d, %d; want %d, %d", c.id, high, low, c.high, c.low)
		}
	}
}

// A read of 1,000,000 rows takes at most 64 MiB: it holds what its readers are at, not the rows.
func TestReadOfAMillionRowsStaysSmall(t *testing.T) {
	const rows, ranges, bound = 1_000_000, 256, 64 << 20
	passed, peak := 0, uint64(0)
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	before := memory.HeapAlloc
	job := reading{ranges: plan(ranges), readers: 8, sink: func(record.Row) error {
		if passed++; passed%50_000 == 0 {
			runtime.ReadMemStats(&memory)
			peak = max(peak, memory.HeapAlloc)
		}
		return nil
	}, read: func(_ context.Context, r tokenRange, into []record.Row) ([]record.Row, error) {
		return rowsOf(r.After, rows/ranges, into), nil
	}}
	if _, _, err := job.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	used := int64(peak) - int64(before)
	t.Logf("%d rows: %.1f MiB at most", passed, float64(used)/(1<<20))
	if passed < rows*99/100 || used > bound {
		t.Errorf("%d rows took %d bytes; at most %d", passed, used, bound)
	}
}

func BenchmarkRead1MRows(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		job := reading{ranges: plan(256), readers: 8, sink: func(record.Row) error { return nil },
			read: func(_ context.Context, r tokenRange, into []record.Row) ([]record.Row, error) {
				return rowsOf(r.After, 1_000_000/256, into), nil
			}}
		if _, _, err := job.run(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
