package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

// journal keeps the outcomes of one worker and phase as packed bytes, each as the difference to
// the one before: about 12 bytes for a request of 11 spans, a bit and a half for each span of a
// request of 64.
type journal struct {
	full     []piece // chunks on the shelf
	packed   []byte  // the last chunk
	outcomes int
	previous record.Outcome
}

// add appends an outcome; code is its number in a codebook, and full chunks go to the shelf.
func (j *journal) add(o record.Outcome, code uint64, away *shelf) {
	expected := j.previous.First + uint64(j.previous.Spans)
	b := binary.AppendVarint(j.packed, int64(o.First-expected))
	b = binary.AppendUvarint(b, uint64(o.Spans))
	b = binary.AppendVarint(b, o.Sent-j.previous.Sent)
	b = binary.AppendVarint(b, o.Sent-o.Intended)
	if o.Answered == 0 {
		b = append(b, byte(o.Class))
	} else {
		b = append(b, byte(o.Class)|answeredFlag)
		b = binary.AppendVarint(b, o.Answered-o.Sent)
	}
	b = binary.AppendUvarint(b, uint64(o.Attempts))
	j.packed = binary.AppendUvarint(b, code)
	if len(j.packed) > chunkBytes-longestOutcome {
		p, reusable := away.put(j.packed)
		if j.full = append(j.full, p); reusable {
			j.packed = j.packed[:0]
		} else {
			j.packed = make([]byte, 0, chunkBytes)
		}
	}
	j.outcomes++
	j.previous = o
}

const answeredFlag = 0x80

const (
	chunkBytes     = 16 << 10
	longestOutcome = 7*binary.MaxVarintLen64 + 1
)

// pieces are the packed bytes so far, in order; later outcomes don't change them.
func (j *journal) pieces() []piece {
	return append(slices.Clone(j.full), piece{kept: append([]byte{}, j.packed...), bytes: len(j.packed)})
}

// size is the sum of their lengths.
func (j *journal) size() int {
	bytes := len(j.packed)
	for _, p := range j.full {
		bytes += p.bytes
	}
	return bytes
}

// unpack appends the outcomes of a journal to all.
func unpack(all []record.Outcome, packed []byte, phase trace.Phase, worker uint32, codes []string,
) ([]record.Outcome, error) {
	r := reader{rest: packed}
	var previous record.Outcome
	for n := 0; len(r.rest) > 0; n++ {
		o := record.Outcome{Phase: phase, Worker: worker}
		o.First = previous.First + uint64(previous.Spans) + uint64(r.signed())
		o.Spans = uint32(r.unsigned(math.MaxUint32))
		o.Sent = previous.Sent + r.signed()
		o.Intended = o.Sent - r.signed()
		class := r.octet()
		if class&answeredFlag != 0 {
			o.Answered = o.Sent + r.signed()
		}
		o.Class = record.Class(class &^ answeredFlag)
		o.Attempts = uint16(r.unsigned(math.MaxUint16))
		code := r.unsigned(math.MaxUint32)
		switch {
		case r.err != nil:
			return all, fmt.Errorf("read outcome %d of worker %d: %w", n, worker, r.err)
		case o.Class > record.NoReply:
			return all, fmt.Errorf("read outcome %d of worker %d: class %d does not exist", n, worker, o.Class)
		case code >= uint64(len(codes)):
			return all, fmt.Errorf("read outcome %d of worker %d: code %d of %d", n, worker, code, len(codes))
		}
		o.Code = codes[code]
		all = append(all, o)
		previous = o
	}
	return all, nil
}

// reader takes varints off the front of bytes and keeps the first error.
type reader struct {
	rest []byte
	err  error
}

var errCut = errors.New("the data ends in the middle, or holds a number that is too large")

func (r *reader) signed() int64 {
	value, n := binary.Varint(r.rest)
	r.skip(n)
	return value
}

func (r *reader) unsigned(most uint64) uint64 {
	value, n := binary.Uvarint(r.rest)
	r.skip(n)
	if value > most {
		r.err = errCut
	}
	return value
}

func (r *reader) octet() byte {
	if len(r.rest) == 0 {
		r.err = errCut
		return 0
	}
	value := r.rest[0]
	r.rest = r.rest[1:]
	return value
}

func (r *reader) skip(n int) {
	if n <= 0 {
		r.err, r.rest = errCut, nil
		return
	}
	r.rest = r.rest[n:]
}

// maxCodes bounds the codebook: what comes after that many different reasons is "other reasons".
const maxCodes = 1000

// codebook numbers codes. Number 0 is the empty one.
type codebook struct {
	mu      sync.Mutex
	numbers map[string]uint64
	codes   []string
}

func newCodebook() *codebook {
	return &codebook{numbers: map[string]uint64{"": 0}, codes: []string{""}}
}

// number returns the code's number and the code as it is kept.
func (c *codebook) number(code string) (uint64, string) {
	if code == "" {
		return 0, ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.codes) >= maxCodes {
		if _, known := c.numbers[code]; !known {
			code = "other reasons"
		}
	}
	number, known := c.numbers[code]
	if !known {
		number = uint64(len(c.codes))
		c.numbers[code] = number
		c.codes = append(c.codes, code)
	}
	return number, code
}

func (c *codebook) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.codes...)
}
