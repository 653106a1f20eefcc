package badgerstore

import (
	"fmt"
	"os"

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

// Free tables that opening, files of tables and writing need. Deletions make room
// in the end, so they are taken as long as their log has room.
const (
	tablesToOpen  = 4
	tablesToFlush = 8
	tablesToWrite = 12
)

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
