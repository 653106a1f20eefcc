//go:build linux || darwin

package badgerstore

import "syscall"

// freeBytes returns how much the disk of a directory has room for.
func freeBytes(dir string) (int64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
