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

// compact drops the history before the given revision. The order of the writes matters. The mark must be on
// the disk before tombstones are discarded, because afterwards nothing else records the newest revision.
// The witness must be on the disk before the mark, because the records at a revision before the floor of
// the mark cannot be counted any more. Only the committer calls compact.
func (s *Store) compact(before storage.Revision) error {
	if before <= s.floorRevision() {
		return nil
	}
	if err := s.updateWitness(true); err != nil {
		return err
	}
	drop := func(batch *badger.WriteBatch) error { return s.dropBlocks(batch, before) }
	if err := s.writeMeta([]byte(markKey), mark(before, s.published()), drop); err != nil {
		return err
	}
	s.floor.Store(int64(before))
	err := s.updateWitness(true)
	s.log.Forget(before)
	s.db.SetDiscardTs(uint64(before))
	err = errors.Join(err, s.dropPieces(before))
	s.committer.flattener.historyDropped.Store(true)
	return err
}

// expire saves new commit times and compacts the history that exceeds the retention time.
func (s *Store) expire(now time.Time) {
	if err := s.saveAges(); err != nil {
		s.logger.Error("storage failed to save the times of its commits", "dir", s.dir, "err", err)
		return
	}
	before := s.ages.oldest(now)
	if before <= s.floorRevision() || s.committer.broken != nil {
		return
	}
	if err := s.compact(before); err != nil {
		s.logger.Error("storage failed to compact its history", "dir", s.dir, "err", err)
		return
	}
	if err := s.db.RunValueLogGC(0.5); err != nil && !errors.Is(err, badger.ErrNoRewrite) {
		s.logger.Warn("storage failed to reclaim the space of large values", "dir", s.dir, "err", err)
	}
}
