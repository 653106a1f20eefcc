package badgerstore

import (
	"fmt"

	"orch.io/controlplane/storage"
)

// The database maps its files into memory, where a disk without room for a page
// ends the whole process. So the store stops writing while there is still room
// for what the database writes on its own: the rest of a table in memory, its
// copy in a file, what a compaction makes.
//
// roomy returns nil as long as that many tables fit on the disk of dir. What
// the system does not tell counts as room.
func roomy(dir string, free func(string) (int64, bool), tables, table int64) error {
	left, known := free(dir)
	if !known || left >= tables*table {
		return nil
	}
	return fmt.Errorf("%w: %d MiB are free in %s, %d are needed", storage.ErrFull, left>>20, dir, tables*table>>20)
}

// Free tables that opening and writing need. Deletions make room in the end, so
// they are always taken.
const (
	tablesToOpen  = 4
	tablesToWrite = 12
)
