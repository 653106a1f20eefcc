package objects

import (
	"context"
	"sync/atomic"
	"time"

	"orch.io/controlplane/storage"
)

// ReadIndex is the revision that everything read for one request shows at least: the newest
// one, which the first of its reads asked the store for. What is no older than the request is
// new enough for all of it, so nobody asks again. The zero ReadIndex is that of a request that
// begins.
//
// It goes with the context. Each read whose context has none asks for itself.
type ReadIndex struct{ revision atomic.Int64 } // 0: nobody has asked yet

type readIndexKey struct{}

// With returns a context whose reads go by the index.
func (x *ReadIndex) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, readIndexKey{}, x)
}

// readIndexOf returns the index of a context, a new one if it has none.
func readIndexOf(ctx context.Context) *ReadIndex {
	if x, ok := ctx.Value(readIndexKey{}).(*ReadIndex); ok {
		return x
	}
	return new(ReadIndex)
}

// anew returns a context whose reads are not content with what is as new as the request.
func anew(ctx context.Context) context.Context { return new(ReadIndex).With(ctx) }

// after returns a context for looking again after a conflict: what was found in place of what
// the last look showed is shown then. Of a record that was not there any more nobody knows
// since when, so the store is asked.
func after(ctx context.Context, conflict *storage.ConflictError) context.Context {
	x, seen, found := new(ReadIndex), readIndexOf(ctx).revision.Load(), int64(conflict.Current.Revision)
	if seen > 0 && found > 0 {
		x.revision.Store(max(seen, found))
	}
	return x.With(ctx)
}

// CatchUp waits until the caches show every commit that was acknowledged before the request
// of the context began, or, if that is none's, until now.
func (s *Store) CatchUp(ctx context.Context) error {
	x := readIndexOf(ctx)
	rev := storage.Revision(x.revision.Load())
	if rev == 0 {
		var err error
		if rev, err = s.backend.Revision(ctx); err != nil {
			return err
		}
		x.revision.Store(int64(rev))
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
