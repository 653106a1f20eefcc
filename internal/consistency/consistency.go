// Package consistency carries in a context how fresh the reads of a request must be, and the preconditions of its
// commits.
//
// These are context values, not parameters, because code of other packages stands between the place that sets
// them and the store that obeys them. Authenticators, authorizers, admission plugins, the hooks of a kind and the
// Reconcile function of a controller get a context and pass it to a client, or to a request in the process. A
// write by such code must see the state that the request saw, must be refused if its leader is replaced, and must
// not queue behind the write that it is part of. No other package puts such a value into a context.
package consistency

import (
	"context"
	"sync/atomic"

	"orch.io/controlplane/storage"
)

// ReadIndex is the minimum revision of the reads of a request: the newest revision of the store at the first
// read. Later reads of the request do not ask the store again, because a state that is no older than the request is
// fresh enough. The zero ReadIndex belongs to a request that has read nothing yet.
type ReadIndex struct{ Revision atomic.Int64 } // 0: not read yet

// Store is the key of the ReadIndex of a store. Code that a server calls may read through another server, and
// that server may have another store, or caches that are behind.
type Store struct{ _ byte }

// WithReadIndex returns a context in which reads of a store use x.
func WithReadIndex(ctx context.Context, s *Store, x *ReadIndex) context.Context {
	return context.WithValue(ctx, s, x)
}

// ReadIndexOf returns the ReadIndex of ctx for a store, or a new ReadIndex.
func ReadIndexOf(ctx context.Context, s *Store) *ReadIndex {
	if x, ok := ctx.Value(s).(*ReadIndex); ok {
		return x
	}
	return new(ReadIndex)
}

// WithoutReadIndex returns a context for work that outlasts the request of ctx, or is a request of its own.
func WithoutReadIndex(ctx context.Context) context.Context { return withoutReadIndex{ctx} }

type withoutReadIndex struct{ context.Context }

func (c withoutReadIndex) Value(key any) any {
	if IsReadIndex(key) {
		return nil
	}
	return c.Context.Value(key)
}

// IsReadIndex reports whether a context has a ReadIndex under key.
func IsReadIndex(key any) bool {
	_, is := key.(*Store)
	return is
}

// LeaderFence makes commits depend on the term of a leader: each commit compares the record of the term, which the
// next leader replaces. Once another server leads, the commits of the former leader fail, even if it has not noticed.
// The zero LeaderFence is for controllers that run without a leader because the store is full: they can only delete.
type LeaderFence struct {
	Record   string           // storage key of the term
	Revision storage.Revision // of Record in this term
	Lost     func()           // called when a commit finds that another term has begun
}

type leaderFenceKey struct{}

// WithLeaderFence returns a context in which commits depend on f. nil removes the dependency.
func WithLeaderFence(ctx context.Context, f *LeaderFence) context.Context {
	return context.WithValue(ctx, leaderFenceKey{}, f)
}

// LeaderFenceOf returns the LeaderFence of ctx, or nil.
func LeaderFenceOf(ctx context.Context) *LeaderFence {
	f, _ := ctx.Value(leaderFenceKey{}).(*LeaderFence)
	return f
}

type slotKey struct{}

// WithSlot returns the context of a write that holds a slot of the queue of its key. Writes that it causes, for
// example in admission, do not queue, so that no two writes wait for each other.
func WithSlot(ctx context.Context) context.Context { return context.WithValue(ctx, slotKey{}, true) }

// HoldsSlot reports whether ctx is derived from a context of WithSlot.
func HoldsSlot(ctx context.Context) bool { return ctx.Value(slotKey{}) != nil }
