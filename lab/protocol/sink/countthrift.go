package sink

import "encoding/binary"

// countThrift counts the spans of a thrift Batch (binary protocol) or of an emitBatch packet
// (compact): it walks over the Process and reads the length of the list behind it. What is
// neither counts nothing.
func countThrift(message []byte) int64 {
	if len(message) > 0 && message[0] == 0x82 {
		return countPacket(message)
	}
	w := walker{rest: message}
	if w.fieldBinary() != (field{12, 1}) { // Batch.process
		return 0
	}
	w.structBinary()
	if w.fieldBinary() != (field{15, 2}) || w.take(1) == nil { // Batch.spans
		return 0
	}
	return int64(w.u32())
}

type field struct {
	kind   byte
	number int16
}

// walker reads off the front; after anything impossible it is empty.
type walker struct{ rest []byte }

func (w *walker) take(n int) []byte {
	if n < 0 || n > len(w.rest) {
		w.rest = nil
		return nil
	}
	taken := w.rest[:n]
	w.rest = w.rest[n:]
	return taken
}

func (w *walker) octet() byte {
	if b := w.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (w *walker) u32() uint32 {
	if b := w.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (w *walker) fieldBinary() field {
	kind := w.octet()
	if kind == 0 {
		return field{}
	}
	if b := w.take(2); b != nil {
		return field{kind, int16(binary.BigEndian.Uint16(b))}
	}
	return field{}
}

func (w *walker) structBinary() {
	for f := w.fieldBinary(); f.kind != 0; f = w.fieldBinary() {
		w.valueBinary(f.kind)
	}
}

func (w *walker) valueBinary(kind byte) {
	switch kind {
	case 2:
		w.take(1)
	case 8:
		w.take(4)
	case 4, 10:
		w.take(8)
	case 11:
		w.take(int(w.u32()))
	case 12:
		w.structBinary()
	case 15:
		element := w.octet()
		for range w.u32() {
			if w.rest == nil {
				return
			}
			w.valueBinary(element)
		}
	default:
		w.rest = nil
	}
}

func countPacket(message []byte) int64 {
	w := walker{rest: message}
	w.take(2)
	w.uvarint()
	w.take(int(w.uvarint())) // the method's name
	w.take(2)                // arguments: field 1, a struct; Batch: field 1, a struct
	w.structCompact()
	if w.octet() != 0x19 { // Batch.spans
		return 0
	}
	head := w.octet()
	if head>>4 < 15 {
		return int64(head >> 4)
	}
	return int64(w.uvarint())
}

func (w *walker) uvarint() uint64 {
	value, n := binary.Uvarint(w.rest)
	if n <= 0 {
		w.rest = nil
		return 0
	}
	w.rest = w.rest[n:]
	return value
}

func (w *walker) structCompact() {
	for head := w.octet(); head != 0; head = w.octet() {
		if head>>4 == 0 {
			w.uvarint() // a field number that is not close to the one before
		}
		w.valueCompact(head & 15)
	}
}

func (w *walker) valueCompact(kind byte) {
	switch kind {
	case 1, 2: // a boolean is its field's type
	case 3:
		w.take(1)
	case 4, 5, 6:
		w.uvarint()
	case 7:
		w.take(8)
	case 8:
		w.take(int(w.uvarint()))
	case 9:
		head := w.octet()
		length := uint64(head >> 4)
		if length == 15 {
			length = w.uvarint()
		}
		for range length {
			if w.rest == nil {
				return
			}
			w.valueCompact(head & 15)
		}
	case 12:
		w.structCompact()
	default:
		w.rest = nil
	}
}
