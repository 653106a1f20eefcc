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

// Badger may start a compaction at any time, and a compaction that runs out of disk space crashes the
// process. On a small disk, compactions are therefore disabled, and the store calls Flatten when a merge
// is useful and the disk has enough space. All tables except the newest are in one level then, and
// Flatten rewrites all of them. On a large disk, or if the store is large when it is opened, a rewrite
// of all tables would take too much time and space, so Badger starts compactions itself.
const (
	largeDisk    = 2 << 30   // Badger starts compactions if the disk has at least this size
	leveledFrom  = 128 << 20 // or if the tables are larger than this
	leveledBytes = 256 << 20 // space for two compactions of Badger, in addition to the tables of level 0
)

// A merge is due when level 0 has at least mergeTables tables and at least 1/mergeShare of all bytes. Merges
// then write about mergeShare bytes for each new byte.
const (
	mergeTables = 5
	mergeShare  = 8
)

// fillKey is the key of an entry that only fills the log. Its value has no meaning.
const fillKey = "fill"

// flushWait is the maximum time that a merge waits until full logs are written to tables.
const flushWait = 10 * time.Second

// flattener merges tables in the background. The committer starts merges.
type flattener struct {
	historyDropped atomic.Bool  // history was dropped since the last merge
	available      int64        // bytes of the disk not used by other programs at the last check; used by the committer only
	next           atomic.Int64 // earliest start of the next merge, in Unix nanoseconds
	running        atomic.Bool
	done           sync.WaitGroup
}

// merging reports whether a merge may be running.
func (s *Store) merging() bool { return s.leveled || s.committer.flattener.running.Load() }

// flatten starts a merge if it is due, or if the disk is full and a merge would free the space of deleted
// records. In the latter case the deletions may still be in the current log, which no other writes fill,
// so flatten first fills it. The committer calls flatten every second.
func (s *Store) flatten() {
	f := s.committer.flattener
	calm := s.spaceIsStable()
	if f.running.Load() || time.Now().UnixNano() < f.next.Load() || s.committer.broken != nil {
		return
	}
	reclaim := f.historyDropped.Load() && s.checkSpace(true, s.deletionSpace()) != nil
	if !reclaim && (s.leveled || !s.mergeDue()) {
		return
	}
	more := 2 * s.committer.logs.size // for the logs
	if !calm {
		more += spaciousBytes
	}
	err := s.checkSpace(true, more)
	if err == nil && reclaim {
		err = s.fillLog()
	}
	if err != nil {
		s.logger.Debug("storage postpones a merge of its tables", "dir", s.dir, "err", err)
		return
	}
	if reclaim {
		f.historyDropped.Store(false)
	}
	last := s.committer.logs.id - 2 // the newest full log: id is the next log, and the current log precedes it
	f.running.Store(true)
	f.done.Go(func() {
		defer f.running.Store(false)
		began := time.Now()
		err := s.awaitTables(last)
		if err == nil {
			err = s.merge()
		}
		if err != nil {
			s.logger.Warn("storage failed to merge its tables", "dir", s.dir, "err", err)
			f.historyDropped.Store(true)
		}
		f.pause(4 * time.Since(began))
	})
}

// spaciousBytes is the additional free space that a merge needs while other programs are filling the disk.
const spaciousBytes = 1 << 30

// spaceIsStable reports whether other programs took less space than a memtable since the last call, or the
// disk has plenty of space. A merge cannot be stopped when other programs take the space that it needs.
func (s *Store) spaceIsStable() bool {
	f, table := s.committer.flattener, s.committer.logs.size
	free, _, known := s.disk(s.dir)
	if !known || free > spaciousBytes+s.mergeBytes(0)+tablesOfDisk*table {
		f.available = 0
		return true
	}
	left := free + s.Size() + s.committer.ballast.size() // not used by other programs
	calm := f.available > 0 && f.available-left < table
	f.available = left
	return calm
}

// pause delays the next merge by d, so that merges without effect do not keep the disk busy.
func (f *flattener) pause(d time.Duration) {
	f.next.Store(time.Now().Add(max(d, time.Second)).UnixNano())
}

// mergeDue reports whether level 0 has enough tables for a merge.
func (s *Store) mergeDue() bool {
	levels, all := s.db.Levels(), int64(0)
	for _, l := range levels {
		all += l.Size
	}
	return levels[0].NumTables >= mergeTables && levels[0].Size >= all/mergeShare
}

// fillLog writes to the current log until Badger starts the next log and writes the current log to a table.
func (s *Store) fillLog() error {
	p, zeros := &s.committer.logs, make([]byte, s.piece)
	for id, size := p.id, int64(0); p.id == id && size < 2*p.size; size += int64(len(zeros)) {
		if err := s.writeMeta([]byte(fillKey), zeros); err != nil {
			return err
		}
	}
	return nil
}

// merge merges all tables.
//
// If Badger cannot create a table during a merge, the records of the table are lost. merge therefore first
// checks that files can be created and that the process can open enough files.
func (s *Store) merge() error {
	if err := probe(s.dir); err != nil {
		return err
	}
	if err := openable(int(s.mergeBytes(0)/s.db.Opts().BaseTableSize) + 16); err != nil {
		return err
	}
	return s.db.Flatten(1)
}

// awaitTables waits until the logs up to last are written to tables.
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
			return fmt.Errorf("timed out: %s is not written to a table yet", filepath.Base(s.logPath(oldest)))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// openable returns an error unless the process can open n more files.
func openable(n int) (err error) {
	files := make([]*os.File, 0, n)
	for range n {
		f, openErr := os.Open(os.DevNull)
		if openErr != nil {
			err = fmt.Errorf("a merge needs %d more open files: %w", n, openErr)
			break
		}
		files = append(files, f)
	}
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}
