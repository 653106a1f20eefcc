//go:build !linux && !darwin

package badgerstore

import "io/fs"

// diskBytes reports that the size of the disk is unknown.
func diskBytes(string) (free, size int64, ok bool) { return 0, 0, false }

// allocated returns the length of a file.
func allocated(info fs.FileInfo) int64 { return info.Size() }

// modes reports whether file modes control the access of other users.
const modes = false

// owned always returns true.
func owned(fs.FileInfo) bool { return true }
