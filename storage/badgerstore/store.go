// Package badgerstore keeps a store in a local directory, in a Badger
// database in managed mode.
//
// One goroutine commits: it takes the writes that wait, compares them against
// an index of the newest revision of each key, writes them in one batch with
// one fsync, and then publishes them. A revision is the version of the entry
// that it wrote, so older revisions are read from the database itself, and
// nothing above the published revision is ever read. Each write is exactly one
// entry: after a crash the entries of an unacknowledged batch may be there in
// part, and each of them alone is a whole commit, or belongs to one of several
// writes, which is on the disk as a whole before its batch and made whole by Open.
// A large value is in pieces, which are on the disk before that entry is written.
//
// The database does not notice when it loses a part of its files, so the store
// keeps a witness beside it, the file REVISION: what was acknowledged, how many
// records there are and a sum of them. Each record has a checksum of its own.
// Open refuses a directory whose tables are not all there, and touches nothing
// in it; Inspect says what is wrong and Salvage reads what is left. What only
// the end of the log has lost is gone: the store serves the rest, says so in the
// file LOST and in Check until somebody removes that file, and never gives a
// revision away again.
//
// # Full disks
//
// If the disk is nearly full, writes other than deletions fail with
// storage.ErrFull while there is still room for all deletions and for what the
// database writes in the background. Deletions give their room back. On a disk
// of less than 2 GiB about half of it is usable for records.
//
// The database maps its tables into memory. If another program takes all the
// room that is left while a table is being written, the process ends with
// SIGBUS, and the store finds everything acknowledged when it is opened again.
// If at that moment the file system cannot create a file, a compaction of the
// database drops records, which Open then reports. Keep such programs off the
// disk, or give the store a file system of its own.
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

// Bounds of one write. Larger ones are storage.ErrTooLarge.
const (
	MaxKeyBytes   = 32 << 10
	MaxValueBytes = 8 << 20
)

var (
	// ErrInUse says that another store, in this process or in another one,
	// has the directory open.
	ErrInUse = errors.New("storage directory is in use")
	// ErrStopped says that a write to the disk failed, after which the store
	// takes no more writes. What was acknowledged stays readable; opening the
	// directory anew finds out what of the failed batch is there.
	ErrStopped = storage.ErrStopped
)

// Options say where a store lives and how much history it keeps.
type Options struct {
	// Dir is the directory. It is made, with mode 0700, if it does not exist. An existing one
	// that other users can look into gets that mode, too, unless it has other directories in it or
	// cannot be changed: then the log has a warning, and Check fails.
	Dir string
	// Retain is how long replaced and deleted records stay readable, as
	// storage.Retention has it; 0 means 5 minutes, less than 0 until Compact is
	// called. The time that the store is closed counts.
	Retain time.Duration
	// Logger gets what the database says; nil drops it.
	Logger *slog.Logger

	filling  bool                                        // see Fill
	leveled  bool                                        // Badger compacts on its own, see flattener
	memTable int64                                       // bytes, for tests that want many tables
	disk     func(string) (free, size int64, known bool) // bytes, for tests that want a full one
}

// Stats counts since Open, but Keys and the revisions, which are of now.
type Stats struct {
	Commits   uint64           // writes that were committed
	Batches   uint64           // groups that they were committed in
	Fsyncs    uint64           // waits for the disk, also those of compactions
	Keys      int              // keys that exist
	Revision  storage.Revision // newest commit
	Compacted storage.Revision // start of the history
	Damaged   int              // records that cannot be read
	Lost      bool             // commits are lost, see Check
}

// Store is a storage.Backend in a directory. It also implements storage.Stamper.
//
// The committing goroutine (run) owns committer and is the only one that writes to the
// database. Whoever wants something written puts a request into the queue and waits
// until it is handled or its context ends; then the request may be carried out
// nevertheless.
//
// A batch is published after it is on the disk: first index has it, then, in one step,
// state, then log. So who sees a revision finds everything up to it, and a watch yields
// nothing that cannot be read. Reads ask the database for a published revision, so what
// is half written above it cannot be seen.
//
// A compaction raises floor before the database may discard anything. A read therefore
// looks at floor when it is done: if its revision is still kept, so was all it read.
//
// life is held for reading around every use of the database, but by the committer, and
// for writing by Close once the committer has ended: the database is never used after
// it is closed. It is taken before the other locks. Of those, of the queue, index, ages,
// state and log, none is held while another one is taken, nor while anybody waits for
// the disk.
type Store struct {
	dir     string
	retain  time.Duration
	logger  *slog.Logger
	db      *badger.DB
	disk    func(dir string) (free, size int64, known bool)
	leveled bool // Badger compacts on its own
	log     *history.Log
	floor   atomic.Int64 // start of the history, set before it is discarded
	piece   int          // bytes of one piece of a large value
	batch   int          // bytes of one batch
	unlock  func() error // gives the directory back
	privacy privacy      // of start, the committer and Close, one after the other
	filling bool         // by Fill, which takes the mark away

	state struct { // what is published, replaced as one
		sync.RWMutex
		revision storage.Revision
		index    map[string]storage.Revision
		damaged  map[string]*storage.DamagedError // of those in index
	}
	unready atomic.Pointer[error] // why nothing can be written, see Writable

	index revisionIndex
	ages  ages
	queue struct { // writes that wait for the committer
		sync.Mutex
		waiting []*request
		ready   chan struct{} // holds a token if waiting is not empty or closed is set
		closed  bool
	}
	life struct { // held for reading around every use of db
		sync.RWMutex
		closed bool
	}
	committer committer
	stats     struct{ commits, batches, fsyncs, reads atomic.Uint64 }
	closing   struct {
		sync.Mutex
		result chan error // of Badger's Close, once it was called
		closed bool
	}
	done chan struct{} // closed when the committer ended
}

var (
	_ storage.Backend = (*Store)(nil)
	_ storage.Stamper = (*Store)(nil)
	_ storage.Checker = (*Store)(nil)

	_ storage.Historian   = (*Store)(nil)
	_ storage.Sequencer   = (*Store)(nil)
	_ storage.Writer      = (*Store)(nil)
	_ storage.Importer    = (*Store)(nil)
	_ storage.StampReader = (*Store)(nil)
)

// Revision returns the newest revision.
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

func (s *Store) published() storage.Revision {
	s.state.RLock()
	defer s.state.RUnlock()
	return s.state.revision
}

// newest returns the published revision and that of a key, 0 if it does not exist.
func (s *Store) newest(key string) (revision, of storage.Revision) {
	s.state.RLock()
	defer s.state.RUnlock()
	return s.state.revision, s.state.index[key]
}

// compacted returns the oldest revision that can be read: what was compacted, or
// is about to be because it is too old, is gone.
func (s *Store) compacted() storage.Revision {
	return max(s.discarded(), s.ages.oldest(time.Now()))
}

// discarded returns the oldest revision that the database may still be asked for.
func (s *Store) discarded() storage.Revision { return storage.Revision(s.floor.Load()) }

func (s *Store) forgotten() error { return &storage.CompactedError{Oldest: s.compacted()} }

// Stats returns the store's counters.
func (s *Store) Stats() Stats {
	lost, compacted := s.lost() != nil, s.compacted()
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
	if why := s.unready.Load(); why != nil {
		return *why
	}
	return ctx.Err()
}

// stop makes a failure the end of all writes.
func (s *Store) stop(err error) error {
	err = fmt.Errorf("%w in %s: %w", ErrStopped, s.dir, err)
	s.committer.broken = err
	s.unready.Store(&err)
	s.logger.Error("storage takes no more writes", "dir", s.dir, "err", err)
	return err
}

// enter reports whether the database may be read, until leave.
func (s *Store) enter() bool {
	s.life.RLock()
	if s.life.closed {
		s.life.RUnlock()
		return false
	}
	return true
}

func (s *Store) leave() { s.life.RUnlock() }

// Close finishes the writes that wait, ends watches and closes the database.
//
// The records in memory are written to a table. If the disk has no room for it, or the directory
// takes no files, Close returns an error, storage.ErrFull in the first case, and the store keeps
// its directory: free some room and call Close again. All commits are in the log, so the
// process may also exit without closing the store.
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
	s.life.Lock()
	s.life.closed = true
	s.life.Unlock()
	s.committer.flattener.done.Wait()
	fault, err := s.closeDatabase()
	if err != nil {
		return fmt.Errorf("storage in %s is not closed: %w", s.dir, err)
	}
	s.closing.closed = true
	s.committer.dropReserve()
	fault = errors.Join(fault, s.closeSpare(), s.rest())
	s.privacy.keep()
	if fault = errors.Join(fault, s.unlock()); fault != nil {
		return fmt.Errorf("close storage in %s: %w", s.dir, fault)
	}
	return nil
}

const (
	roomWait  = 3 * time.Second  // how long Close waits for room
	closeWait = 30 * time.Second // and for Badger
)

// closeDatabase closes Badger, whose error is fault. Badger retries for ever to write the table in
// memory, so closeDatabase returns err if the table cannot be written.
func (s *Store) closeDatabase() (fault, err error) {
	c := &s.closing
	if c.result == nil {
		if err := s.closable(); err != nil {
			return nil, err
		}
		c.result = make(chan error, 1)
		go func() { c.result <- s.db.Close() }()
	}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for end := time.Now().Add(closeWait); ; {
		select {
		case fault = <-c.result:
			return fault, nil
		case <-look.C:
			if err = probe(s.dir); err == nil && time.Now().After(end) {
				err = errors.New("the database is still writing its last table, or cannot write it")
			}
			if err != nil {
				return nil, err
			}
		}
	}
}

// closable returns an error if the records in memory cannot be written to a table.
func (s *Store) closable() error {
	p := &s.committer.spare
	if p.used == 0 && p.unflushed(s.logPath) == 1 {
		return nil
	}
	if err := probe(s.dir); err != nil {
		return err
	}
	unused := max(0, p.logBytes()-p.used) // of the log in use
	for end := time.Now().Add(roomWait); ; time.Sleep(10 * time.Millisecond) {
		err := requireRoom(s.dir, s.disk, s.logTables()-unused)
		if err == nil || time.Now().After(end) {
			return err
		}
		if time.Until(end) < roomWait/2 { // compactions that were under way have ended
			s.committer.dropReserve()
		}
	}
}
