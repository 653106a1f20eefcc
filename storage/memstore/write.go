package memstore

import (
	"context"
	"time"

	"orch.io/controlplane/storage"
)

// Commit implements storage.Backend. It accepts any number of writes of any size and never fails with
// storage.ErrTooLarge. The store keeps the values of ws.
func (s *Store) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ws, err := storage.NormalizeCommit(ws)
	if err != nil {
		return 0, err
	}
	var buf [1]storage.Event // avoids an allocation; the log copies the events
	events := buf[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, storage.ErrClosed
	}
	for _, w := range ws {
		prev, _ := s.tree.Get(w.Key)
		if err := w.Check(prev); err != nil {
			return 0, err
		}
		if w.Guard {
			continue
		}
		rec := storage.Record{Key: w.Key, Value: w.Value, Revision: s.revision + 1}
		events = append(events, storage.Event{Record: rec, Prev: prev})
	}
	for _, e := range events {
		if e.Deleted() {
			s.tree.Delete(e.Key)
		} else {
			s.tree.Set(e.Key, e.Record)
		}
	}
	s.revision++
	s.newest = nil
	s.log.Append(time.Now(), events...)
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
	s.dropCompactedRoots()
	return nil
}
