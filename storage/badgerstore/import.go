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

// importFile, the import mark, exists while a store is being filled. Open refuses a directory with this
// file, because its content is incomplete.
const importFile = "IMPORT"

// errImporting is returned for writes during an import.
var errImporting = errors.New("storage is being imported")

// unfinishedImport returns an error if dir has the import mark.
func unfinishedImport(dir string) error {
	path := filepath.Join(dir, importFile)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("the store is incomplete: the import or restore into it was interrupted, see the file %s; run it again", path)
}

// Fill creates a store in o.Dir and calls fill to import a backup or another store into it. It then closes
// the store.
//
// Open refuses the directory until fill has returned nil. If fill fails, Fill removes the files of the
// store. If the process ends during Fill, the next call of Fill removes the files first. Files that do
// not belong to a store stay.
//
// Fill fails with storage.ErrNotEmpty, and changes nothing, if the directory has a store already. It
// fails with ErrInUse if the store is open.
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
			err = removeImportMark(o.Dir) // while the store still holds the lock of the directory
		}
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		err = errors.Join(err, discard(o.Dir))
	}
	return err
}

// claim creates the import mark in dir, after it removed the files of an interrupted import. It fails with
// storage.ErrNotEmpty if the directory has a store.
func claim(dir string) (err error) {
	unlock, err := lockDir(dir)
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
			return fmt.Errorf("%w: found the file %s", storage.ErrNotEmpty, name)
		}
	}
	return markImport(dir)
}

// markImport creates the import mark.
func markImport(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, importFile), os.O_CREATE|os.O_WRONLY, privateFile)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncDir(dir))
}

// removeImportMark removes the import mark, so that Open accepts the directory.
func removeImportMark(dir string) error {
	return errors.Join(os.Remove(filepath.Join(dir, importFile)), syncDir(dir))
}

// discard removes the files of a failed import. It does nothing if the directory has no import mark, so it
// never removes data that a reader has seen.
func discard(dir string) (err error) {
	unlock, err := lockDir(dir)
	if err != nil {
		return fmt.Errorf("discard the incomplete store in %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := os.Lstat(filepath.Join(dir, importFile)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := removeFiles(dir); err != nil { // the mark stays, so Open still refuses the directory
		return err
	}
	return removeImportMark(dir)
}

// removeFiles removes the files of the store except the import mark.
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

// ownFile reports whether the file name belongs to a store.
func ownFile(name string) bool {
	switch name {
	case lockFile, witnessFile, runningFile, lostFile, badger.ManifestFilename, "MANIFEST-REWRITE", "KEYREGISTRY", "DISCARD", importFile:
		return true
	}
	switch filepath.Ext(name) {
	case ".sst", ".mem", ".vlog", damagedSuffix:
		return true
	}
	return false
}

// importer is a running import. Its fields are used only on the committer goroutine, except store and
// stamps, which do not change.
type importer struct {
	store  *Store
	stamps map[string]string
	oldest storage.Revision
	newest storage.Revision
	owner  bool                        // this import has set committer.importing
	wrote  bool                        // entries may be on the disk
	large  map[storage.Revision]string // keys of the values in pieces, by revision
}

// Import implements storage.Importer. If it fails after it has written entries, the store is stopped, and
// Open refuses the directory, because its content is incomplete.
func (s *Store) Import(ctx context.Context, stamps map[string]string, oldest storage.Revision, records iter.Seq2[storage.Record, error]) error {
	in := &importer{store: s, stamps: stamps, oldest: oldest, newest: oldest, large: make(map[storage.Revision]string)}
	err := s.perform(ctx, in.begin)
	if err == nil {
		err = in.writeAll(ctx, records)
	}
	if err == nil {
		err = s.perform(context.WithoutCancel(ctx), in.finish) // not cancelled, so that the caller learns the outcome
	}
	if err != nil {
		return errors.Join(err, s.perform(context.WithoutCancel(ctx), func() error { return in.abort(err) }))
	}
	return nil
}

// perform runs do on the committer goroutine and returns its error. If ctx ends first, do may still run.
func (s *Store) perform(ctx context.Context, do func() error) error {
	r := &request{ctx: ctx, do: do, done: make(chan struct{})}
	if err := s.submit(r); err != nil {
		return err
	}
	return r.err
}

// begin checks that the store is empty and creates the import mark.
func (in *importer) begin() error {
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
		return fmt.Errorf("import: revision %d is out of range", in.oldest)
	}
	have, err := s.stamps()
	if err != nil {
		return err
	}
	for name, value := range in.stamps {
		if len(name)+len(value) > MaxKeyBytes {
			return fmt.Errorf("import stamp %.80q: %w", name, storage.ErrTooLarge)
		}
		if other, ok := have[name]; ok && other != value {
			return fmt.Errorf("import into %s: %w: stamp %q has the value %q instead of %q", s.dir, storage.ErrNotEmpty, name, other, value)
		}
	}
	s.committer.importing, in.owner = true, true
	return markImport(s.dir)
}

// writeAll writes the records in batches on the committer goroutine.
func (in *importer) writeAll(ctx context.Context, records iter.Seq2[storage.Record, error]) error {
	var batch []storage.Record
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		full := batch
		batch, size = nil, 0
		return in.store.perform(ctx, func() error { return in.writeRecords(full) })
	}
	for rec, err := range records {
		if err == nil {
			err = in.check(rec)
		}
		if err != nil {
			return err
		}
		batch = append(batch, rec)
		if size += len(rec.Key) + len(rec.Value) + batchEntry; size >= in.store.batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// check returns an error if rec exceeds a limit of the store.
func (in *importer) check(rec storage.Record) error {
	switch {
	case len(rec.Key) > MaxKeyBytes || len(rec.Value) > MaxValueBytes:
		return fmt.Errorf("import %.80q with %d bytes: %w", rec.Key, len(rec.Value), storage.ErrTooLarge)
	case rec.Revision <= 0 || rec.Revision == math.MaxInt64:
		return fmt.Errorf("import %.80q: revision %d is out of range", rec.Key, rec.Revision)
	}
	return nil
}

// versioned is an entry with its version. If deleted is set, it is a deletion.
type versioned struct {
	entry   *badger.Entry
	version uint64
	deleted bool
}

// size returns the number of bytes that the entry counts in a batch.
func (v versioned) size() int { return len(v.entry.Key) + len(v.entry.Value) + batchEntry }

// writeRecords writes records with their revisions. Pieces are identified by revision and number, so a
// commit may have only one value in pieces.
func (in *importer) writeRecords(records []storage.Record) error {
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
			return fmt.Errorf("import %.80q and %.80q: one commit has two values of more than %d bytes: %w", other, rec.Key, s.piece, storage.ErrTooLarge)
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
		if err := s.checkFull(int64(size)); err != nil {
			return err
		}
		in.wrote = true
		if err := s.flush(size, func(batch *badger.WriteBatch) error { return putVersions(batch, list[:n]) }); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// putVersions adds the entries of list to a batch.
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

// finish loads the imported entries as Open would, and then publishes them.
func (in *importer) finish() error {
	s := in.store
	in.wrote = true
	for name, value := range in.stamps {
		if _, err := s.stamp(name, value); err != nil {
			return err
		}
	}
	if err := s.writeMeta([]byte(markKey), mark(in.oldest, in.newest)); err != nil {
		return err
	}
	if err := s.committer.witness.close(); err != nil {
		return err
	}
	s.committer.witness = nil
	// The record has no set of records (keys is -1), so load compares only the revision.
	record := witnessRecord{revision: in.newest, floor: in.oldest, reserved: in.newest, live: set{keys: -1}}
	fresh := &Store{dir: s.dir, retain: s.retain, logger: s.logger, db: s.db, disk: s.disk, leveled: s.leveled, piece: s.piece, batch: s.batch}
	fresh.committer.logs, fresh.committer.flattener, fresh.committer.ballast = s.committer.logs, s.committer.flattener, s.committer.ballast
	s.access.Lock()
	defer s.access.Unlock()
	if err := fresh.load(&survey{dir: s.dir, record: record, witnessed: true}); err != nil {
		return errors.Join(err, fresh.committer.witness.close())
	}
	if !s.filling {
		if err := removeImportMark(s.dir); err != nil {
			return errors.Join(err, fresh.committer.witness.close())
		}
	}
	s.adopt(fresh)
	return nil
}

// adopt replaces the state of s by the state that fresh has loaded from the same database. The caller is the
// committer and holds s.access for writing.
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

// abort ends a failed import. If entries may have been written, it stops the store.
func (in *importer) abort(why error) error {
	s := in.store
	if !in.owner {
		return nil
	}
	s.committer.importing = false
	if !in.wrote {
		if s.filling {
			return nil
		}
		return removeImportMark(s.dir)
	}
	if s.committer.broken == nil {
		s.stop(fmt.Errorf("the import failed: %w", why))
	}
	return nil
}
