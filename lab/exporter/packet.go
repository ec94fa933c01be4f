package exporter

import "encoding/binary"

// packet is a message under way: spans behind a room where the message's beginning fits. The
// beginning holds the number of spans, so it is written last, right before the first span.
type packet struct {
	encoder
	most   int
	header []byte // the process
	room   int    // where spans begin
	spans  int
	last   []byte // the span that did not fit any more
}

// Beginnings and ends of messages: Agent.emitBatch of agent.thrift, a one-way call, in the compact
// protocol, and the struct Batch of jaeger.thrift in the binary one.
const (
	emitBatch = "\x82\x81\x00\x09emitBatch" + "\x1c" + "\x1c" // arguments: field 1, a struct; Batch: field 1, a struct

	longestFront = len(emitBatch) + 8 // and the list's field, type and length
)

// begin starts a packet of spans of a process.
func (p *packet) begin(header []byte) {
	p.header, p.room = header, longestFront+len(header)
	p.reset()
}

func (p *packet) reset() {
	for cap(p.bytes) < p.room {
		p.bytes = append(p.bytes[:cap(p.bytes)], 0)
	}
	p.bytes, p.spans = p.bytes[:p.room], 0
}

// size is that of the message with all spans so far.
func (p *packet) size() int { return p.front() + len(p.bytes) - p.room + p.end() }

// front is the size of the message's beginning.
func (p *packet) front() int {
	switch {
	case !p.compact:
		return 3 + len(p.header) + 8
	case p.spans < 15:
		return len(emitBatch) + len(p.header) + 2
	default:
		return len(emitBatch) + len(p.header) + 2 + uvarintBytes(uint64(p.spans))
	}
}

func (p *packet) end() int {
	if p.compact {
		return 2 // of Batch and of the arguments
	}
	return 1
}

func uvarintBytes(value uint64) (n int) {
	for n = 1; value >= 0x80; n++ {
		value >>= 7
	}
	return n
}

// takeLast removes the span that begins at before; putLast adds it again.
func (p *packet) takeLast(before int) {
	p.last = append(p.last[:0], p.bytes[before:]...)
	p.bytes = p.bytes[:before]
	p.spans--
}

func (p *packet) putLast() {
	p.bytes = append(p.bytes, p.last...)
	p.spans++
}

// finish writes beginning and end around the spans and returns the message, valid until reset.
func (p *packet) finish() []byte {
	start := p.room - p.front()
	front := p.bytes[start:start] // it ends where the spans begin
	if p.compact {
		front = append(append(front, emitBatch...), p.header...)
		front = append(front, 0x19) // Batch: field 2, a list
		if p.spans < 15 {
			_ = append(front, byte(p.spans)<<4|compactStruct)
		} else {
			_ = binary.AppendUvarint(append(front, 0xf0|compactStruct), uint64(p.spans))
		}
	} else {
		front = append(append(front, thriftStruct, 0, 1), p.header...)
		front = append(front, thriftList, 0, 2, thriftStruct)
		_ = binary.BigEndian.AppendUint32(front, uint32(p.spans))
	}
	p.bytes = append(p.bytes, "\x00\x00"[:p.end()]...)
	return p.bytes[start:]
}
