package client

import (
	"sync"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/storage"
)

// Index is a value of type T that is computed from the objects of some resources. It is brought up
// to date from a Feed when it is read. The feed is opened at the first read. The methods may be
// called concurrently.
type Index[T any] struct {
	client  Client
	types   []meta.GroupResource
	empty   func() T
	apply   func(T, Event)
	publish func(T) // nil: not published

	at atomic.Pointer[position] // nil before the first Update; stored last, with mu held

	mu    sync.RWMutex // guards value and the use of the feed
	value T
}

// position is the feed and the revision that the value is current as of.
type position struct {
	feed     Feed
	revision storage.Revision
}

// NewIndex returns an Index of the given resources; resources that the server does not serve are
// ignored. empty returns the value without objects, and apply applies an event to the value. Both
// are called with a lock held.
func NewIndex[T any](client Client, types []meta.GroupResource, empty func() T, apply func(T, Event)) *Index[T] {
	return &Index[T]{client: client, types: types, empty: empty, apply: apply, value: empty()}
}

// Publish sets a function that is called with the value after each batch of changes, before Update
// returns. The function may derive data from the value and store it in an atomic pointer, so that
// readers call Update and load the pointer without a lock. Call Publish before the first read.
func (x *Index[T]) Publish(publish func(T)) { x.publish = publish }

// Read calls read with a value that reflects every write acknowledged before the call. read must
// neither modify nor retain the value.
func (x *Index[T]) Read(read func(T)) {
	x.Update()
	x.mu.RLock()
	defer x.mu.RUnlock()
	read(x.value)
}

// Update brings the value up to date with every write acknowledged before the call. If it is
// current already, no lock is taken, unless the server serves none of the resources.
func (x *Index[T]) Update() {
	if x.current() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.current() {
		return // another goroutine updated it meanwhile
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

// current reports whether the value reflects all changes of the feed.
func (x *Index[T]) current() bool {
	at := x.at.Load()
	return at != nil && at.feed.Newest() <= at.revision
}

// feed returns the feed, which it opens at the first call; nil if the server serves none of the
// resources. x.mu must be held.
func (x *Index[T]) feed() Feed {
	if at := x.at.Load(); at != nil {
		return at.feed
	}
	if types := x.served(); len(types) > 0 {
		return x.client.Feed(types...)
	}
	return nil
}

// served returns the resources that the server serves, or all of them if the server does not list
// its types.
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

// Close closes the feed.
func (x *Index[T]) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at := x.at.Swap(nil); at != nil {
		at.feed.Close()
	}
}
