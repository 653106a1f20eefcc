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
	r := &request{ctx: ctx, done: make(chan struct{})}
	r.do = func() error {
		if before > s.published() {
			return storage.ErrFuture
		}
		return s.compact(before)
	}
	if err := s.submit(r); err != nil {
		return err
	}
	return r.err
}

// compact forgets history. The mark goes to the disk first: once tombstones
// may be discarded nothing else remembers how far the revisions went.
func (s *Store) compact(before storage.Revision) error {
	if before <= s.compacted() {
		return nil
	}
	drop := func(batch *badger.WriteBatch) error { return s.dropBlocks(batch, before) }
	if err := s.note([]byte(markKey), mark(before, s.published()), drop); err != nil {
		return err
	}
	s.floor.Store(int64(before))
	if err := s.testify(true); err != nil {
		return err
	}
	s.log.Forget(before)
	s.db.SetDiscardTs(uint64(before))
	return s.dropPieces(s.committer.pieces.before(before))
}

// expire compacts what is older than the store retains.
func (s *Store) expire(now time.Time) {
	c := &s.committer
	if newest := s.published(); newest != c.history[len(c.history)-1].revision {
		c.history = append(c.history, moment{now, newest})
	}
	old := 0
	for old < len(c.history) && now.Sub(c.history[old].time) >= s.retain {
		old++
	}
	if old == 0 || c.broken != nil {
		return
	}
	before := c.history[old-1].revision
	if old < len(c.history) {
		c.history = c.history[old:]
	} else {
		c.history = c.history[old-1:]
	}
	if before <= s.compacted() {
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
