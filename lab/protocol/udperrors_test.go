package protocol

import (
	"testing"

	"jaegerlab/lab/record"
)

func TestKernelCountersOfUDP(t *testing.T) {
	const text = "Ip: Forwarding\nIp: 1\n" +
		"Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n" +
		"Udp: 100 2 7 200 6 1 0 0 0\nUdpLite: InDatagrams\nUdpLite: 0\n"
	got, err := parseUDPErrors(text)
	want := record.UDPErrors{InErrors: 7, ReceiveFull: 6, SendFull: 1, NoPort: 2, Received: 100, Sent: 200}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	d := got.Since(record.UDPErrors{InErrors: 3, Received: 90})
	if d.InErrors != 4 || d.Received != 10 || d.ReceiveFull != 6 {
		t.Errorf("difference %+v", d)
	}
	for _, bad := range []string{"", "Udp: InErrors\n", "Udp: A B\nUdp: 1\n", "Udp: InErrors\nUdp: many\n"} {
		if _, err := parseUDPErrors(bad); err == nil {
			t.Errorf("%q was read without an error", bad)
		}
	}
}
