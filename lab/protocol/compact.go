package protocol

import (
	"encoding/binary"

	"jaegerlab/lab/trace"
)

// Thrift's compact protocol writes numbers as varints, and a field's number as the difference to
// the one before. Ids keep their width because their top two bits differ: ten bytes. Times are
// written in eight bytes, which hold every microsecond until the year 3111.
const (
	compactTrue   = 1
	compactFalse  = 2
	compactI32    = 5
	compactI64    = 6
	compactBinary = 8
	compactList   = 9
	compactStruct = 12

	compactProtocol = 0x82
	compactOneway   = 0x01 | 4<<5 // version 1, message type ONEWAY

	compactIDBytes   = 10
	compactTimeBytes = 8
)

func zigzag(value int64) uint64 { return uint64(value<<1) ^ uint64(value>>63) }

func putCompactID(dst []byte, id uint64) { putVarint(dst[:compactIDBytes], zigzag(int64(id))) }

func putCompactTime(dst []byte, us int64) { putVarint(dst[:compactTimeBytes], zigzag(us)) }

// putVarint fills dst with a varint; a small value is written longer than it needs to be.
func putVarint(dst []byte, value uint64) {
	last := len(dst) - 1
	for i := range dst {
		dst[i] = byte(value) | 0x80
		value >>= 7
	}
	dst[last] &^= 0x80
}

// compactWriter appends thrift compact.
type compactWriter struct {
	bytes  []byte
	number int16   // of the field before in the struct that is open
	outer  []int16 // the same of the structs around it
}

func (w *compactWriter) field(kind byte, number int16) {
	w.bytes = append(w.bytes, byte(number-w.number)<<4|kind)
	w.number = number
}

func (w *compactWriter) begin(number int16) {
	w.field(compactStruct, number)
	w.element()
}

func (w *compactWriter) element() {
	w.outer = append(w.outer, w.number)
	w.number = 0
}

func (w *compactWriter) stop() {
	w.bytes = append(w.bytes, thriftStop)
	last := len(w.outer) - 1
	w.number, w.outer = w.outer[last], w.outer[:last]
}

func (w *compactWriter) list(number int16, length int) {
	w.field(compactList, number)
	if length < 15 {
		w.bytes = append(w.bytes, byte(length)<<4|compactStruct)
		return
	}
	w.bytes = binary.AppendUvarint(append(w.bytes, 0xf0|compactStruct), uint64(length))
}

func (w *compactWriter) i32(number int16, value int32) {
	w.field(compactI32, number)
	w.bytes = binary.AppendVarint(w.bytes, int64(value))
}

func (w *compactWriter) i64(number int16, value int64) {
	w.field(compactI64, number)
	w.bytes = binary.AppendVarint(w.bytes, value)
}

func (w *compactWriter) room(number int16, bytes int) int {
	w.field(compactI64, number)
	w.bytes = append(w.bytes, make([]byte, bytes)...)
	return len(w.bytes) - bytes
}

func (w *compactWriter) id(number int16) int   { return w.room(number, compactIDBytes) }
func (w *compactWriter) time(number int16) int { return w.room(number, compactTimeBytes) }

func (w *compactWriter) text(number int16, value string) int {
	w.field(compactBinary, number)
	w.bytes = binary.AppendUvarint(w.bytes, uint64(len(value)))
	w.bytes = append(w.bytes, value...)
	return len(w.bytes)
}

func (w *compactWriter) flag(number int16, value bool) {
	if value {
		w.field(compactTrue, number)
		return
	}
	w.field(compactFalse, number)
}

// encodeEmitBatch encodes the one-way call Agent.emitBatch of agent.thrift, which is what a UDP
// packet holds.
func encodeEmitBatch(content trace.Content, width int, first uint64, count int) *template {
	const method = "emitBatch"
	t := &template{format: compactFormat, content: content, service: none}
	w := &compactWriter{bytes: []byte{compactProtocol, compactOneway, 0, byte(len(method))}}
	w.bytes = append(w.bytes, method...)
	w.element() // the arguments
	w.begin(1)  // emitBatch.batch
	t.batch(w, width, first, count)
	w.stop()
	t.bytes = w.bytes
	return t
}
