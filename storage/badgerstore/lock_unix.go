//go:build linux || darwin

package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// locks says that lock holds a directory, so that the database need not.
const locks = true

// hold takes a directory until unlock, before anybody looks at its files. It
// changes nothing in it.
func hold(dir string) (unlock func() error, err error) {
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

// release gives a directory back at once. Closing it is not enough: a process that is being started
// has it open, too, for a moment.
func release(d *os.File) error {
	return errors.Join(syscall.Flock(int(d.Fd()), syscall.LOCK_UN), d.Close())
}

// lock holds a directory and notes in it which process does.
func lock(dir string) (unlock func() error, err error) {
	unhold, err := hold(dir)
	if err != nil {
		return nil, err
	}
	forget, err := noteOwner(dir)
	if err != nil {
		return nil, errors.Join(err, unhold())
	}
	return func() error { return errors.Join(forget(), unhold()) }, nil
}

// noteOwner notes in a directory which process holds it.
func noteOwner(dir string) (forget func() error, err error) {
	path := filepath.Join(dir, lockFile)
	if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n", os.Getpid()), privateFile); err != nil {
		return nil, err
	}
	return func() error { return os.Remove(path) }, nil
}
