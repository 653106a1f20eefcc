//go:build linux || darwin

package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// locks reports whether the store locks the directory itself. If not, Badger does.
const locks = true

// lockDir locks a directory exclusively until unlock is called. It fails with ErrInUse if another store has
// locked it. lockDir changes nothing in the directory.
func lockDir(dir string) (unlock func() error, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = inUse(dir)
		}
		return nil, errors.Join(err, d.Close())
	}
	return func() error { return release(d) }, nil
}

// release unlocks and closes a directory. Closing alone is not enough: a child process that is being started
// has a copy of the descriptor until it executes its program, and the copy would keep the lock.
func release(d *os.File) error {
	return errors.Join(syscall.Flock(int(d.Fd()), syscall.LOCK_UN), d.Close())
}

// lock locks a directory and writes the id of the process into its lock file.
func lock(dir string) (unlock func() error, err error) {
	unlockDir, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	removeOwner, err := writeOwner(dir)
	if err != nil {
		return nil, errors.Join(err, unlockDir())
	}
	return func() error { return errors.Join(removeOwner(), unlockDir()) }, nil
}

// writeOwner writes the id of the process into the lock file of dir. remove removes that file.
func writeOwner(dir string) (remove func() error, err error) {
	path := filepath.Join(dir, lockFile)
	if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n", os.Getpid()), privateFile); err != nil {
		return nil, err
	}
	return func() error { return os.Remove(path) }, nil
}
