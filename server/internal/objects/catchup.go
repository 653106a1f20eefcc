package objects

import (
	"context"
	"time"

	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/storage"
)

// With returns a context in which reads of this store use the ReadIndex of a request. Without a ReadIndex in its
// context, each read asks the backend for the newest revision.
func (s *Store) With(ctx context.Context, x *consistency.ReadIndex) context.Context {
	return consistency.WithReadIndex(ctx, &s.index, x)
}

// withFreshReads returns a context in which reads are as new as the first of them, not as the request of ctx.
func (s *Store) withFreshReads(ctx context.Context) context.Context {
	return s.With(ctx, new(consistency.ReadIndex))
}

// afterConflict returns the context of a retry, in which reads show the record that conflicted. If that record was
// deleted, the revision of the deletion is unknown, so the next read asks the backend.
func (s *Store) afterConflict(ctx context.Context, conflict *storage.ConflictError) context.Context {
	x, seen, found := new(consistency.ReadIndex), consistency.ReadIndexOf(ctx, &s.index).Revision.Load(), int64(conflict.Current.Revision)
	if seen > 0 && found > 0 {
		x.Revision.Store(max(seen, found))
	}
	return s.With(ctx, x)
}

// CatchUp waits until the caches show every commit that was acknowledged before the request of ctx began, or before
// the call if ctx belongs to no request.
func (s *Store) CatchUp(ctx context.Context) error {
	x := consistency.ReadIndexOf(ctx, &s.index)
	rev := storage.Revision(x.Revision.Load())
	if rev == 0 {
		var err error
		if rev, err = s.backend.Revision(ctx); err != nil {
			return err
		}
		x.Revision.Store(int64(rev))
	}
	return s.wait(ctx, rev)
}

// wait waits until the caches show a revision.
func (s *Store) wait(ctx context.Context, rev storage.Revision) error {
	if s.o.Hub.Revision() >= rev {
		return nil
	}
	begun := time.Now()
	err := s.o.Hub.Wait(ctx, rev)
	if s.o.Waited != nil {
		s.o.Waited(time.Since(begun))
	}
	return err
}
