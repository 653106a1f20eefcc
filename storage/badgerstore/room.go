package badgerstore

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4/table"

	"orch.io/controlplane/storage"
)

// Badger maps its files into memory. Writing to a mapped page that the disk has no room for
// raises SIGBUS, which ends the process. So the store makes sure that there is room before
// Badger writes anything:
//
//   - The blocks of a log are allocated before Badger writes to it, see spare.
//   - A full log becomes a table. A write that may fill the log needs room for the tables of
//     all logs, or fails with storage.ErrFull.
//   - Badger merges tables when the store asks for it, see flattener. A merge writes all tables
//     anew before it removes the old ones, so it needs as much room as they take.
//
// Writes other than deletions leave enough room to merge and to delete every record. A store that has filled its disk can therefore always delete, and a merge gives
// the room of the deleted records back.

// Bounds of the size of a table in memory. It follows the size of the disk, because a store
// takes the room of several tables from the start.
const (
	smallTable   = 1 << 20
	largeTable   = 8 << 20 // takes as much memory, and four times that while it is written
	tablesOfDisk = 64
)

// tableBytes returns the size of a table in memory for a store in dir.
func tableBytes(dir string, disk func(string) (free, size int64, ok bool)) int64 {
	_, size, known := disk(dir)
	if !known {
		return largeTable
	}
	return max(smallTable, min(largeTable, size/tablesOfDisk))
}

const (
	// deletionTables and deletionBytes, for each record, are left free for deletions: for
	// their tables, and for a merge of those.
	deletionTables = 4
	deletionBytes  = 128

	// Open needs a table for each log and openTables more, for a log and its successor.
	openTables = 3
)

// requireRoom returns ErrFull if the disk of dir has fewer free bytes. A disk that does not
// tell its free bytes counts as empty.
func requireRoom(dir string, disk func(string) (free, size int64, ok bool), bytes int64) error {
	free, _, known := disk(dir)
	if !known || free >= bytes {
		return nil
	}
	return fmt.Errorf("%w: %d MiB are free in %s, %d MiB are needed", storage.ErrFull, free>>20, dir, (bytes+1<<20-1)>>20)
}

// room returns ErrFull unless the disk has room for the tables that Badger is going to write and
// for more bytes. If merge is set, it also requires room for a merge that has not begun.
func (s *Store) room(merge bool, more int64) error {
	need := s.logTables()
	if merge || s.merging() {
		need += s.mergeBytes(need)
	}
	return requireRoom(s.dir, s.disk, need+more)
}

// mergeWait is how long a write waits for the end of a merge.
const mergeWait = 10 * time.Second

// awaitRoom is room for the committing goroutine. If a merge runs, which takes room before it gives
// more back, awaitRoom waits for its end.
func (s *Store) awaitRoom(merge bool, more int64) error {
	err := s.room(merge, more)
	for end := time.Now().Add(mergeWait); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		runs := s.mergeRuns()
		if err = s.room(merge, more); !runs {
			break
		}
	}
	return err
}

// makeRoom is awaitRoom for writes that may use the reserve. It gives the reserve up if that suffices.
func (s *Store) makeRoom(merge bool, more int64) error {
	err := s.awaitRoom(merge, more)
	if c := &s.committer; err != nil && c.short && s.room(merge, more-c.reserve.size()) == nil {
		c.dropReserve()
		err = s.room(merge, more)
	}
	return err
}

// logTables returns the size of the tables that the logs become, the log in use included.
func (s *Store) logTables() int64 {
	p := &s.committer.spare
	return p.unflushed(s.logPath) * p.logBytes()
}

// mergeBytes returns the most bytes that merges write before they remove anything, if the logs
// become tables of the given size meanwhile.
func (s *Store) mergeBytes(logs int64) int64 {
	levels, all := s.db.Levels(), logs
	for _, l := range levels {
		all += l.Size
	}
	if s.leveled {
		all = min(all, leveledBytes+levels[0].Size)
	}
	return all + all/8 // smaller tables have more index
}

// mergeRuns reports whether a merge writes tables now: there are files of tables that are none yet.
func (s *Store) mergeRuns() bool {
	if !s.leveled {
		return s.merging()
	}
	have := make(map[uint64]bool)
	for _, t := range s.db.Tables() {
		have[t.ID] = true
	}
	files, _ := os.ReadDir(s.dir) // without files there is no merge to wait for
	return slices.ContainsFunc(files, func(f os.DirEntry) bool {
		id, ok := table.ParseFileID(f.Name())
		return ok && !have[id]
	})
}

// Size implements storage.Sizer: the bytes that the files of the directory take on the disk.
func (s *Store) Size() (bytes int64) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			bytes += fileBytes(e)
		}
	}
	return bytes
}

// reserveTables is the size of the reserve: room for deletions and for Close on a disk that other
// programs have filled to the last byte.
const reserveTables = 3

// keepReserve takes the reserve if the disk has plenty of room, and otherwise notes whether the
// disk is short of room. It is called each second. The reserve is given up only if the disk was short
// at the last call: a program that is filling the disk at this moment would take the reserve, too.
func (s *Store) keepReserve() {
	c := &s.committer
	bytes := reserveTables * c.spare.size
	c.short = s.room(false, c.spare.size) != nil
	if c.reserve == nil && allocates && s.room(true, s.deletionRoom()+4*bytes) == nil {
		c.reserve, _ = takeBallast(s.dir, bytes) // if that fails, the next write reports the error
	}
}

func (c *committer) dropReserve() {
	_ = c.reserve.release() // a file without a name
	c.reserve = nil
}

// deletionRoom returns the bytes that are left free for deletions.
func (s *Store) deletionRoom() int64 {
	c := &s.committer
	return deletionTables*c.spare.size + deletionBytes*c.live.keys
}
