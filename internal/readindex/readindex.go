// Package readindex carries in a context how new everything must be that is read for one request.
package readindex

import (
	"context"
	"sync/atomic"
)

// Index is the revision of a store that everything read for one request shows at least: the newest
// one, which the first of its reads asked the store for. What is no older than the request is
// new enough for all of it, so nobody asks again. The zero Index is that of a request that
// begins.
type Index struct{ Revision atomic.Int64 } // 0: nobody has asked yet

// Key is under what a context has the index for a store. Code that is called for a request of one server may
// read through another one, whose revisions are other ones, or which hears of a write later.
type Key struct{ _ byte }

// With returns a context whose reads of a store go by an index.
func With(ctx context.Context, k *Key, x *Index) context.Context {
	return context.WithValue(ctx, k, x)
}

// Of returns the index of a context for a store, a new one if it has none.
func Of(ctx context.Context, k *Key) *Index {
	if x, ok := ctx.Value(k).(*Index); ok {
		return x
	}
	return new(Index)
}

// Without returns a context without an index, as a request begins with that is made with it.
func Without(ctx context.Context) context.Context { return without{ctx} }

type without struct{ context.Context }

func (c without) Value(k any) any {
	if Hides(k) {
		return nil
	}
	return c.Context.Value(k)
}

// Hides reports whether a context without an index has no value for a key.
func Hides(k any) bool {
	_, index := k.(*Key)
	return index
}
