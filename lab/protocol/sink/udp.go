package sink

import (
	"cmp"
	"context"
	"fmt"
	"net"
)

// openUDP starts a socket that reads packets: requests are packets, and nobody is answered. A packet
// that finds the kernel's buffer full is not seen here.
func (s *Sink) openUDP() error {
	addr, err := net.ResolveUDPAddr("udp4", cmp.Or(s.Listen, "127.0.0.1:0"))
	if err != nil {
		return fmt.Errorf("open the sink: %w", err)
	}
	conn, err := net.ListenUDP("udp4", addr)
	if err != nil {
		return fmt.Errorf("open the sink: %w", err)
	}
	_ = conn.SetReadBuffer(16 << 20) // as much as the kernel gives
	s.count = countThrift
	s.server, s.addr = conn, conn.LocalAddr().String()
	s.life, s.end = context.WithCancel(context.Background())
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		buffer := make([]byte, 1<<16)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			packet := buffer[:n]
			if s.Keep {
				packet = append([]byte(nil), packet...)
			}
			s.take(packet)
		}
	}()
	return nil
}
