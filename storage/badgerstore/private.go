package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// Badger creates its files in its own goroutines with mode 0666 minus the umask. The mode of the directory, 0700,
// protects them from other users. In addition the store sets the mode of the files to 0600 soon after they
// are created, which protects copies of the files and matters if the mode of the directory is changed.
const (
	privateDir  = 0o700
	privateFile = 0o600
)

// exposedError is returned if other users have access to the directory of a store.
type exposedError struct {
	dir  string
	mode fs.FileMode
}

func (e *exposedError) Error() string {
	return fmt.Sprintf("directory %s has mode %04o, which gives other users access: run chmod 700 %s", e.dir, e.mode.Perm(), e.dir)
}

// checkPrivate returns an error if other users have access to dir. If the directory belongs to another user, access
// of its group is allowed, because this process may need it.
func checkPrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	others := fs.FileMode(0o077)
	if !owned(info) {
		others = 0o007
	}
	if modes && info.Mode().Perm()&others != 0 {
		return &exposedError{dir, info.Mode()}
	}
	return nil
}

// makeDirPrivate sets the mode of dir to 0700 if other users have access, unless the directory seems to be used for
// other things than a store. It logs the change or a warning.
func makeDirPrivate(dir string, log *slog.Logger) {
	err := checkPrivate(dir)
	if err == nil {
		return
	}
	shared, changeErr := sharedDir(dir)
	if changeErr == nil && !shared {
		if changeErr = os.Chmod(dir, privateDir); changeErr == nil {
			level := slog.LevelInfo
			if _, err := os.Lstat(filepath.Join(dir, badger.ManifestFilename)); err == nil { // the directory had data
				level = slog.LevelWarn
			}
			log.Log(context.Background(), level, "changed the mode of the storage directory to 0700: other users had access", "dir", dir, "was", err)
			return
		}
	}
	log.Warn("other users have access to the storage directory", "err", errors.Join(err, changeErr))
}

// sharedDir reports whether dir seems to be used for other things, like /tmp or a home directory: it has
// subdirectories or the sticky bit.
func sharedDir(dir string) (bool, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "lost+found" {
			return true, nil
		}
	}
	return info.Mode()&fs.ModeSticky != 0, nil
}

// privacy sets the mode of the files of a store to 0600. It is not safe for concurrent use.
type privacy struct {
	dir     string
	logger  *slog.Logger
	changed time.Time       // modification time of dir at the last check
	known   map[string]bool // files with a checked mode
	failed  bool            // a failure was logged
}

// coarse is the granularity of modification times: two changes within this time may have the same time.
const coarse = 2 * time.Second

// protect sets the mode of new files. It returns early if the directory has not changed since the last call.
func (p *privacy) protect() {
	info, err := os.Stat(p.dir)
	if err != nil || info.ModTime().Equal(p.changed) && time.Since(p.changed) > coarse {
		return
	}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return
	}
	known := make(map[string]bool, len(entries))
	for _, e := range entries {
		name := e.Name()
		if !ownFile(name) || !e.Type().IsRegular() {
			continue
		}
		if known[name] = true; p.known[name] {
			continue
		}
		if err := makePrivate(filepath.Join(p.dir, name)); err != nil && !p.failed {
			p.failed = true
			p.logger.Warn("failed to make a storage file private", "err", err)
		}
	}
	p.known, p.changed = known, info.ModTime()
}

// makePrivate sets the mode of a file to 0600.
func makePrivate(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Perm() != privateFile {
		err = os.Chmod(path, privateFile)
	}
	if errors.Is(err, fs.ErrNotExist) { // the file was removed concurrently
		return nil
	}
	return err
}
