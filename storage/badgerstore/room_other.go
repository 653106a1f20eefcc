//go:build !linux && !darwin

package badgerstore

// freeBytes does not know.
func freeBytes(string) (int64, bool) { return 0, false }
