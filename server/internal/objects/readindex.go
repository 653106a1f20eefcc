package objects

import (
	"context"
	"time"

	"orch.io/controlplane/internal/readindex"
	"orch.io/controlplane/storage"
)

// With returns a context whose reads of this store go by the index of a request. Each read whose context has
// none asks for itself.
func (s *Store) With(ctx context.Context, x *readindex.Index) context.Context {
	return readindex.With(ctx, &s.index, x)
}

// anew returns a context whose reads are not content with what is as new as the request.
func (s *Store) anew(ctx context.Context) context.Context { return s.With(ctx, new(readindex.Index)) }

// after returns a context for looking again after a conflict: what was found in place of what
// the last look showed is shown then. Of a record that was not there any more nobody knows
// since when, so the store is asked.
func (s *Store) after(ctx context.Context, conflict *storage.ConflictError) context.Context {
	x, seen, found := new(readindex.Index), readindex.Of(ctx, &s.index).Revision.Load(), int64(conflict.Current.Revision)
	if seen > 0 && found > 0 {
		x.Revision.Store(max(seen, found))
	}
	return s.With(ctx, x)
}

// CatchUp waits until the caches show every commit that was acknowledged before the request
// of the context began, or, if that is none's, until now.
func (s *Store) CatchUp(ctx context.Context) error {
	x := readindex.Of(ctx, &s.index)
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
