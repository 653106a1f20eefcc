package controller

import (
	"sync"

	"orch.io/controlplane/api/meta"
)

// Index is a value of type T made of the objects of some types, kept current by
// pulling a feed whenever it is read. The feed is opened at the first use.
type Index[T any] struct {
	client Client
	types  []meta.GroupResource
	empty  func() T
	apply  func(T, Event)

	pulling sync.Mutex // guards feed, and orders what is applied
	feed    Feed

	mu    sync.RWMutex // guards what value holds
	value T
}

// NewIndex returns an Index. Types that the server does not have are left out; empty
// makes the value before any change, and apply puts a change into it.
func NewIndex[T any](client Client, types []meta.GroupResource, empty func() T, apply func(T, Event)) *Index[T] {
	return &Index[T]{client: client, types: types, empty: empty, apply: apply, value: empty()}
}

// Read hands over a value that holds all that was acknowledged before the call.
// read must not change it nor keep it.
func (x *Index[T]) Read(read func(T)) {
	x.pull()
	x.mu.RLock()
	defer x.mu.RUnlock()
	read(x.value)
}

func (x *Index[T]) pull() {
	x.pulling.Lock()
	defer x.pulling.Unlock()
	if x.feed == nil {
		x.feed = x.client.Feed(x.served()...)
	}
	changes, reset := x.feed.Pull()
	if len(changes) == 0 && !reset {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if reset {
		x.value = x.empty()
	}
	for _, c := range changes {
		x.apply(x.value, c)
	}
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
	x.pulling.Lock()
	defer x.pulling.Unlock()
	if x.feed != nil {
		x.feed.Close()
		x.feed = nil
	}
}
