package badgerstore

import (
	"errors"
	"os"
	"syscall"
)

const keepSize = 1 // of fallocate

// allocates reports that allocate takes room.
const allocates = true

// allocate allocates blocks for a file without making it longer. On a file system that cannot do
// that, it does nothing.
func allocate(f *os.File, bytes int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), keepSize, 0, bytes)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
			return nil
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
}
