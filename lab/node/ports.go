package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	psnet "github.com/shirou/gopsutil/v4/net"
	psprocess "github.com/shirou/gopsutil/v4/process"
)

// pickPorts gives every port of a program its number on the program's loopback address: the
// fixed one, which must be free, or a free one. All are held until the last is picked, so that
// none is given twice; used are ports of nodes that may not have bound theirs yet.
func pickPorts(p Program, used map[int]bool) (map[string]int, error) {
	var held []io.Closer
	defer func() {
		for _, listener := range held {
			_ = listener.Close()
		}
	}()
	ports := map[string]int{}
	for _, port := range p.Ports {
		for range 100 {
			listener, number, err := holdPort(p.Loopback, port)
			if err != nil {
				return nil, portError(p.Loopback, port, err)
			}
			held = append(held, listener)
			if port.Local == 0 && used[number] {
				continue
			}
			ports[port.Name] = number
			break
		}
		if ports[port.Name] == 0 {
			return nil, fmt.Errorf("find a free port for %s on %s: none left", port.Name, p.Loopback)
		}
	}
	return ports, nil
}

func holdPort(loopback string, port Port) (io.Closer, int, error) {
	addr := net.JoinHostPort(loopback, strconv.Itoa(port.Local))
	if port.UDP {
		socket, err := net.ListenPacket("udp4", addr)
		if err != nil {
			return nil, 0, err
		}
		return socket, socket.LocalAddr().(*net.UDPAddr).Port, nil
	}
	listener, err := net.Listen("tcp4", addr)
	if err != nil {
		return nil, 0, err
	}
	return listener, listener.Addr().(*net.TCPAddr).Port, nil
}

func portError(loopback string, port Port, err error) error {
	addr := net.JoinHostPort(loopback, strconv.Itoa(port.Local))
	if port.Local != 0 && errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("take port %s (%s): taken by %s", addr, port.Name, portOwner(port))
	}
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("take port %s (%s): this machine has no loopback address %s "+
			"(macOS has only 127.0.0.1: use one node, or Docker)", addr, port.Name, loopback)
	}
	return fmt.Errorf("take port %s (%s): %w", addr, port.Name, err)
}

// portOwner names who listens on a fixed port: pid and command, as far as this user may see.
func portOwner(port Port) string {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	kind := "tcp"
	if port.UDP {
		kind = "udp"
	}
	connections, err := psnet.ConnectionsWithContext(ctx, kind)
	if err != nil {
		return "another program (its owner can't be read: " + err.Error() + ")"
	}
	for _, connection := range connections {
		listens := port.UDP || connection.Status == "LISTEN"
		if !listens || int(connection.Laddr.Port) != port.Local || connection.Pid == 0 {
			continue
		}
		return describeProcess(ctx, int(connection.Pid))
	}
	return "another program (its owner can't be seen by this user)"
}

func describeProcess(ctx context.Context, pid int) string {
	process, err := psprocess.NewProcessWithContext(ctx, int32(pid))
	if err != nil {
		return fmt.Sprintf("pid %d", pid)
	}
	command, err := process.CmdlineWithContext(ctx)
	if err != nil || command == "" {
		command, _ = process.NameWithContext(ctx)
	}
	if len(command) > 120 {
		command = command[:120] + "..."
	}
	return fmt.Sprintf("pid %d (%s)", pid, command)
}

// saysAddressInUse recognises the many spellings of EADDRINUSE in a program's last lines.
func saysAddressInUse(log string) bool {
	log = strings.ToLower(log)
	for _, text := range []string{"address already in use", "address in use", "eaddrinuse", "port already in use"} {
		if strings.Contains(log, text) {
			return true
		}
	}
	return false
}
