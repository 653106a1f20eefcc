// Package badgerstore implements storage.Backend in a local directory, with a Badger database in
// managed mode.
//
// # Commits
//
// A single goroutine, the committer, handles all writes. It compares the waiting writes with an index
// of the newest revision of each key, writes the successful ones to the database in one batch with one
// fsync, and then publishes them. The version of a Badger entry is the revision of the commit, so the
// database itself serves reads of older revisions. Entries above the published revision are never read.
//
// A write is exactly one entry. After a crash, only a part of the entries of an unacknowledged batch may
// be on the disk. If a commit has one write, that is its only entry, so it is atomic. If a commit has
// several writes, the store first writes all of them as one additional entry, from which Open completes
// the commit. A large value is split into pieces, which are on the disk before the entry of the write.
//
// # Lost and damaged data
//
// Badger does not detect the loss of some of its files. The store therefore keeps a witness, the file
// REVISION, with the acknowledged revision and the number and a checksum of the records. In addition,
// each record has a checksum.
//
// Open refuses a directory with a missing or damaged table and leaves it unchanged. Inspect reports the
// damage, and Salvage copies the readable records into a new directory. If only the end of the log is
// lost, the store serves the remaining records and never reuses the lost revisions. It describes the
// loss in the file LOST, and Check fails until an operator removes that file.
//
// # Full disks
//
// If the disk is nearly full, writes other than deletions fail with storage.ErrFull. The space that is
// left is enough to delete all records and for the background work of the database, which then frees
// the space of the deleted records. On a disk of less than 2 GiB, about half of the disk is usable for
// records.
//
// Badger maps its tables into memory. If another program takes the last free space while Badger writes
// a table, the process ends with SIGBUS; all acknowledged commits are there when the store is opened
// again. If the file system cannot create a file at that moment, a compaction of Badger loses records,
// which Open then reports. To avoid both, give the store a file system of its own.
package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/internal/history"
)

// Limits of one write. Larger writes fail with storage.ErrTooLarge.
const (
	MaxKeyBytes   = 32 << 10
	MaxValueBytes = 8 << 20
)

var (
	// ErrInUse is returned if another Store, in this or another process, has the directory open.
	ErrInUse = errors.New("storage directory is in use")
	// ErrStopped is returned for all writes after a write to the disk failed. Acknowledged commits
	// stay readable. After the store is opened again, each commit of the failed batch either exists
	// or does not.
	ErrStopped = storage.ErrStopped
)

// Options are the parameters of Open and Fill.
type Options struct {
	// Dir is the directory of the store. Open creates it with mode 0700 if it does not exist. If other
	// users have access to an existing directory, Open changes its mode to 0700. If that fails, or if
	// the directory seems to be used for other things (it has subdirectories or the sticky bit), Open
	// logs a warning instead, and Check fails.
	Dir string
	// Retain is how long replaced and deleted records stay readable, see storage.Retention. 0 means
	// 5 minutes; a negative value means until Compact is called. Time while the store is closed counts.
	Retain time.Duration
	// Logger receives the messages of the store and of Badger. nil means no logging.
	Logger *slog.Logger

	filling  bool                                        // Open is called by Fill
	leveled  bool                                        // Badger starts compactions itself, see flattener
	memTable int64                                       // bytes of a memtable, set by tests that need many tables
	disk     func(string) (free, size int64, known bool) // bytes of the disk of a directory, set by tests
}

// Stats are counters since Open (Commits, Batches, Fsyncs) and current values (the other fields).
type Stats struct {
	Commits   uint64           // committed writes
	Batches   uint64           // batches in which they were written
	Fsyncs    uint64           // batches that waited for the disk, compactions included
	Keys      int              // existing keys
	Revision  storage.Revision // newest revision
	Compacted storage.Revision // oldest readable revision
	Damaged   int              // records that cannot be read
	Lost      bool             // the file LOST exists, see Check
}

// Store is a storage.Backend in a directory. It also implements storage.Importer, StampReader, Checker,
// HistoryReader, Sequencer, Writer and Sizer.
//
// Writes: the committer goroutine (run) owns the field committer and is the only writer of the database.
// Other goroutines put a request into queue and wait until it is handled or its context ends. In the
// latter case the request may still be carried out.
//
// Publication: after a batch is on the disk, it is added to index, then in one step to state, then to
// log. A reader that sees a revision therefore finds all commits up to it, and a watch yields only
// commits that can be read. Reads ask the database for a published revision, so they never see a
// partially written batch.
//
// Compaction: it raises floor before the database may discard entries. A read checks floor after it is
// done. If its revision is still retained then, it was retained during the whole read.
//
// Locks: access is held for reading during every use of the database except by the committer, and for
// writing by Close after the committer has ended. The database is therefore never used after it is
// closed. access is acquired before the other locks. The locks of queue, index, ages, state and log
// are leaf locks: their holders neither acquire another lock nor wait for the disk.
type Store struct {
	dir     string
	retain  time.Duration
	logger  *slog.Logger
	db      *badger.DB
	disk    func(dir string) (free, size int64, known bool)
	leveled bool // Badger starts compactions itself
	log     *history.Log
	floor   atomic.Int64 // oldest revision that the database retains, raised before it discards entries
	piece   int          // maximum bytes of a piece of a large value
	batch   int          // maximum bytes of a batch
	unlock  func() error // releases the lock of the directory
	privacy privacy      // used by start, then the committer, then Close
	filling bool         // Fill opened the store and removes the import mark

	state struct { // the published state
		sync.RWMutex
		revision storage.Revision
		index    map[string]storage.Revision
		damaged  map[string]*storage.DamagedError // damaged records, a subset of index
	}
	unwritable atomic.Pointer[error] // the error that Writable reports; nil: writes are accepted

	index revisionIndex
	ages  ages
	queue struct { // requests for the committer
		sync.Mutex
		waiting []*request
		ready   chan struct{} // has a token if waiting is not empty or closed is set
		closed  bool
	}
	access struct { // held for reading during every use of db
		sync.RWMutex
		closed bool
	}
	committer committer
	stats     struct{ commits, batches, fsyncs, reads atomic.Uint64 }
	closing   struct {
		sync.Mutex
		result chan error // result of db.Close; nil until it is called
		closed bool
	}
	done chan struct{} // closed when the committer has ended
}

var (
	_ storage.Backend = (*Store)(nil)
	_ storage.Stamper = (*Store)(nil)
	_ storage.Checker = (*Store)(nil)

	_ storage.HistoryReader = (*Store)(nil)
	_ storage.Sequencer     = (*Store)(nil)
	_ storage.Writer        = (*Store)(nil)
	_ storage.Importer      = (*Store)(nil)
	_ storage.StampReader   = (*Store)(nil)
)

// Revision implements storage.Backend.
func (s *Store) Revision(ctx context.Context) (storage.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if !s.enter() {
		return 0, storage.ErrClosed
	}
	defer s.leave()
	return s.published(), nil
}

// published returns the newest published revision.
func (s *Store) published() storage.Revision {
	s.state.RLock()
	defer s.state.RUnlock()
	return s.state.revision
}

// newest returns the newest published revision of the store and of key; ofKey is 0 if the key does not
// exist.
func (s *Store) newest(key string) (revision, ofKey storage.Revision) {
	s.state.RLock()
	defer s.state.RUnlock()
	return s.state.revision, s.state.index[key]
}

// oldestReadable returns the oldest revision that reads are served for. Revisions that exceed the
// retention time count as compacted, even if the committer has not compacted them yet.
func (s *Store) oldestReadable() storage.Revision {
	return max(s.floorRevision(), s.ages.oldest(time.Now()))
}

// floorRevision returns the oldest revision that the database retains.
func (s *Store) floorRevision() storage.Revision { return storage.Revision(s.floor.Load()) }

// compactedError returns the error for a read before the retained history.
func (s *Store) compactedError() error { return &storage.CompactedError{Oldest: s.oldestReadable()} }

// Stats returns the current statistics.
func (s *Store) Stats() Stats {
	lost, compacted := s.lossError() != nil, s.oldestReadable()
	s.state.RLock()
	defer s.state.RUnlock()
	return Stats{
		Commits:   s.stats.commits.Load(),
		Batches:   s.stats.batches.Load(),
		Fsyncs:    s.stats.fsyncs.Load(),
		Keys:      len(s.state.index),
		Revision:  s.state.revision,
		Compacted: compacted,
		Damaged:   len(s.state.damaged),
		Lost:      lost,
	}
}

// Writable implements storage.Writer.
func (s *Store) Writable(ctx context.Context) error {
	if why := s.unwritable.Load(); why != nil {
		return *why
	}
	return ctx.Err()
}

// stop makes the store fail all later writes with ErrStopped because of err. It returns the error for the
// failed write. Only the committer calls it.
func (s *Store) stop(err error) error {
	err = fmt.Errorf("%w in %s: %w", ErrStopped, s.dir, err)
	s.committer.broken = err
	s.unwritable.Store(&err)
	s.logger.Error("storage stopped after a failed write; reopen it to accept writes again", "dir", s.dir, "err", err)
	return err
}

// enter acquires access for reading. It returns false if the store is closed. Otherwise the caller may
// use the database until it calls leave.
func (s *Store) enter() bool {
	s.access.RLock()
	if s.access.closed {
		s.access.RUnlock()
		return false
	}
	return true
}

func (s *Store) leave() { s.access.RUnlock() }

// Close finishes the waiting writes, ends watches and closes the database.
//
// Close writes the records in memory to a table. If the disk has no space for the table, Close fails with
// storage.ErrFull; it also fails if the directory does not accept new files. In both cases the store
// keeps the lock of its directory, and Close can be called again when the cause is gone. All commits
// are in the log of the database, so no data is lost if the process exits without closing the store.
func (s *Store) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closing.closed {
		return nil
	}
	s.queue.Lock()
	s.queue.closed = true
	s.signal()
	s.queue.Unlock()
	<-s.done
	s.log.Close()
	s.access.Lock()
	s.access.closed = true
	s.access.Unlock()
	s.committer.flattener.done.Wait()
	fault, err := s.closeDatabase()
	if err != nil {
		return fmt.Errorf("storage in %s could not be closed; call Close again: %w", s.dir, err)
	}
	s.closing.closed = true
	s.committer.releaseBallast()
	fault = errors.Join(fault, s.removeUnusedLog(), s.finishWitness())
	s.privacy.protect()
	if fault = errors.Join(fault, s.unlock()); fault != nil {
		return fmt.Errorf("close storage in %s: %w", s.dir, fault)
	}
	return nil
}

const (
	spaceWait = 3 * time.Second  // maximum time that Close waits for free space
	closeWait = 30 * time.Second // maximum time that Close waits for Badger
)

// closeDatabase closes the database. closeErr is the error of Badger, which is closed then. If err is not
// nil, Badger is still open: it retries forever to write its memtable, so closeDatabase gives up after
// closeWait or when the directory does not accept files.
func (s *Store) closeDatabase() (closeErr, err error) {
	c := &s.closing
	if c.result == nil {
		if err := s.closable(); err != nil {
			return nil, err
		}
		c.result = make(chan error, 1)
		go func() { c.result <- s.db.Close() }()
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for end := time.Now().Add(closeWait); ; {
		select {
		case closeErr = <-c.result:
			return closeErr, nil
		case <-ticker.C:
			if err = probe(s.dir); err == nil && time.Now().After(end) {
				err = errors.New("the database did not write its last table in time")
			}
			if err != nil {
				return nil, err
			}
		}
	}
}

// closable returns an error if the disk has no space for the memtable or the directory does not accept
// files.
func (s *Store) closable() error {
	p := &s.committer.logs
	if p.used == 0 && p.unflushed(s.logPath) == 1 {
		return nil
	}
	if err := probe(s.dir); err != nil {
		return err
	}
	unused := max(0, p.logBytes()-p.used) // allocated bytes of the current log that become no table
	for end := time.Now().Add(spaceWait); ; time.Sleep(10 * time.Millisecond) {
		err := requireSpace(s.dir, s.disk, s.logTables()-unused)
		if err == nil || time.Now().After(end) {
			return err
		}
		if time.Until(end) < spaceWait/2 { // running compactions had time to end
			s.committer.releaseBallast()
		}
	}
}
