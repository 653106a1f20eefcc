//go:build !linux && !darwin

package badgerstore

// locks reports whether the store locks the directory itself. If not, Badger does.
const locks = false

// lock does nothing.
func lock(string) (unlock func() error, err error) { return func() error { return nil }, nil }

// lockDir does nothing.
func lockDir(string) (unlock func() error, err error) { return lock("") }

// writeOwner does nothing.
func writeOwner(string) (remove func() error, err error) { return lock("") }
