package standin

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// takeSlots takes AIO control blocks from the kernel as ScyllaDB would, so that fs.aio-nr moves
// for the next node; they go back when the process ends or free is called.
func takeSlots(n int64) (free func(), err error) {
	if n > 1<<31-1 {
		return nil, fmt.Errorf("%d is more than the kernel takes", n)
	}
	var id uintptr
	_, _, errno := unix.Syscall(unix.SYS_IO_SETUP, uintptr(n), uintptr(unsafe.Pointer(&id)), 0)
	if errno != 0 {
		return nil, errno
	}
	return func() { _, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, id, 0, 0) }, nil
}
