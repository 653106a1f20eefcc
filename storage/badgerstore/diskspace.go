package badgerstore

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4/table"

	"orch.io/controlplane/storage"
)

// Badger maps its files into memory. A write to a mapped page for which the disk has no block raises
// SIGBUS, which ends the process. The store therefore makes sure that the disk has free space before
// Badger writes anything:
//
//   - The blocks of a log are allocated before Badger writes to it, see logAllocator.
//   - A full log becomes a table. A write that may fill the log needs space for the tables of all logs,
//     or fails with storage.ErrFull.
//   - Badger merges tables when the store asks for it, see flattener. A merge writes new tables before it
//     removes the old tables, so it needs as much space as they take.
//
// Writes other than deletions leave enough space to delete every record and to merge. If a store has
// filled its disk, records can therefore still be deleted, and a merge frees their space.
//
// In addition the store holds a ballast, see maintainBallast: space for deletions and for Close if other
// programs fill the disk.

// Limits of the size of a memtable. The size depends on the size of the disk, because an empty store
// already takes the space of several memtables.
const (
	smallTable   = 1 << 20
	largeTable   = 8 << 20 // takes this much memory, and four times as much while it is written to a table
	tablesOfDisk = 64      // a memtable has at most this fraction of the disk
)

// tableBytes returns the size of the memtable for a store in dir.
func tableBytes(dir string, disk func(string) (free, size int64, ok bool)) int64 {
	_, size, known := disk(dir)
	if !known {
		return largeTable
	}
	return max(smallTable, min(largeTable, size/tablesOfDisk))
}

const (
	// Writes leave space for deletions, which need it for their tables and for a merge of these:
	// deletionTables memtables and deletionBytes for each record.
	deletionTables = 4
	deletionBytes  = 128

	// Open needs the space of one memtable for each log and of openTables more, for the current and
	// the next log.
	openTables = 3
)

// requireSpace returns ErrFull if the disk of dir has fewer free bytes than bytes. If the number of free
// bytes is unknown, it returns nil.
func requireSpace(dir string, disk func(string) (free, size int64, ok bool), bytes int64) error {
	free, _, known := disk(dir)
	if !known || free >= bytes {
		return nil
	}
	return fmt.Errorf("%w: %d MiB free in %s, %d MiB needed", storage.ErrFull, free>>20, dir, (bytes+1<<20-1)>>20)
}

// checkSpace returns ErrFull unless the disk has space for the tables that Badger is going to write and for
// more bytes. If merge is set or a merge is running, it also requires space for a merge.
func (s *Store) checkSpace(merge bool, more int64) error {
	need := s.logTables()
	if merge || s.merging() {
		need += s.mergeBytes(need)
	}
	return requireSpace(s.dir, s.disk, need+more)
}

// mergeWait is the maximum time that a write waits for the end of a merge.
const mergeWait = 10 * time.Second

// awaitSpace is like checkSpace, but while there is not enough space and a merge is running, it waits for the
// end of the merge, which may free space. Only the committer calls it.
func (s *Store) awaitSpace(merge bool, more int64) error {
	err := s.checkSpace(merge, more)
	for end := time.Now().Add(mergeWait); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		runs := s.mergeRuns()
		if err = s.checkSpace(merge, more); !runs {
			break
		}
	}
	return err
}

// ensureSpace is like awaitSpace, but releases the ballast if the disk is short of space and the ballast is
// large enough.
func (s *Store) ensureSpace(merge bool, more int64) error {
	err := s.awaitSpace(merge, more)
	if c := &s.committer; err != nil && c.lowSpace && s.checkSpace(merge, more-c.ballast.size()) == nil {
		c.releaseBallast()
		err = s.checkSpace(merge, more)
	}
	return err
}

// logTables returns the maximum size of the tables that the logs become, the current log included.
func (s *Store) logTables() int64 {
	p := &s.committer.logs
	return p.unflushed(s.logPath) * p.logBytes()
}

// mergeBytes returns the maximum number of bytes that merges write before they remove tables. logs is the
// size of the tables that the logs become in the meantime.
func (s *Store) mergeBytes(logs int64) int64 {
	levels, all := s.db.Levels(), logs
	for _, l := range levels {
		all += l.Size
	}
	if s.leveled {
		all = min(all, leveledBytes+levels[0].Size)
	}
	return all + all/8 // an index is larger in relation to a smaller table
}

// mergeRuns reports whether a merge is writing tables. If Badger merges on its own, the sign of a merge is a
// table file that is not yet a table of the database.
func (s *Store) mergeRuns() bool {
	if !s.leveled {
		return s.merging()
	}
	have := make(map[uint64]bool)
	for _, t := range s.db.Tables() {
		have[t.ID] = true
	}
	files, _ := os.ReadDir(s.dir) // if the directory cannot be read, there is no merge to wait for
	return slices.ContainsFunc(files, func(f os.DirEntry) bool {
		id, ok := table.ParseFileID(f.Name())
		return ok && !have[id]
	})
}

// Size implements storage.Sizer. It returns the allocated bytes of all files in the directory.
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

// ballastTables is the size of the ballast in memtables. It is enough for deletions and for Close on a disk
// that other programs have filled completely.
const ballastTables = 3

// maintainBallast allocates the ballast if the store has none and the disk has plenty of space. It also
// records whether the disk is short of space. The committer calls it every second. The ballast is
// released only if the disk was already short of space at the last call: otherwise another program may be
// filling the disk right now and would take the ballast, too.
func (s *Store) maintainBallast() {
	c := &s.committer
	bytes := ballastTables * c.logs.size
	c.lowSpace = s.checkSpace(false, c.logs.size) != nil
	if c.ballast == nil && canAllocate && s.checkSpace(true, s.deletionSpace()+4*bytes) == nil {
		c.ballast, _ = allocateBallast(s.dir, bytes) // if it fails, the next write fails and returns the error
	}
}

// releaseBallast frees the space of the ballast.
func (c *committer) releaseBallast() {
	_ = c.ballast.release() // the file is unlinked, so there is nothing to repair
	c.ballast = nil
}

// deletionSpace returns the number of bytes that other writes leave free for deletions.
func (s *Store) deletionSpace() int64 {
	c := &s.committer
	return deletionTables*c.logs.size + deletionBytes*c.live.keys
}
