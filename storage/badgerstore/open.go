package badgerstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/internal/history"
)

// Keys of the database: a letter and the rest. Records have their revision as
// version. The versions of stamps and of the mark count on their own.
const (
	recordPrefix = "k"
	stampPrefix  = "s"
	markKey      = "mark"
)

// markBytes is the size of the mark: the start of the history and a revision
// that the store had reached, both big-endian.
const markBytes = 16

// Bounds of the commits kept in memory for watches that are nearly up to date.
const (
	logEvents = 16 << 10
	logBytes  = 8 << 20
)

// Open opens the store in o.Dir. It fails with ErrInUse if somebody has it
// open already, and with an error that names the directory if what is there
// is damaged or of another make.
func Open(o Options) (*Store, error) {
	if o.Dir == "" {
		return nil, errors.New("open storage: no directory is given")
	}
	if o.Retain == 0 {
		o.Retain = 5 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.disk == nil {
		o.disk = diskBytes
	}
	if err := os.MkdirAll(o.Dir, privateDir); err != nil {
		return nil, fmt.Errorf("open storage in %s: %w", o.Dir, err)
	}
	if o.memTable == 0 {
		o.memTable = tableBytes(o.Dir, o.disk)
	}
	s := &Store{dir: o.Dir, disk: o.disk, filling: o.filling, retain: o.Retain, logger: o.Logger, done: make(chan struct{}), piece: pieceSize(settings(o)), batch: int(o.memTable / batchesOfTable)}
	s.queue.ready = make(chan struct{}, 1)
	s.committer.flattener = &flattener{}
	s.committer.flattener.forgot.Store(true) // the last process may not have merged what was forgotten
	if err := s.start(o); err != nil {
		return nil, fmt.Errorf("open storage in %s: %w", o.Dir, err)
	}
	limits := eventlog.Limits{Age: max(o.Retain, 0), Events: logEvents, Bytes: logBytes}
	s.log = history.New(s.state.revision, limits)
	s.keepReserve()
	go s.run()
	return s, nil
}

// start opens the database, once its files are known to be whole, and loads it. A directory
// whose files are not whole stays as it is.
func (s *Store) start(o Options) (err error) {
	if s.unlock, err = hold(o.Dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.unlock())
		}
	}()
	switch err := unfinishedImport(o.Dir); {
	case !o.filling && err != nil:
		return err
	case o.filling && err == nil: // somebody else was faster
		return storage.ErrNotEmpty
	}
	found, err := look(o.Dir)
	if err != nil {
		return err
	}
	if err := requireRoom(o.Dir, o.disk, o.memTable*int64(openTables+len(found.logs))); err != nil {
		return err
	}
	if err := found.prove(); err != nil {
		return err
	}
	if err := s.own(); err != nil {
		return err
	}
	_, size, known := o.disk(o.Dir)
	o.leveled = o.leveled || !known || size >= largeDisk || found.bytes > leveledFrom
	s.leveled = o.leveled
	set := settings(o)
	if err := found.repair(o.Logger, set); err != nil {
		return err
	}
	if s.db, err = openDatabase(set); err != nil {
		return err
	}
	if err = s.openSpare(set.MemTableSize); err == nil {
		err = s.load(found)
	}
	s.privacy.keep()
	if err != nil {
		return errors.Join(err, s.db.Close(), s.closeSpare(), s.committer.witness.close())
	}
	return nil
}

// own makes the directory the private one of this store, until unlock.
func (s *Store) own() error {
	if err := writable(s.dir); err != nil {
		return err
	}
	forget, err := noteOwner(s.dir)
	if err != nil {
		return err
	}
	unhold := s.unlock
	s.unlock = func() error { return errors.Join(forget(), unhold()) }
	shield(s.dir, s.logger)
	s.privacy = privacy{dir: s.dir, logger: s.logger}
	s.privacy.keep()
	return nil
}

func settings(o Options) badger.Options {
	b := badger.DefaultOptions(o.Dir)
	b.SyncWrites = true
	b.DetectConflicts = false
	b.NumVersionsToKeep = 1
	b.MetricsEnabled = false
	b.NumCompactors = 0      // see flattener
	b.NumLevelZeroTables = 1 // Flatten leaves so many in level 0
	b.NumLevelZeroTablesStall = math.MaxInt
	b.BaseLevelSize = math.MaxInt64 // all merged tables are in one level
	if o.leveled {
		d := badger.DefaultOptions("")
		b.NumCompactors, b.BaseLevelSize, b.NumLevelZeroTables = 2, d.BaseLevelSize, d.NumLevelZeroTables
		b.NumLevelZeroTablesStall = 100 // a burst of writes does not wait for compactions
	}
	b.NumGoroutines = 2
	b.ValueLogFileSize = 1 << 20 // nothing goes there, see seal
	b.BlockCacheSize = 8 << 20
	b.IndexCacheSize = 0
	b.MemTableSize = cmp.Or(o.memTable, largeTable)
	b.BaseTableSize = min(1<<20, b.MemTableSize/4) // a merge uses about 26 times this much memory
	b.ValueThreshold = min(1<<20, b.MemTableSize/10)
	b.VerifyValueChecksum = true
	b.BypassLockGuard = locks
	b.ChecksumVerificationMode = options.OnBlockRead
	b.Logger = logger{o.Logger}
	return b
}

// openDatabase turns what the database says, also in a panic over files that
// it does not understand, into one error.
func openDatabase(set badger.Options) (db *badger.DB, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			db, err = nil, fmt.Errorf("the files are damaged: %v", fault)
		}
	}()
	db, err = badger.OpenManaged(set)
	switch {
	case err == nil:
		return db, nil
	case strings.Contains(err.Error(), "Cannot acquire directory lock"):
		return nil, inUse(set.Dir)
	}
	return nil, fmt.Errorf("the files are damaged or not a store's: %w", err)
}

// inUse is ErrInUse with the process that has the directory, if that is known.
func inUse(dir string) error {
	owner := ""
	if pid, err := os.ReadFile(filepath.Join(dir, lockFile)); err == nil && len(pid) > 0 && len(pid) < 32 {
		owner = " by process " + strings.TrimSpace(string(pid))
	}
	return fmt.Errorf("%w%s; a directory serves one process at a time", ErrInUse, owner)
}

// writable creates the directory if needed, and returns an error if it takes no files. Badger
// reports that as damage.
func writable(dir string) error {
	if err := os.MkdirAll(dir, privateDir); err != nil {
		return err
	}
	return probe(dir)
}

// probe returns an error if a directory takes no files.
func probe(dir string) error {
	f, err := os.CreateTemp(dir, "probe")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// load builds the index and reads each record once. The revision is the largest
// one found, or the one in the mark if commits after the records found were
// deletions that are discarded by now.
func (s *Store) load(found *survey) error {
	txn := s.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	if err := s.loadMark(txn); err != nil {
		return err
	}
	if err := s.finishGroups(txn); err != nil {
		return err
	}
	s.floor.Store(max(s.floor.Load(), int64(found.told.floor)))
	s.state.index = make(map[string]storage.Revision)
	s.index.blocked = max(s.discarded(), indexedUpTo(txn))
	s.state.revision = max(s.state.revision, s.index.blocked)
	s.state.damaged = make(map[string]*storage.DamagedError)
	s.committer.pieces.live = make(map[string]large)
	was := s.loadRecords(txn, found.told.revision)
	if err := s.settle(found.told, found.witnessed, was, newestPiece(txn)); err != nil {
		return err
	}
	sortCommits(s.index.tail)
	s.loadAges(txn)
	s.db.SetDiscardTs(uint64(s.discarded()))
	return s.loadPieces()
}

// loadRecords returns the set of records at a revision.
func (s *Store) loadRecords(txn *badger.Txn, at storage.Revision) set {
	it := txn.NewIterator(badger.IteratorOptions{AllVersions: true, Prefix: []byte(recordPrefix)})
	defer it.Close()
	l := &loader{at: at, floor: s.discarded()}
	p := &s.committer.pieces
	var by storage.Revision // what replaced the entry
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		key, revision, deleted := string(item.Key()[len(recordPrefix):]), storage.Revision(item.Version()), item.IsDeletedOrExpired()
		s.state.revision = max(s.state.revision, revision)
		if revision > s.index.blocked {
			s.index.tail = append(s.index.tail, commit{key: key, revision: revision, deleted: deleted})
		}
		newest, readable := l.visit(key, revision, deleted)
		if readable && !deleted {
			s.loadRecord(item, key, revision, newest, by)
		}
		by = revision
	}
	p.sortReplaced()
	return l.was
}

func (s *Store) loadRecord(item *badger.Item, key string, revision storage.Revision, newest bool, by storage.Revision) {
	p := &s.committer.pieces
	n := 0
	_ = item.Value(func(head []byte) error {
		n = piecesOf(item.UserMeta(), head)
		return nil
	})
	switch {
	case newest:
		s.state.index[key] = revision
		s.committer.live.add(key, revision)
		if n > 0 {
			p.live[key] = large{revision: revision, n: n}
		}
		_, err := s.record(key, item)
		_ = s.damage(err)
	case n > 0:
		p.replaced = append(p.replaced, large{revision: revision, by: by, n: n})
	}
}

func (s *Store) loadMark(txn *badger.Txn) error {
	item, err := txn.Get([]byte(markKey))
	if errors.Is(err, badger.ErrKeyNotFound) {
		s.committer.marked = 0
		return s.loadStampVersion(txn)
	}
	if err != nil {
		return err
	}
	mark, err := item.ValueCopy(nil)
	if err != nil {
		return err
	}
	if len(mark) != markBytes {
		return fmt.Errorf("the high-water mark has %d bytes instead of %d", len(mark), markBytes)
	}
	floor, revision := binary.BigEndian.Uint64(mark), binary.BigEndian.Uint64(mark[8:])
	if floor > revision || revision > math.MaxInt64 {
		return fmt.Errorf("the high-water mark %d, %d is out of range", floor, revision)
	}
	s.floor.Store(int64(floor))
	s.state.revision = storage.Revision(revision)
	s.committer.marked = item.Version()
	return s.loadStampVersion(txn)
}

func (s *Store) loadStampVersion(txn *badger.Txn) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(stampPrefix)})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		s.committer.marked = max(s.committer.marked, it.Item().Version())
	}
	return nil
}

// logger passes Badger's messages on. Its information is for developers.
type logger struct{ to *slog.Logger }

func (l logger) Errorf(format string, args ...any)   { l.to.Error(line(format, args)) }
func (l logger) Warningf(format string, args ...any) { l.to.Warn(line(format, args)) }
func (l logger) Infof(format string, args ...any)    { l.to.Debug(line(format, args)) }
func (l logger) Debugf(string, ...any)               {}

func line(format string, args []any) string {
	return "badger: " + strings.TrimSpace(fmt.Sprintf(format, args...))
}
