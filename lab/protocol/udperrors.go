package protocol

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// UDPErrors are the kernel's counters of UDP packets since the start of the network namespace
// that the reader is in: a container has its own, plain processes share the machine's.
type UDPErrors struct {
	InErrors    int64 `json:"in_errors"`    // packets not delivered to a socket, for any reason but a closed port
	ReceiveFull int64 `json:"receive_full"` // of these: the receiver's buffer was full
	SendFull    int64 `json:"send_full"`    // packets not sent: the sender's buffer was full
	NoPort      int64 `json:"no_port"`      // nobody listened
	Received    int64 `json:"received"`     // datagrams delivered
	Sent        int64 `json:"sent"`         // datagrams sent
}

// Since returns how far the counters moved.
func (u UDPErrors) Since(before UDPErrors) UDPErrors {
	return UDPErrors{
		InErrors: u.InErrors - before.InErrors, ReceiveFull: u.ReceiveFull - before.ReceiveFull,
		SendFull: u.SendFull - before.SendFull, NoPort: u.NoPort - before.NoPort,
		Received: u.Received - before.Received, Sent: u.Sent - before.Sent,
	}
}

// ReadUDPErrors reads Linux's counters; other systems have no such file, which is an error.
func ReadUDPErrors() (UDPErrors, error) {
	const file = "/proc/net/snmp"
	text, err := os.ReadFile(file)
	if err != nil {
		return UDPErrors{}, fmt.Errorf("read the kernel's UDP counters: %w", err)
	}
	counters, err := parseUDPErrors(string(text))
	if err != nil {
		return UDPErrors{}, fmt.Errorf("read the kernel's UDP counters in %s: %w", file, err)
	}
	return counters, nil
}

// parseUDPErrors reads the two lines "Udp: names" and "Udp: values".
func parseUDPErrors(text string) (u UDPErrors, err error) {
	var names []string
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "Udp:")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if names == nil {
			names = fields
			continue
		}
		if len(fields) != len(names) {
			return u, fmt.Errorf("%d names and %d values", len(names), len(fields))
		}
		places := map[string]*int64{"InErrors": &u.InErrors, "RcvbufErrors": &u.ReceiveFull, "SndbufErrors": &u.SendFull,
			"NoPorts": &u.NoPort, "InDatagrams": &u.Received, "OutDatagrams": &u.Sent}
		for i, name := range names {
			if place := places[name]; place != nil {
				if *place, err = strconv.ParseInt(fields[i], 10, 64); err != nil {
					return u, err
				}
			}
		}
		return u, nil
	}
	return u, fmt.Errorf("no pair of lines that begin with %q", "Udp:")
}
