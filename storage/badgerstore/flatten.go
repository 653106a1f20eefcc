package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Badger starts compactions at any time, and a compaction that runs out of disk space crashes the
// process. On a small disk they are therefore disabled, and the store calls Flatten when there is
// enough to merge and enough room. All tables but the newest are in one level then, and Flatten
// rewrites them all. On a large disk, and for a store that is large when it is opened, rewriting
// everything would take too long and too much room, so compactions are left to Badger.
const (
	largeDisk    = 2 << 30   // bytes of a disk
	leveledFrom  = 128 << 20 // bytes in tables
	leveledBytes = 256 << 20 // kept free for two of Badger's compactions, plus the tables of level 0
)

const (
	mergeTables = 5 // a merge is due when level 0 has so many tables
	mergeShare  = 8 // and this fraction of all bytes, so that merges write about 8 bytes for each new byte
)

// fillKey is written to fill a log. Its value has no meaning.
const fillKey = "fill"

// flushWait is how long a merge waits for the tables of full logs.
const flushWait = 10 * time.Second

// flattener merges tables in the background. The committing goroutine starts merges.
type flattener struct {
	forgot  atomic.Bool  // history was forgotten since the last merge
	left    int64        // bytes of the disk that others did not use at the last look; the committer's
	next    atomic.Int64 // earliest start of the next merge, in Unix nanoseconds
	running atomic.Bool
	done    sync.WaitGroup
}

// merging reports whether tables may be merged now.
func (s *Store) merging() bool { return s.leveled || s.committer.flattener.running.Load() }

// flatten starts a merge if one is due, or if the disk is full and a merge would give back the room
// of deleted records. On a full disk the deletions are still in the log, which no other writes
// will fill, so flatten fills it. It is called each second.
func (s *Store) flatten() {
	f := s.committer.flattener
	calm := s.calm()
	if f.running.Load() || time.Now().UnixNano() < f.next.Load() || s.committer.broken != nil {
		return
	}
	reclaim := f.forgot.Load() && s.room(true, s.deletionRoom()) != nil
	if !reclaim && (s.leveled || !s.mergeDue()) {
		return
	}
	more := 2 * s.committer.spare.size // for the logs
	if !calm {
		more += spaciousBytes
	}
	err := s.room(true, more)
	if err == nil && reclaim {
		err = s.fillLog()
	}
	if err != nil {
		s.logger.Debug("storage does not merge its tables yet", "dir", s.dir, "err", err)
		return
	}
	if reclaim {
		f.forgot.Store(false)
	}
	last := s.committer.spare.id - 2 // the log in use is the one before the spare
	f.running.Store(true)
	f.done.Go(func() {
		defer f.running.Store(false)
		began := time.Now()
		err := s.awaitTables(last)
		if err == nil {
			err = s.merge()
		}
		if err != nil {
			s.logger.Warn("storage could not merge its tables", "dir", s.dir, "err", err)
			f.forgot.Store(true)
		}
		f.pause(4 * time.Since(began))
	})
}

// spaciousBytes is the extra free space that a merge needs while other programs are filling the disk.
const spaciousBytes = 1 << 30

// calm reports whether other programs took less than a table of the disk since the last call, because
// a merge cannot be stopped when they take its room.
func (s *Store) calm() bool {
	f, table := s.committer.flattener, s.committer.spare.size
	free, _, known := s.disk(s.dir)
	if !known || free > spaciousBytes+s.mergeBytes(0)+tablesOfDisk*table {
		f.left = 0
		return true
	}
	left := free + s.Size() + s.committer.reserve.size() // for this store
	calm := f.left > 0 && f.left-left < table
	f.left = left
	return calm
}

// pause delays the next merge, so that merges which bring nothing do not take the whole disk's time.
func (f *flattener) pause(d time.Duration) {
	f.next.Store(time.Now().Add(max(d, time.Second)).UnixNano())
}

// mergeDue reports whether level 0 has enough to merge.
func (s *Store) mergeDue() bool {
	levels, all := s.db.Levels(), int64(0)
	for _, l := range levels {
		all += l.Size
	}
	return levels[0].NumTables >= mergeTables && levels[0].Size >= all/mergeShare
}

// fillLog makes Badger start its next log and write the table of the log in use.
func (s *Store) fillLog() error {
	p, zeros := &s.committer.spare, make([]byte, s.piece)
	for id, size := p.id, int64(0); p.id == id && size < 2*p.size; size += int64(len(zeros)) {
		if err := s.note([]byte(fillKey), zeros); err != nil {
			return err
		}
	}
	return nil
}

// merge merges all tables.
//
// Badger loses a table of a merge that it cannot create, so merge checks first that the directory
// takes files and that the process can open as many as there may be.
func (s *Store) merge() error {
	if err := probe(s.dir); err != nil {
		return err
	}
	if err := openable(int(s.mergeBytes(0)/s.db.Opts().BaseTableSize) + 16); err != nil {
		return err
	}
	return s.db.Flatten(1)
}

// awaitTables waits until the logs up to last are tables.
func (s *Store) awaitTables(last int) error {
	deadline := time.Now().Add(flushWait)
	for {
		logs, err := filepath.Glob(filepath.Join(s.dir, "*.mem"))
		if err != nil {
			return err
		}
		oldest := last + 1
		for _, path := range logs {
			oldest = min(oldest, logID(path))
		}
		if oldest > last {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not written to a table yet", filepath.Base(s.logPath(oldest)))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// openable returns an error unless the process can open n more files.
func openable(n int) (err error) {
	files := make([]*os.File, 0, n)
	for range n {
		f, fault := os.Open(os.DevNull)
		if fault != nil {
			err = fmt.Errorf("%d more files are needed: %w", n, fault)
			break
		}
		files = append(files, f)
	}
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}
