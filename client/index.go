package client

import (
	"sync"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/storage"
)

// Index is a value of type T made of the objects of some types, kept current by
// pulling a feed when it is read and something changed. The feed is opened at the first
// use.
type Index[T any] struct {
	client  Client
	types   []meta.GroupResource
	empty   func() T
	apply   func(T, Event)
	publish func(T) // nil: nobody asked for it

	at atomic.Pointer[position] // nil: nothing is applied yet; set under the lock, last

	mu    sync.RWMutex // guards what value holds, and who uses the feed
	value T
}

// position says which feed's changes a value holds, and up to where.
type position struct {
	feed     Feed
	revision storage.Revision
}

// NewIndex returns an Index. Types that the server does not have are left out; empty
// makes the value before any change, and apply puts a change into it.
func NewIndex[T any](client Client, types []meta.GroupResource, empty func() T, apply func(T, Event)) *Index[T] {
	return &Index[T]{client: client, types: types, empty: empty, apply: apply, value: empty()}
}

// Publish has publish called with the value each time that changes were put into it, all
// that came together at once, before Update returns to those who need them. What publish
// makes of the value and stores in an atomic pointer is read after Update without a
// lock. It is for the time before the first use.
func (x *Index[T]) Publish(publish func(T)) { x.publish = publish }

// Read hands over a value that holds all that was acknowledged before the call.
// read must not change it nor keep it.
func (x *Index[T]) Read(read func(T)) {
	x.Update()
	x.mu.RLock()
	defer x.mu.RUnlock()
	read(x.value)
}

// Update makes the value hold all that was acknowledged before the call. If it does
// already, no lock is taken, unless the server has none of the types.
func (x *Index[T]) Update() {
	if x.current() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.current() {
		return // somebody else was faster
	}
	feed := x.feed()
	if feed == nil {
		return
	}
	changes, reset := feed.Changes()
	if reset {
		x.value = x.empty()
	}
	changed := reset
	for c := range changes {
		x.apply(x.value, c)
		changed = true
	}
	if x.publish != nil && changed {
		x.publish(x.value)
	}
	x.at.Store(&position{feed, feed.Revision()})
}

func (x *Index[T]) current() bool {
	at := x.at.Load()
	return at != nil && at.feed.Newest() <= at.revision
}

// feed returns the feed, which it opens at first; nil: the server has none of the types.
func (x *Index[T]) feed() Feed {
	if at := x.at.Load(); at != nil {
		return at.feed
	}
	if types := x.served(); len(types) > 0 {
		return x.client.Feed(types...)
	}
	return nil
}

// served returns the types that the server has.
func (x *Index[T]) served() []meta.GroupResource {
	all := x.client.Types()
	if len(all) == 0 {
		return x.types
	}
	var out []meta.GroupResource
	for _, r := range x.types {
		for _, t := range all {
			if t.GroupResource() == r {
				out = append(out, r)
			}
		}
	}
	return out
}

// Close ends following.
func (x *Index[T]) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at := x.at.Swap(nil); at != nil {
		at.feed.Close()
	}
}
