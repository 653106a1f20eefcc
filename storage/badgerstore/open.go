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

// Database keys begin with a letter for the kind of the entry. The version of a record is its revision.
// Stamps, the mark and other metadata have a separate version counter, committer.marked.
const (
	recordPrefix = "k"
	stampPrefix  = "s"
	markKey      = "mark"
)

// markBytes is the size of the mark, which holds the start of the history and a revision that the store
// had reached, both big-endian. Without the mark, the newest revision would be forgotten when the
// tombstones of the newest deletions are discarded.
const markBytes = 16

// Limits of the history in memory, which serves watches that are nearly up to date.
const (
	logEvents = 16 << 10
	logBytes  = 8 << 20
)

// Open opens the store in o.Dir, and creates it if the directory is empty or does not exist. It fails with
// ErrInUse if the store is open already, and with storage.ErrFull if the disk has not enough free
// space. If files are damaged or do not belong to a store, Open fails and leaves the directory
// unchanged.
func Open(o Options) (*Store, error) {
	if o.Dir == "" {
		return nil, errors.New("open storage: no directory: set Options.Dir")
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
	s.committer.flattener.historyDropped.Store(true) // the last process may not have merged its tables after the last compaction
	if err := s.start(o); err != nil {
		return nil, fmt.Errorf("open storage in %s: %w", o.Dir, err)
	}
	limits := eventlog.Limits{Age: max(o.Retain, 0), Events: logEvents, Bytes: logBytes}
	s.log = history.New(s.state.revision, limits)
	s.maintainBallast()
	go s.run()
	return s, nil
}

// start locks the directory, verifies its files, opens the database and loads it. If the verification
// fails, the directory is unchanged.
func (s *Store) start(o Options) (err error) {
	if s.unlock, err = lockDir(o.Dir); err != nil {
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
	case o.filling && err == nil: // another process completed its import between claim and lock
		return storage.ErrNotEmpty
	}
	found, err := surveyDir(o.Dir)
	if err != nil {
		return err
	}
	if err := requireSpace(o.Dir, o.disk, o.memTable*int64(openTables+len(found.logs))); err != nil {
		return err
	}
	if err := found.verifyFiles(); err != nil {
		return err
	}
	if err := s.takeOwnership(); err != nil {
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
	if err = s.allocateLogs(set.MemTableSize); err == nil {
		err = s.load(found)
	}
	s.privacy.protect()
	if err != nil {
		return errors.Join(err, s.db.Close(), s.removeUnusedLog(), s.committer.witness.close())
	}
	return nil
}

// takeOwnership writes the process id into the lock file, adds the removal of the file to s.unlock, and makes
// the directory and its files private.
func (s *Store) takeOwnership() error {
	if err := writable(s.dir); err != nil {
		return err
	}
	removeOwner, err := writeOwner(s.dir)
	if err != nil {
		return err
	}
	unlock := s.unlock
	s.unlock = func() error { return errors.Join(removeOwner(), unlock()) }
	makeDirPrivate(s.dir, s.logger)
	s.privacy = privacy{dir: s.dir, logger: s.logger}
	s.privacy.protect()
	return nil
}

// settings returns the options of the database.
func settings(o Options) badger.Options {
	b := badger.DefaultOptions(o.Dir)
	b.SyncWrites = true
	b.DetectConflicts = false
	b.NumVersionsToKeep = 1
	b.MetricsEnabled = false
	b.NumCompactors = 0      // the store merges tables itself, see flattener
	b.NumLevelZeroTables = 1 // number of tables that Flatten leaves in level 0
	b.NumLevelZeroTablesStall = math.MaxInt
	b.BaseLevelSize = math.MaxInt64 // keeps all merged tables in one level
	if o.leveled {
		d := badger.DefaultOptions("")
		b.NumCompactors, b.BaseLevelSize, b.NumLevelZeroTables = 2, d.BaseLevelSize, d.NumLevelZeroTables
		b.NumLevelZeroTablesStall = 100 // prevents bursts of writes from waiting for compactions
	}
	b.NumGoroutines = 2
	b.ValueLogFileSize = 1 << 20 // unused, see seal
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

// openDatabase opens the database. It converts panics of Badger, which damaged files cause, to errors.
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
	return nil, fmt.Errorf("the files are damaged or do not belong to a store: %w", err)
}

// inUse returns ErrInUse with the id of the process that has the directory open, if it is known.
func inUse(dir string) error {
	owner := ""
	if pid, err := os.ReadFile(filepath.Join(dir, lockFile)); err == nil && len(pid) > 0 && len(pid) < 32 {
		owner = " by process " + strings.TrimSpace(string(pid))
	}
	return fmt.Errorf("%w%s; only one process at a time can open it", ErrInUse, owner)
}

// writable creates dir if it does not exist, and returns an error if files cannot be created in it. Badger
// would report that as damage.
func writable(dir string) error {
	if err := os.MkdirAll(dir, privateDir); err != nil {
		return err
	}
	return probe(dir)
}

// probe returns an error if files cannot be created in dir.
func probe(dir string) error {
	f, err := os.CreateTemp(dir, "probe")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// load builds the index, reads each record once to find damaged records, and compares the content of the
// database with the witness. The newest revision is the largest revision of an entry or the revision in
// the mark: the latter is larger if the newest commits were deletions with discarded tombstones.
func (s *Store) load(found *survey) error {
	txn := s.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	if err := s.loadMark(txn); err != nil {
		return err
	}
	if err := s.finishGroups(txn); err != nil {
		return err
	}
	s.floor.Store(max(s.floor.Load(), int64(found.record.floor)))
	s.state.index = make(map[string]storage.Revision)
	s.index.blocked = max(s.floorRevision(), indexedUpTo(txn))
	s.state.revision = max(s.state.revision, s.index.blocked)
	s.state.damaged = make(map[string]*storage.DamagedError)
	s.committer.pieces.live = make(map[string]large)
	atWitness := s.loadRecords(txn, found.record.revision)
	if err := s.reconcile(found.record, found.witnessed, atWitness, newestPiece(txn)); err != nil {
		return err
	}
	sortCommits(s.index.tail)
	s.loadAges(txn)
	s.db.SetDiscardTs(uint64(s.floorRevision()))
	return s.loadPieces()
}

// loadRecords reads all versions of all records into the index. It returns the set of records at revision
// at.
func (s *Store) loadRecords(txn *badger.Txn, at storage.Revision) set {
	it := txn.NewIterator(badger.IteratorOptions{AllVersions: true, Prefix: []byte(recordPrefix)})
	defer it.Close()
	l := &loader{at: at, floor: s.floorRevision()}
	p := &s.committer.pieces
	var by storage.Revision // revision that replaced the entry; the iterator yields newer versions first
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
	return l.atWitness
}

// loadRecord adds one version of a record to the index. by is the revision that replaced it, unless it is
// the newest version.
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
		_ = s.noteDamage(err)
	case n > 0:
		p.replaced = append(p.replaced, large{revision: revision, by: by, n: n})
	}
}

// loadMark reads the mark, and the newest version of the metadata.
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
		return fmt.Errorf("invalid high-water mark: %d bytes instead of %d", len(mark), markBytes)
	}
	floor, revision := binary.BigEndian.Uint64(mark), binary.BigEndian.Uint64(mark[8:])
	if floor > revision || revision > math.MaxInt64 {
		return fmt.Errorf("invalid high-water mark: history begins at revision %d, newest revision is %d", floor, revision)
	}
	s.floor.Store(int64(floor))
	s.state.revision = storage.Revision(revision)
	s.committer.marked = item.Version()
	return s.loadStampVersion(txn)
}

// loadStampVersion raises committer.marked to the newest version of a stamp.
func (s *Store) loadStampVersion(txn *badger.Txn) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(stampPrefix)})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		s.committer.marked = max(s.committer.marked, it.Item().Version())
	}
	return nil
}

// logger forwards the messages of Badger. Informational messages become debug messages.
type logger struct{ to *slog.Logger }

func (l logger) Errorf(format string, args ...any)   { l.to.Error(line(format, args)) }
func (l logger) Warningf(format string, args ...any) { l.to.Warn(line(format, args)) }
func (l logger) Infof(format string, args ...any)    { l.to.Debug(line(format, args)) }
func (l logger) Debugf(string, ...any)               {}

func line(format string, args []any) string {
	return "badger: " + strings.TrimSpace(fmt.Sprintf(format, args...))
}
