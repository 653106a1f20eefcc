package badgerstore

import (
	"context"
	"errors"
	"time"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// Compact implements storage.Backend.
func (s *Store) Compact(ctx context.Context, before storage.Revision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.perform(ctx, func() error {
		if before > s.published() {
			return storage.ErrFuture
		}
		return s.compact(before)
	})
}

// compact forgets history. The mark goes to the disk first: once tombstones
// may be discarded nothing else remembers how far the revisions went. Before it
// goes the witness, since the records of a revision before the mark's floor cannot
// be counted any more.
func (s *Store) compact(before storage.Revision) error {
	if before <= s.discarded() {
		return nil
	}
	if err := s.testify(true); err != nil {
		return err
	}
	drop := func(batch *badger.WriteBatch) error { return s.dropBlocks(batch, before) }
	if err := s.note([]byte(markKey), mark(before, s.published()), drop); err != nil {
		return err
	}
	s.floor.Store(int64(before))
	err := s.testify(true)
	s.log.Forget(before)
	s.db.SetDiscardTs(uint64(before))
	err = errors.Join(err, s.dropPieces(before))
	s.committer.flattener.forgot.Store(true)
	return err
}

// expire compacts what is older than the store retains.
func (s *Store) expire(now time.Time) {
	if err := s.saveAges(); err != nil {
		s.logger.Error("storage could not save the age of its history", "dir", s.dir, "err", err)
		return
	}
	before := s.ages.oldest(now)
	if before <= s.discarded() || s.committer.broken != nil {
		return
	}
	if err := s.compact(before); err != nil {
		s.logger.Error("storage could not compact its history", "dir", s.dir, "err", err)
		return
	}
	if err := s.db.RunValueLogGC(0.5); err != nil && !errors.Is(err, badger.ErrNoRewrite) {
		s.logger.Warn("storage could not reclaim the space of large values", "dir", s.dir, "err", err)
	}
}
