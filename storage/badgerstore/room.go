package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4/table"

	"orch.io/controlplane/storage"
)

// The database maps its files into memory, where a disk without room for a page
// ends the whole process. So the store stops writing while there is still room
// for what the database writes on its own: the rest of a table in memory, its
// copy in a file, what a compaction makes.
//
// roomy returns nil as long as so many bytes fit on the disk of dir. What the
// system does not tell counts as room.
func roomy(dir string, disk func(string) (free, size int64, ok bool), bytes int64) error {
	free, _, known := disk(dir)
	if !known || free >= bytes {
		return nil
	}
	return fmt.Errorf("%w: %d MiB are free in %s, %d are needed", storage.ErrFull, free>>20, dir, bytes>>20)
}

// Bounds of a table in memory. On a small disk they are small, since a store
// takes the room of a few from the start.
const (
	smallTable   = 1 << 20
	largeTable   = 8 << 20 // takes as much again in memory, and four times that while it is written out
	tablesOfDisk = 64
)

// tableBytes returns how large tables are to be on the disk of a directory.
func tableBytes(dir string, disk func(string) (free, size int64, ok bool)) int64 {
	_, size, known := disk(dir)
	if !known {
		return largeTable
	}
	return max(smallTable, min(largeTable, size/tablesOfDisk))
}

// Free tables that each kind of write needs. The difference between tablesToWrite and
// tablesToFlush is reserved for deletions, which make room in the end: neither other writes
// nor compactions take it.
const (
	tablesToOpen  = 4
	tablesToFlush = 6  // also for deletions whose log is nearly full
	tablesToMerge = 9  // for each table of a compaction
	tablesToWrite = 12 // for what is no deletion
)

// errReading says that the store is being read.
var errReading = errors.New("the database is being read")

// removeStrays removes the tables in the directory that the database does not have. It may
// have them open, so they are truncated first, which gives their room back. A read that began
// before a compaction still uses the tables that the compaction replaced, through a mapping
// that faults once the file is truncated: so removeStrays fails while a read is under way, and
// is called again.
// Nothing makes tables meanwhile.
func (s *Store) removeStrays() error {
	if !s.reads.TryLock() {
		return errReading
	}
	defer s.reads.Unlock()
	have := make(map[uint64]bool)
	for _, t := range s.db.Tables() {
		have[t.ID] = true
	}
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		id, ok := table.ParseFileID(f.Name())
		if !ok || have[id] {
			continue
		}
		path := filepath.Join(s.dir, f.Name())
		if err := errors.Join(os.Truncate(path, 0), os.Remove(path)); err != nil {
			return err
		}
	}
	return nil
}

// Size implements storage.Sizer: what the files of the directory take of the disk.
func (s *Store) Size() (bytes int64) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() { // else it went meanwhile
			bytes += allocated(info)
		}
	}
	return bytes
}
