package protocol

import (
	"context"
	"fmt"
	"net"
)

// MaxPacketBytes is what one UDP packet holds: Jaeger's receivers read at most 65,000 bytes.
const MaxPacketBytes = 65_000

// thriftUDP sends Jaeger's compact thrift in UDP packets, as Jaeger's clients did to their agent.
// Nobody answers: what was sent is "no reply", and what the kernel dropped shows in the kernel's
// counters only (ReadUDPErrors).
func thriftUDP() Protocol {
	w := wire{client: "thrift-udp", encode: encodeEmitBatch, maxBytes: MaxPacketBytes, maxSpans: MaxRequestSpans}
	return Protocol{
		Name: w.client,
		Port: "thrift-udp",
		UDP:  true,
		ReceiverV2: map[string]any{"jaeger": map[string]any{"protocols": map[string]any{
			"thrift_compact": map[string]any{"endpoint": "${ip}:${port.thrift-udp}"},
		}}},
		RetryRule: "never: UDP has no answers; a packet that this machine would not send is refused",
		Open: func(addr string, config Config) (Client, error) {
			return openSender(w, config, func() (transport, error) { return dialUDP(addr) })
		},
	}
}

type udpTransport struct{ conn net.Conn }

func dialUDP(addr string) (transport, error) {
	conn, err := net.Dial("udp4", addr)
	if err != nil {
		return nil, fmt.Errorf("open a UDP socket to %s: %w", addr, err)
	}
	return &udpTransport{conn}, nil
}

func (u *udpTransport) close() { _ = u.conn.Close() }

// attempt sends one packet. An error means that this packet was not sent; "connection refused" is
// the kernel's word on an earlier one, which found nobody listening.
func (u *udpTransport) attempt(_ context.Context, body []byte, _ int) answer {
	if _, err := u.conn.Write(body); err != nil {
		return answer{verdict: unreached, code: reason("not sent", err.Error())}
	}
	return answer{verdict: silent}
}
