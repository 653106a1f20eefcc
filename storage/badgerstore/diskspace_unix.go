//go:build linux || darwin

package badgerstore

import (
	"io/fs"
	"os"
	"syscall"
)

// diskBytes returns the free bytes and the size of the disk of dir. ok is false if they are unknown.
func diskBytes(dir string) (free, size int64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), true
}

// allocated returns the bytes of the blocks of a file. Mapped files may have holes, so this may be less than
// the length.
func allocated(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

// modes reports whether file modes control the access of other users.
const modes = true

// owned reports whether a file belongs to the user of the process.
func owned(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Geteuid()
}
