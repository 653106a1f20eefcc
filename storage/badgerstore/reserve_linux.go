package badgerstore

import (
	"errors"
	"os"
	"syscall"
)

const keepSize = 1 // of fallocate

// allocate takes room for a file without making it longer. Where the file system
// cannot do that, files take their room when they are written.
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
