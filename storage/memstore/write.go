package memstore

import (
	"context"
	"time"

	"orch.io/controlplane/storage"
)

// Commit implements storage.Backend. The store keeps w.Value.
func (s *Store) Commit(ctx context.Context, w storage.Write) (storage.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, storage.ErrClosed
	}
	prev, _ := s.tree.Get(w.Key)
	if err := w.Check(prev); err != nil {
		return 0, err
	}
	s.revision++
	rec := storage.Record{Key: w.Key, Value: w.Value, Revision: s.revision}
	if w.Value == nil {
		s.tree.Delete(w.Key)
	} else {
		s.tree.Set(w.Key, rec)
	}
	s.newest = nil
	s.log.Append(time.Now(), storage.Event{Record: rec, Prev: prev})
	return s.revision, nil
}

// Compact implements storage.Backend.
func (s *Store) Compact(ctx context.Context, before storage.Revision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return storage.ErrClosed
	}
	if before > s.revision {
		return storage.ErrFuture
	}
	s.log.Forget(before)
	s.forgetRoots()
	return nil
}
