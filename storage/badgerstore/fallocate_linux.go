package badgerstore

import (
	"errors"
	"os"
	"syscall"
)

const keepSize = 1 // FALLOC_FL_KEEP_SIZE

// canAllocate reports whether allocate is implemented.
const canAllocate = true

// allocate allocates blocks for the first bytes of a file without changing its length. It does nothing if
// the file system does not support that.
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
