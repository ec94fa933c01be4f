package backend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// The few parts of the CQL binary protocol (version 4, section 2 and 4) that an OPTIONS request
// needs. A driver hides what the server answers to it, and that answer is the evidence of which
// engine it is.
const (
	cqlVersion      = 4
	cqlResponse     = 0x80
	opcodeError     = 0x00
	opcodeOptions   = 0x05
	opcodeSupported = 0x06
	cqlHeaderBytes  = 9
	maxAnswerBytes  = 1 << 20
)

// askOptions sends OPTIONS in one protocol version and returns what the server offers. It does
// not wait longer than the context: a listener that accepts and stays silent is an error.
func askOptions(ctx context.Context, addr string, version byte) (map[string][]string, error) {
	started := time.Now()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its CQL options: connect: %w", addr, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request := [cqlHeaderBytes]byte{version, 0, 0, 1, opcodeOptions}
	if _, err := conn.Write(request[:]); err != nil {
		return nil, fmt.Errorf("ask %s for its CQL options: send: %w", addr, err)
	}
	opcode, body, err := readFrame(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("ask %s for its CQL options: it accepts connections but gave no answer in %s: %w",
			addr, time.Since(started).Round(10*time.Millisecond), context.DeadlineExceeded)
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s for its CQL options: read the answer: %w", addr, err)
	}
	switch opcode {
	case opcodeSupported:
		options, err := parseSupported(body)
		if err != nil {
			return nil, fmt.Errorf("ask %s for its CQL options: read the answer: %w", addr, err)
		}
		return options, nil
	case opcodeError:
		return nil, fmt.Errorf("ask %s for its CQL options in protocol version %d: the server refused: %s",
			addr, version, parseError(body))
	}
	return nil, fmt.Errorf("ask %s for its CQL options: the answer has opcode %#x, not SUPPORTED: this is no CQL server",
		addr, opcode)
}

func readFrame(r io.Reader) (opcode byte, body []byte, err error) {
	var header [cqlHeaderBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	if header[0]&cqlResponse == 0 {
		return 0, nil, fmt.Errorf("first byte %#x is no CQL response", header[0])
	}
	length := binary.BigEndian.Uint32(header[5:])
	if length > maxAnswerBytes {
		return 0, nil, fmt.Errorf("the answer says it has %d bytes, more than the %d this reads", length, maxAnswerBytes)
	}
	body = make([]byte, length)
	_, err = io.ReadFull(r, body)
	return header[4], body, err
}

// parseSupported decodes a [string multimap].
func parseSupported(body []byte) (map[string][]string, error) {
	r := cqlReader{rest: body}
	options := map[string][]string{}
	for range r.short() {
		key := r.text()
		for range r.short() {
			options[key] = append(options[key], r.text())
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return options, r.err
}

// parseError decodes code and message of an ERROR body.
func parseError(body []byte) string {
	if len(body) < 4 {
		return fmt.Sprintf("an ERROR of %d bytes", len(body))
	}
	r := cqlReader{rest: body[4:]}
	text := r.text()
	if r.err != nil {
		text = "a message that can't be read"
	}
	return fmt.Sprintf("error %#04x: %s", binary.BigEndian.Uint32(body), strings.TrimSpace(text))
}

// cqlReader reads [short] and [string]; after an error it gives zeros.
type cqlReader struct {
	rest []byte
	err  error
}

var errShortBody = errors.New("the body ends in the middle of a value")

func (r *cqlReader) take(n int) []byte {
	if r.err != nil || len(r.rest) < n {
		r.err = errShortBody
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *cqlReader) short() int {
	b := r.take(2)
	if b == nil {
		return 0
	}
	return int(binary.BigEndian.Uint16(b))
}

func (r *cqlReader) text() string { return string(r.take(r.short())) }
