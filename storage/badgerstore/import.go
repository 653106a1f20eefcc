package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// importFile is there while a store is being filled. Open refuses the directory then, since
// it has a part of what it should have.
const importFile = "IMPORT"

// errImporting is the answer to writes of others meanwhile.
var errImporting = errors.New("storage is being filled")

func unfinishedImport(dir string) error {
	path := filepath.Join(dir, importFile)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("what the directory holds is incomplete, as %s says: it was filled from another store or a backup, and that was broken off; begin that again", path)
}

// Fill opens a directory in which there is no store and has it filled, from a backup or another
// store. The directory is refused by Open until fill has returned without an error, and after an
// error nothing of the store is left in it. Nor is what an attempt left behind that was broken
// off, by the end of the process, say: the next one begins with its removal. A directory that has a
// store is storage.ErrNotEmpty and stays as it is, and so do files that are not the store's.
// It fails with ErrInUse if somebody has the store open.
func Fill(o Options, fill func(*Store) error) error {
	err := writable(o.Dir)
	if err == nil {
		err = claim(o.Dir)
	}
	if err != nil {
		return fmt.Errorf("fill %s: %w", o.Dir, err)
	}
	o.filling = true
	s, err := Open(o)
	if err == nil {
		if err = fill(s); err == nil {
			err = complete(o.Dir) // before somebody else can have the directory
		}
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		err = errors.Join(err, discard(o.Dir))
	}
	return err
}

// claim marks a directory as one that is being filled.
func claim(dir string) (err error) {
	unlock, err := hold(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	path := filepath.Join(dir, importFile)
	if _, err := os.Lstat(path); err == nil {
		return removeFiles(dir)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if name := f.Name(); ownFile(name) && name != lockFile {
			return fmt.Errorf("%w: it has the file %s", storage.ErrNotEmpty, name)
		}
	}
	return markImport(dir)
}

// markImport has Open refuse the directory.
func markImport(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, importFile), os.O_CREATE|os.O_WRONLY, privateFile)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncDir(dir))
}

// complete has Open take the directory.
func complete(dir string) error {
	return errors.Join(os.Remove(filepath.Join(dir, importFile)), syncDir(dir))
}

// discard empties a directory whose filling was broken off. Nothing that anybody was ever shown is
// lost by that: any other directory stays as it is.
func discard(dir string) (err error) {
	unlock, err := hold(dir)
	if err != nil {
		return fmt.Errorf("discard what is in %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := os.Lstat(filepath.Join(dir, importFile)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := removeFiles(dir); err != nil { // it is refused as long as anything is left
		return err
	}
	return complete(dir)
}

// removeFiles removes the store but for the mark.
func removeFiles(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if name := f.Name(); ownFile(name) && name != importFile {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return syncDir(dir)
}

// ownFile reports whether a file of the directory is the store's.
func ownFile(name string) bool {
	switch name {
	case lockFile, witnessFile, runningFile, lostFile, badger.ManifestFilename, "MANIFEST-REWRITE", "KEYREGISTRY", "DISCARD", importFile:
		return true
	}
	switch filepath.Ext(name) {
	case ".sst", ".mem", ".vlog", spoiltSuffix:
		return true
	}
	return false
}

// importing is a store that is being filled. What runs on the committing goroutine alone
// touches it.
type importing struct {
	store  *Store
	stamps map[string]string
	oldest storage.Revision
	newest storage.Revision
	holds  bool                        // it is this one that fills the store
	begun  bool                        // something was written
	large  map[storage.Revision]string // keys of values in pieces
}

// Import implements storage.Importer. If it fails once it has written something, the store
// is stopped and its directory is refused by Open: nobody takes the part for the whole.
func (s *Store) Import(ctx context.Context, stamps map[string]string, oldest storage.Revision, records iter.Seq2[storage.Record, error]) error {
	in := &importing{store: s, stamps: stamps, oldest: oldest, newest: oldest, large: make(map[storage.Revision]string)}
	err := s.perform(ctx, in.begin)
	if err == nil {
		err = in.takeAll(ctx, records)
	}
	if err == nil {
		err = s.perform(context.WithoutCancel(ctx), in.finish) // whose outcome the caller is to know
	}
	if err != nil {
		return errors.Join(err, s.perform(context.WithoutCancel(ctx), func() error { return in.abandon(err) }))
	}
	return nil
}

// perform runs do on the committing goroutine.
func (s *Store) perform(ctx context.Context, do func() error) error {
	r := &request{ctx: ctx, do: do, done: make(chan struct{})}
	if err := s.submit(r); err != nil {
		return err
	}
	return r.err
}

func (in *importing) begin() error {
	s := in.store
	if s.committer.broken != nil {
		return s.committer.broken
	}
	if s.committer.importing {
		return errImporting
	}
	if s.published() != 0 || s.committer.next != 1 {
		return fmt.Errorf("import into %s: %w", s.dir, storage.ErrNotEmpty)
	}
	if in.oldest < 0 || in.oldest == math.MaxInt64 {
		return fmt.Errorf("import: the revision %d is out of range", in.oldest)
	}
	have, err := s.stamps()
	if err != nil {
		return err
	}
	for name, value := range in.stamps {
		if len(name)+len(value) > MaxKeyBytes {
			return fmt.Errorf("import the stamp %.80q: %w", name, storage.ErrTooLarge)
		}
		if other, ok := have[name]; ok && other != value {
			return fmt.Errorf("import into %s: %w: its stamp %q says %q, not %q", s.dir, storage.ErrNotEmpty, name, other, value)
		}
	}
	s.committer.importing, in.holds = true, true
	return markImport(s.dir)
}

// takeAll hands the records to the committing goroutine, a batch at a time.
func (in *importing) takeAll(ctx context.Context, records iter.Seq2[storage.Record, error]) error {
	var some []storage.Record
	size := 0
	flush := func() error {
		if len(some) == 0 {
			return nil
		}
		batch := some
		some, size = nil, 0
		return in.store.perform(ctx, func() error { return in.take(batch) })
	}
	for rec, err := range records {
		if err == nil {
			err = in.check(rec)
		}
		if err != nil {
			return err
		}
		some = append(some, rec)
		if size += len(rec.Key) + len(rec.Value) + batchEntry; size >= in.store.batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func (in *importing) check(rec storage.Record) error {
	switch {
	case len(rec.Key) > MaxKeyBytes || len(rec.Value) > MaxValueBytes:
		return fmt.Errorf("import %.80q with %d bytes: %w", rec.Key, len(rec.Value), storage.ErrTooLarge)
	case rec.Revision <= 0 || rec.Revision == math.MaxInt64:
		return fmt.Errorf("import %.80q: its revision %d is out of range", rec.Key, rec.Revision)
	}
	return nil
}

// versioned is an entry and its version; a nil value deletes.
type versioned struct {
	entry   *badger.Entry
	version uint64
	deleted bool
}

func (v versioned) size() int { return len(v.entry.Key) + len(v.entry.Value) + batchEntry }

// take writes some records.
func (in *importing) take(records []storage.Record) error {
	s := in.store
	if s.committer.broken != nil {
		return s.committer.broken
	}
	var list []versioned
	for _, rec := range records {
		in.newest = max(in.newest, rec.Revision)
		at := uint64(rec.Revision)
		if rec.Value == nil {
			list = append(list, versioned{&badger.Entry{Key: recordKey(rec.Key)}, at, true})
			continue
		}
		head, pieces := seal(rec, s.piece)
		if other, ok := in.large[rec.Revision]; len(pieces) > 0 && ok && other != rec.Key {
			return fmt.Errorf("import %.80q and %.80q, of one commit with more than %d bytes each: %w", other, rec.Key, s.piece, storage.ErrTooLarge)
		}
		for _, piece := range pieces {
			in.large[rec.Revision] = rec.Key
			list = append(list, versioned{piece, at, false})
		}
		list = append(list, versioned{head, at, false})
	}
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && (n == 0 || size+list[n].size() <= s.batch) {
			size += list[n].size()
			n++
		}
		if err := s.full(int64(size)); err != nil {
			return err
		}
		in.begun = true
		if err := s.flush(size, func(batch *badger.WriteBatch) error { return putVersions(batch, list[:n]) }); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func putVersions(batch *badger.WriteBatch, list []versioned) error {
	for _, v := range list {
		var err error
		if v.deleted {
			err = batch.DeleteAt(v.entry.Key, v.version)
		} else {
			err = batch.SetEntryAt(v.entry, v.version)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish reads what was written as Open would, and then shows it.
func (in *importing) finish() error {
	s := in.store
	in.begun = true
	for name, value := range in.stamps {
		if _, err := s.stamp(name, value); err != nil {
			return err
		}
	}
	if err := s.note([]byte(markKey), mark(in.oldest, in.newest)); err != nil {
		return err
	}
	if err := s.committer.witness.close(); err != nil {
		return err
	}
	s.committer.witness = nil
	// Without it nothing can be told from what Open would find.
	told := testimony{revision: in.newest, floor: in.oldest, reserved: in.newest, live: set{keys: -1}}
	fresh := &Store{dir: s.dir, retain: s.retain, logger: s.logger, db: s.db, disk: s.disk, leveled: s.leveled, piece: s.piece, batch: s.batch}
	fresh.committer.spare, fresh.committer.flattener, fresh.committer.reserve = s.committer.spare, s.committer.flattener, s.committer.reserve
	s.life.Lock()
	defer s.life.Unlock()
	if err := fresh.load(&survey{dir: s.dir, told: told, witnessed: true}); err != nil {
		return errors.Join(err, fresh.committer.witness.close())
	}
	if !s.filling {
		if err := complete(s.dir); err != nil {
			return errors.Join(err, fresh.committer.witness.close())
		}
	}
	s.adopt(fresh)
	return nil
}

// adopt takes over what another Store has loaded from the same database. The caller holds
// life for writing, and is the committer.
func (s *Store) adopt(fresh *Store) {
	s.committer = fresh.committer
	s.index.Lock()
	s.index.blocked, s.index.tail = fresh.index.blocked, fresh.index.tail
	s.index.Unlock()
	s.ages.Lock()
	s.ages.Retention, s.ages.saved = fresh.ages.Retention, fresh.ages.saved
	s.ages.Unlock()
	s.state.Lock()
	s.state.revision, s.state.index, s.state.damaged = fresh.state.revision, fresh.state.index, fresh.state.damaged
	s.state.Unlock()
	s.floor.Store(fresh.floor.Load())
	s.log.Begin(s.published())
}

// abandon stops a store that has a part of what it should have.
func (in *importing) abandon(why error) error {
	s := in.store
	if !in.holds {
		return nil
	}
	s.committer.importing = false
	if !in.begun {
		if s.filling {
			return nil
		}
		return complete(s.dir)
	}
	if s.committer.broken == nil {
		s.stop(fmt.Errorf("it was not filled: %w", why))
	}
	return nil
}
