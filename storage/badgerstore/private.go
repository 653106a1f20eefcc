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

// The database makes its tables and logs with mode 0666 less the umask, in goroutines of
// its own. The mode of the directory, 0700, keeps other users from all of them. The files get
// mode 0600 soon after they are made, which matters for copies of them and if somebody opens the
// directory.
const (
	privateDir  = 0o700
	privateFile = 0o600
)

// exposedError says that other users can look into the directory of a store.
type exposedError struct {
	dir  string
	mode fs.FileMode
}

func (e *exposedError) Error() string {
	return fmt.Sprintf("the directory %s has mode %04o, so that other users can look into it: run chmod 700 %s", e.dir, e.mode.Perm(), e.dir)
}

// exposed fails if other users can look into a directory. If it belongs to another user its
// group counts as its owner, because this process may have access by nothing else.
func exposed(dir string) error {
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

// shield gives a directory mode 0700, unless it seems to be more than the directory of a store.
func shield(dir string, log *slog.Logger) {
	err := exposed(dir)
	if err == nil {
		return
	}
	shared, fault := sharedDir(dir)
	if fault == nil && !shared {
		if fault = os.Chmod(dir, privateDir); fault == nil {
			level := slog.LevelInfo
			if _, err := os.Lstat(filepath.Join(dir, badger.ManifestFilename)); err == nil { // there was something to see
				level = slog.LevelWarn
			}
			log.Log(context.Background(), level, "the directory of the storage was open to other users; its mode is 0700 now", "dir", dir, "was", err)
			return
		}
	}
	log.Warn("the directory of the storage is open to other users", "err", errors.Join(err, fault))
}

// sharedDir reports whether a directory is used for other things, such as /tmp or a home: it
// has directories, or users remove only their own files from it.
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

// privacy gives the files of a store mode 0600. One goroutine uses it.
type privacy struct {
	dir     string
	logger  *slog.Logger
	changed time.Time       // modification time of dir at the last look
	known   map[string]bool // files that have been looked at
	failed  bool            // and logged
}

// Times of changes are coarse: for this long after one, another may have the same.
const coarse = 2 * time.Second

// keep looks for new files if the directory has changed since the last time.
func (p *privacy) keep() {
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
			p.logger.Warn("a file of the storage cannot be made private", "err", err)
		}
	}
	p.known, p.changed = known, info.ModTime()
}

func makePrivate(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Perm() != privateFile {
		err = os.Chmod(path, privateFile)
	}
	if errors.Is(err, fs.ErrNotExist) { // it went meanwhile
		return nil
	}
	return err
}
