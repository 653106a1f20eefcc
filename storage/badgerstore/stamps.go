package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// Stamp implements storage.Stamper.
func (s *Store) Stamp(ctx context.Context, name, value string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if len(name)+len(value) > MaxKeyBytes {
		return "", fmt.Errorf("stamp %.80q: %w", name, storage.ErrTooLarge)
	}
	have := ""
	err := s.perform(ctx, func() (err error) {
		have, err = s.stamp(name, value)
		return err
	})
	if err != nil {
		return "", err
	}
	return have, nil
}

// Stamps implements storage.StampReader.
func (s *Store) Stamps(ctx context.Context) (map[string]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var stamps map[string]string
	err := s.perform(ctx, func() (err error) {
		stamps, err = s.stamps()
		return err
	})
	if err != nil {
		return nil, err
	}
	return stamps, nil
}

// stamps reads all stamps. Only the committer calls it.
func (s *Store) stamps() (map[string]string, error) {
	stamps := make(map[string]string)
	txn := s.db.NewTransactionAt(s.committer.marked+1, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(stampPrefix)})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			return nil, fmt.Errorf("read stamp %q: %w", it.Item().Key(), err)
		}
		stamps[strings.TrimPrefix(string(it.Item().Key()), stampPrefix)] = string(value)
	}
	return stamps, nil
}

// stamp returns the value of a stamp after it has set the value unless the stamp exists. Only the committer calls
// it.
func (s *Store) stamp(name, value string) (string, error) {
	key := []byte(stampPrefix + name)
	txn := s.db.NewTransactionAt(s.committer.marked+1, false)
	defer txn.Discard()
	item, err := txn.Get(key)
	if err == nil {
		have, err := item.ValueCopy(nil)
		return string(have), err
	}
	if !errors.Is(err, badger.ErrKeyNotFound) {
		return "", fmt.Errorf("read stamp %q: %w", name, err)
	}
	return value, s.writeMeta(key, []byte(value))
}
