// Package frame is a gRPC codec for messages that are bytes already: the client's encoded
// requests go out as they are, the sink takes them in without decoding, and the read-back takes
// only ids out of what Jaeger answers.
package frame

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// Frame is one message.
type Frame struct{ Bytes []byte }

// Codec passes the bytes of *Frame. It calls itself "proto", since that is what the bytes are.
type Codec struct{}

// Marshal hands out the frame's own bytes, not a copy.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*Frame)
	if !ok {
		return nil, fmt.Errorf("encode gRPC message: %T is not a *frame.Frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.Bytes)}, nil
}

// Unmarshal copies the bytes into the frame, which keeps its capacity.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*Frame)
	if !ok {
		return fmt.Errorf("decode gRPC message: %T is not a *frame.Frame", v)
	}
	length := data.Len()
	if cap(f.Bytes) < length {
		f.Bytes = make([]byte, length)
	}
	f.Bytes = f.Bytes[:length]
	data.CopyTo(f.Bytes)
	return nil
}

// Name is the content subtype on the wire.
func (Codec) Name() string { return "proto" }
