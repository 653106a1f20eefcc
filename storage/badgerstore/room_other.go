//go:build !linux && !darwin

package badgerstore

// diskBytes does not know.
func diskBytes(string) (free, size int64, ok bool) { return 0, 0, false }
