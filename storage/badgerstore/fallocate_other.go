//go:build !linux

package badgerstore

import "os"

// canAllocate reports whether allocate is implemented.
const canAllocate = false

// allocate does nothing: blocks are allocated when the file is written.
func allocate(*os.File, int64) error { return nil }
