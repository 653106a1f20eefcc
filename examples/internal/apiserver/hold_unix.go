//go:build linux || darwin

package apiserver

import (
	"os"
	"syscall"
)

// holdFile holds a file until it is closed, also by the end of the process. It fails if another
// process does.
func holdFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
