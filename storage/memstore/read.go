package memstore

import (
	"context"
	"iter"
	"slices"
	"strings"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/internal/history"
)

// Get implements storage.Backend.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	if err := ctx.Err(); err != nil {
		return storage.Record{}, err
	}
	s.mu.RLock()
	rec, ok, newest, closed := storage.Record{}, false, s.revision, s.closed
	if !closed {
		rec, ok = s.tree.Get(key)
	}
	s.mu.RUnlock()
	switch {
	case closed:
		return storage.Record{}, storage.ErrClosed
	case at > newest:
		return storage.Record{}, storage.ErrFuture
	case at != 0:
		runs, kept := s.log.Between(at, newest)
		if !kept {
			return storage.Record{}, s.compactedError()
		}
		if before, changed := firstChange(runs, key); changed {
			rec, ok = before, before.Revision != 0
		}
	}
	if !ok {
		return storage.Record{}, storage.ErrNotFound
	}
	return rec, nil
}

// compactedError returns the error for a read before the retained history.
func (s *Store) compactedError() error { return &storage.CompactedError{Oldest: s.log.Floor()} }

// firstChange returns the record that the first event of key replaced, and false if there is no event
// of key.
func firstChange(runs [][]history.Commit, key string) (storage.Record, bool) {
	for _, run := range runs {
		for _, c := range run {
			for i := range c.Events {
				if c.Events[i].Key == key {
					return c.Events[i].Prev, true
				}
			}
		}
	}
	return storage.Record{}, false
}

// Scan implements storage.Backend. The sequence never yields ErrCompacted, because it holds its own
// root.
func (s *Store) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	r, err := s.rootAt(at)
	if err != nil {
		return 0, nil, err
	}
	return r.revision, func(yield func(storage.Record, error) bool) {
		r.tree.Ascend(max(prefix, start), func(key string, rec storage.Record) bool {
			if !strings.HasPrefix(key, prefix) {
				return false
			}
			if err := ctx.Err(); err != nil {
				yield(storage.Record{}, err)
				return false
			}
			return yield(rec, nil)
		})
	}, nil
}

// rootAt returns the root of revision at, or of the newest revision if at is 0.
func (s *Store) rootAt(at storage.Revision) (root, error) {
	r, runs, err := s.nearestRoot(at)
	if err != nil || len(runs) == 0 {
		return r, err
	}
	for _, run := range slices.Backward(runs) {
		for _, c := range slices.Backward(run) {
			for i := range c.Events {
				if prev := c.Events[i].Prev; prev.Revision != 0 {
					r.tree.Set(prev.Key, prev)
				} else {
					r.tree.Delete(c.Events[i].Key)
				}
			}
		}
	}
	r.revision = at
	s.cacheRoot(r)
	return r, nil
}

// nearestRoot returns the nearest root at or after revision at and the commits to undo to get from it
// to at. If there are commits to undo, the root is a copy that the caller may modify.
func (s *Store) nearestRoot(at storage.Revision) (root, [][]history.Commit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return root{}, nil, storage.ErrClosed
	}
	if at > s.revision {
		return root{}, nil, storage.ErrFuture
	}
	if at == 0 || at == s.revision {
		if s.newest == nil {
			s.newest = &root{revision: s.revision, tree: s.tree.Copy()}
		}
		return *s.newest, nil, nil
	}
	if at < s.log.Floor() {
		return root{}, nil, s.compactedError()
	}
	near := root{revision: s.revision, tree: s.tree}
	for i, r := range s.old {
		if r.revision == at {
			s.old = append(slices.Delete(s.old, i, i+1), r)
			return r, nil, nil
		}
		if r.revision > at && r.revision < near.revision {
			near = r
		}
	}
	runs, ok := s.log.Between(at, near.revision)
	if !ok {
		return root{}, nil, s.compactedError()
	}
	return root{revision: near.revision, tree: near.tree.Copy()}, runs, nil
}

// cacheRoot caches r for later reads of its revision, such as the next page of a list.
func (s *Store) cacheRoot(r root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.old = append(s.old, r)
	s.dropCompactedRoots()
	if len(s.old) > maxRoots {
		s.old = slices.Delete(s.old, 0, 1)
	}
}

// dropCompactedRoots removes the cached roots of compacted revisions. The caller holds s.mu.
func (s *Store) dropCompactedRoots() {
	floor := s.log.Floor()
	s.old = slices.DeleteFunc(s.old, func(r root) bool { return r.revision < floor })
}

// Watch implements storage.Backend. When the store is closed, the sequence yields storage.ErrClosed and
// ends.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return s.log.Watch(ctx, prefix, after, nil)
}
