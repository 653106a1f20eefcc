package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// Get implements storage.Backend.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	if err := ctx.Err(); err != nil {
		return storage.Record{}, err
	}
	if !s.enter() {
		return storage.Record{}, storage.ErrClosed
	}
	defer s.leave()
	if at == 0 {
		rec, err := s.current(key)
		if err == nil && rec.Revision == 0 {
			err = storage.ErrNotFound
		}
		return rec, err
	}
	if err := s.checkRevision(at, s.published()); err != nil {
		return storage.Record{}, err
	}
	rec, err := s.read(key, at)
	switch {
	case at < s.oldestReadable():
		return storage.Record{}, s.compactedError()
	case err != nil:
		return storage.Record{}, s.noteDamage(err)
	case rec.Revision == 0:
		return storage.Record{}, storage.ErrNotFound
	}
	return rec, nil
}

// checkRevision returns ErrFuture or ErrCompacted if revision at cannot be read.
func (s *Store) checkRevision(at, newest storage.Revision) error {
	switch {
	case at > newest:
		return storage.ErrFuture
	case at < s.oldestReadable():
		return s.compactedError()
	}
	return nil
}

// current returns the newest published record of a key, or the zero Record if the key does not exist. The caller has
// called enter.
func (s *Store) current(key string) (storage.Record, error) {
	for {
		newest, ofKey := s.newest(key)
		if ofKey == 0 {
			return storage.Record{}, nil
		}
		if e, ok := s.log.At(key, ofKey); ok { // cheaper than a search in the tables
			return e.Record, nil
		}
		rec, err := s.read(key, newest)
		if err == nil && rec.Revision != ofKey {
			err = &storage.DamagedError{Key: key, Revision: ofKey, Err: errNoValue}
		}
		if newest >= s.oldestReadable() {
			return rec, s.noteDamage(err)
		}
		// The revision was compacted during the read, so the result may be wrong: read again.
	}
}

// read returns the record of key at a revision from the database, or the zero Record if the key did not exist. The
// result is valid only if the revision is still retained after the call.
func (s *Store) read(key string, at storage.Revision) (storage.Record, error) {
	s.stats.reads.Add(1)
	txn := s.db.NewTransactionAt(uint64(at), false)
	defer txn.Discard()
	item, err := txn.Get(recordKey(key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return storage.Record{}, nil
	}
	if err != nil {
		return storage.Record{}, fmt.Errorf("read %q at revision %d: %w", key, at, err)
	}
	return s.record(key, item)
}

// replaceable returns the record that a write to key would replace. If the record is damaged, it has only key and
// revision.
func (s *Store) replaceable(key string) (storage.Record, error) {
	rec, err := s.current(key)
	var damaged *storage.DamagedError
	if errors.As(err, &damaged) {
		return storage.Record{Key: key, Revision: damaged.Revision}, nil
	}
	return rec, err
}

func recordKey(key string) []byte {
	b := make([]byte, 0, len(recordPrefix)+len(key))
	return append(append(b, recordPrefix...), key...)
}

// record decodes the record of an entry. It fails with a *storage.DamagedError, together with a record that has
// only key and revision.
func (s *Store) record(key string, item *badger.Item) (storage.Record, error) {
	revision := storage.Revision(item.Version())
	stored, err := item.ValueCopy(make([]byte, 0, item.ValueSize()))
	if err == nil && len(stored) == 0 && item.ValueSize() > 0 {
		err = errNoValue
	}
	if err == nil {
		stored, err = unseal(key, revision, item.UserMeta(), stored, func(i int) ([]byte, error) {
			return s.readPiece(revision, i)
		})
	}
	if err != nil {
		return storage.Record{Key: key, Revision: revision}, &storage.DamagedError{Key: key, Revision: revision, Err: err}
	}
	if stored == nil {
		stored = []byte{}
	}
	return storage.Record{Key: key, Value: stored, Revision: revision}, nil
}

// readPiece returns piece i of the value that the given revision wrote.
func (s *Store) readPiece(revision storage.Revision, i int) ([]byte, error) {
	txn := s.db.NewTransactionAt(uint64(revision), false)
	defer txn.Discard()
	item, err := txn.Get(pieceKey(revision, i))
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}

// Limits of one page of a scan. A scan holds no lock and no transaction between pages.
const (
	pageRecords = 512
	pageBytes   = 1 << 20
)

// Scan implements storage.Backend.
func (s *Store) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	if !s.enter() {
		return 0, nil, storage.ErrClosed
	}
	defer s.leave()
	newest := s.published()
	if at == 0 {
		at = newest
	}
	if err := s.checkRevision(at, newest); err != nil {
		return 0, nil, err
	}
	return at, func(yield func(storage.Record, error) bool) {
		from := max(prefix, start)
		for {
			page, more, err := s.page(ctx, prefix, from, at)
			if err != nil {
				yield(storage.Record{}, err)
				return
			}
			for _, got := range page {
				if err := ctx.Err(); err != nil {
					yield(storage.Record{}, err)
					return
				}
				if !yield(got.Record, got.err) {
					return
				}
			}
			if !more {
				return
			}
			from = page[len(page)-1].Key + "\x00"
		}
	}, nil
}

// scanned is a record, or the key and revision of a damaged record with its error.
type scanned struct {
	storage.Record
	err error
}

// page reads the next records of a scan, beginning with the key from. more reports whether the scan is not finished.
func (s *Store) page(ctx context.Context, prefix, from string, at storage.Revision) (page []scanned, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if !s.enter() {
		return nil, false, storage.ErrClosed
	}
	defer s.leave()
	txn := s.db.NewTransactionAt(uint64(at), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: recordKey(prefix)})
	defer it.Close()
	size := 0
	for it.Seek(recordKey(from)); it.Valid(); it.Next() {
		if len(page) == pageRecords || size > pageBytes {
			more = true
			break
		}
		item := it.Item()
		rec, err := s.record(strings.TrimPrefix(string(item.Key()), recordPrefix), item)
		page = append(page, scanned{rec, err})
		size += len(rec.Key) + len(rec.Value)
	}
	if at < s.oldestReadable() {
		return nil, false, s.compactedError()
	}
	for _, got := range page {
		_ = s.noteDamage(got.err)
	}
	return page, more, nil
}
