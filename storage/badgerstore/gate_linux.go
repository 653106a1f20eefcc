package badgerstore

import (
	"os"
	"syscall"
)

// openGate returns a gate to a directory, nil if the system has none.
func openGate(dir string) (*gate, error) {
	return inDirectory(dir, func(from, to *os.File) error {
		return os.NewSyscallError("dup3", syscall.Dup3(int(from.Fd()), int(to.Fd()), syscall.O_CLOEXEC))
	})
}
