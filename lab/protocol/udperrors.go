package protocol

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"jaegerlab/lab/record"
)

// ReadUDPErrors reads Linux's counters of this process's network namespace since its start. Other
// systems have no such file, which is an error.
func ReadUDPErrors() (record.UDPErrors, error) {
	const file = "/proc/net/snmp"
	text, err := os.ReadFile(file)
	if err != nil {
		return record.UDPErrors{}, fmt.Errorf("read the kernel's UDP counters: %w", err)
	}
	counters, err := parseUDPErrors(string(text))
	if err != nil {
		return record.UDPErrors{}, fmt.Errorf("read the kernel's UDP counters in %s: %w", file, err)
	}
	return counters, nil
}

// parseUDPErrors reads the two lines "Udp: names" and "Udp: values".
func parseUDPErrors(text string) (u record.UDPErrors, err error) {
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
