package exporter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// udp sends packets.
type udp struct{ conn net.Conn }

func dialUDP(addr string) (destination, error) {
	conn, err := net.Dial("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("export spans to Jaeger: open a UDP socket to %s: %w", addr, err)
	}
	return udp{conn}, nil
}

func (u udp) send(deadline time.Time, body []byte) error {
	if err := u.conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	_, err := u.conn.Write(body)
	return err
}

func (u udp) close() error { return u.conn.Close() }

// poster posts bodies over one connection that is kept, with requests written and answers read
// in memory that is used again: net/http would allocate some kilobytes for each.
type poster struct {
	addr    string
	conn    net.Conn
	answers *bufio.Reader
	head    []byte
	fixed   int       // bytes of head before the length
	said    [200]byte // the beginning of an answer's body, for an error
}

const (
	connectWithin = 5 * time.Second
	answerWithin  = 30 * time.Second // unless the export's own deadline comes first
)

func newPoster(addr string) *poster {
	head := "POST /api/traces?format=jaeger.thrift HTTP/1.1\r\nHost: " + addr +
		"\r\nContent-Type: application/x-thrift\r\nContent-Length: "
	return &poster{addr: addr, head: []byte(head), fixed: len(head)}
}

// send posts a body. When a connection that was kept turns out to be closed before anything was
// answered, one new connection is tried: a receiver may close idle ones at any time. Should it have
// taken the first one all the same, it gets the same spans with the same ids again: still one each.
func (p *poster) send(deadline time.Time, body []byte) error {
	if deadline.IsZero() || time.Until(deadline) > answerWithin {
		deadline = time.Now().Add(answerWithin)
	}
	kept := p.conn != nil
	err := p.post(deadline, body)
	if kept && errors.Is(err, errClosedIdle) {
		err = p.post(deadline, body)
	}
	if err != nil {
		_ = p.close()
	}
	return err
}

var errClosedIdle = errors.New("the connection was closed before an answer")

func (p *poster) post(deadline time.Time, body []byte) error {
	if p.conn == nil {
		conn, err := net.DialTimeout("tcp", p.addr, min(connectWithin, time.Until(deadline)))
		if err != nil {
			return fmt.Errorf("connect to %s: %w", p.addr, err)
		}
		p.conn = conn
		if p.answers == nil {
			p.answers = bufio.NewReaderSize(nil, 4<<10)
		}
		p.answers.Reset(conn)
	}
	if err := p.conn.SetDeadline(deadline); err != nil {
		return p.lost(err)
	}
	p.head = append(strconv.AppendInt(p.head[:p.fixed], int64(len(body)), 10), "\r\n\r\n"...)
	if _, err := p.conn.Write(p.head); err != nil {
		return p.lost(err)
	}
	if _, err := p.conn.Write(body); err != nil {
		return p.lost(err)
	}
	return p.answer()
}

// lost closes the connection; what was sent over it may be known to have been for nothing.
func (p *poster) lost(err error) error {
	_ = p.close()
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("post to %s: %w", p.addr, err)
	}
	return fmt.Errorf("post to %s: %w: %w", p.addr, errClosedIdle, err)
}

// answer reads one answer, and leaves the connection ready for the next request.
func (p *poster) answer() error {
	line, err := p.answers.ReadSlice('\n')
	if err != nil {
		return p.lost(err)
	}
	code, ok := statusCode(line)
	if !ok {
		return fmt.Errorf("post to %s: the answer %.80q is not HTTP", p.addr, line)
	}
	length, chunked, keep := int64(-1), false, true
	for {
		if line, err = p.answers.ReadSlice('\n'); err != nil {
			return fmt.Errorf("post to %s: read the answer: %w", p.addr, err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case equalFold(name, "content-length"):
			if length, ok = number(value); !ok {
				return fmt.Errorf("post to %s: Content-Length is %.40q", p.addr, value)
			}
		case equalFold(name, "transfer-encoding"):
			chunked = true
		case equalFold(name, "connection") && equalFold(value, "close"):
			keep = false
		}
	}
	if code == 204 || code == 304 {
		length = 0
	}
	read := 0
	if !chunked && length >= 0 {
		read, _ = io.ReadFull(p.answers, p.said[:min(int(min(length, 1<<20)), len(p.said))])
		if _, err := p.answers.Discard(int(min(length, 1<<20)) - read); err != nil || length > 1<<20 {
			keep = false
		}
	} else {
		keep = false // an end that is not known in advance: a new connection is cheaper than to read it
		read, _ = p.answers.Read(p.said[:])
	}
	if !keep {
		_ = p.close()
	}
	if code < 200 || code > 299 {
		return fmt.Errorf("post to %s: HTTP %d: %s", p.addr, code, bytes.TrimSpace(p.said[:read]))
	}
	return nil
}

// statusCode reads "HTTP/1.1 202 Accepted".
func statusCode(line []byte) (code int, ok bool) {
	const version = "HTTP/1."
	if len(line) < 12 || string(line[:len(version)]) != version || line[8] != ' ' {
		return 0, false
	}
	n, ok := number(line[9:12])
	return int(n), ok && n >= 100
}

func number(digits []byte) (n int64, ok bool) {
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int64(d-'0')
	}
	return n, true
}

func equalFold(a []byte, lower string) bool {
	if len(a) != len(lower) {
		return false
	}
	for i := range a {
		c := a[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func (p *poster) close() error {
	if p.conn == nil {
		return nil
	}
	err := p.conn.Close()
	p.conn = nil
	return err
}
