//go:build !linux && !darwin

package badgerstore

import "io/fs"

// diskBytes does not know.
func diskBytes(string) (free, size int64, ok bool) { return 0, 0, false }

func allocated(info fs.FileInfo) int64 { return info.Size() }
