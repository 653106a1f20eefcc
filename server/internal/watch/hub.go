package watch

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// Options bound what a Hub keeps beside the current objects. Zero fields mean
// the defaults.
type Options struct {
	// Retain is how long changes and old states of a type are kept, as
	// storage.Retention has it; 5 minutes. What the backend forgets earlier is
	// gone where it is not in memory.
	Retain time.Duration
	// MaxEvents bounds the changes kept for each resource type; 65,536.
	MaxEvents int
	// MaxBytes bounds the bytes of replaced objects that the changes of all types
	// keep, and those that the old states of each type keep; 32 MiB.
	MaxBytes int64
	// MaxSnapshots bounds the old states kept for paging of each type; 64.
	MaxSnapshots int
	// MaxFormBytes bounds the bytes of the representations beside JSON that
	// all entries keep (Entry.Form, Event.Frame); 32 MiB.
	MaxFormBytes int64
	// Panicked is told of panics of the backend while it is followed, by the
	// deferred function that recovered them; nil: nobody is.
	Panicked func(p any)
	// Followed is called after each commit that the caches took in, before they take in the
	// next one; nil: nobody is told.
	Followed func()
}

func (o Options) withDefaults() Options {
	if o.Retain <= 0 {
		o.Retain = 5 * time.Minute
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = 1 << 16
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 32 << 20
	}
	if o.MaxSnapshots <= 0 {
		o.MaxSnapshots = 64
	}
	if o.MaxFormBytes <= 0 {
		o.MaxFormBytes = 32 << 20
	}
	if o.Panicked == nil {
		o.Panicked = func(any) {}
	}
	if o.Followed == nil {
		o.Followed = func() {}
	}
	return o
}

// Hub follows one backend and keeps a Cache for each resource type, a key prefix
// "resource.group/". All methods are safe for concurrent use.
type Hub struct {
	backend   storage.Backend
	historian storage.Historian // nil: the backend is none
	follower  follower          // nil: the backend is none
	options   Options
	forms     *formBudget
	cancel    context.CancelFunc
	done      chan struct{} // closed when the goroutine has ended

	held held

	revision atomic.Int64 // that all caches show; set under the lock of waits
	closed   atomic.Bool  // set once, before everybody is woken for good

	caches struct { // only ever grows: who has a cache need not hold the lock
		sync.RWMutex
		base storage.Revision // an unknown type had no objects since then
		by   map[string]*Cache
		list []*Cache // in the order they were made
	}
	waits struct { // who waits for what is not there yet, but for cursors
		sync.Mutex
		gates gateHeap
		by    map[storage.Revision]*gate
		feeds []*feedWait
	}
	kept      int64        // bytes in all logs; the goroutine's own
	keptBytes atomic.Int64 // kept, for others
	swept     time.Time    // by the goroutine
}

// follower is a backend that tells at less cost than Watch what all keys become, if
// nobody asks what they were.
type follower interface {
	Follow(ctx context.Context, after storage.Revision) iter.Seq2[[]storage.Event, error]
}

// Open reads the current objects and then follows the backend until Close.
func Open(ctx context.Context, b storage.Backend, o Options) (*Hub, error) {
	h := &Hub{backend: b, options: o.withDefaults(), done: make(chan struct{})}
	h.historian, _ = b.(storage.Historian)
	h.follower, _ = b.(follower)
	h.forms = &formBudget{max: h.options.MaxFormBytes}
	h.caches.by = make(map[string]*Cache)
	h.held.by = make(map[string]int64)
	h.waits.by = make(map[storage.Revision]*gate)
	rev, records, err := b.Scan(ctx, "", "", 0)
	if err != nil {
		return nil, fmt.Errorf("reading the current objects: %w", err)
	}
	h.caches.base = rev
	for rec, err := range records {
		if _, _, damaged := h.damage(err); damaged {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the current objects: %w", err)
		}
		if c, key := h.cacheOf(rec.Key); c != nil {
			c.load(key, newEntry(h.forms, key, rec.Revision, rec.Value))
		}
	}
	h.revision.Store(int64(rev))
	follow, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	go h.follow(follow)
	return h, nil
}

// Close ends all cursors, feeds and waits with ErrClosed, and waits for the
// hub's goroutine. The backend stays open.
func (h *Hub) Close() error {
	h.cancel()
	<-h.done
	return nil
}

// Revision returns the newest revision that all caches show.
func (h *Hub) Revision() storage.Revision { return storage.Revision(h.revision.Load()) }

// Cache returns the cache of a resource type, named as in storage keys. It is
// the same one at every call.
func (h *Hub) Cache(r meta.GroupResource) *Cache { return h.cache(r.String() + "/") }

// Stored returns the resource types of which there are objects, or were.
func (h *Hub) Stored() (list []meta.GroupResource) {
	for _, c := range h.all() {
		list = append(list, c.resource)
	}
	return list
}

// Drop ends the watches of a type that is not served any more with ErrEnded, once
// they have delivered what happened until now, and forgets its declared fields. Objects that the backend still has stay known.
func (h *Hub) Drop(r meta.GroupResource) {
	c := h.Cache(r)
	c.Index(nil)
	c.endWatches()
}

// cacheOf returns the cache that a storage key belongs to and the key within it;
// nil: it is no object's.
func (h *Hub) cacheOf(key string) (*Cache, string) {
	if strings.HasPrefix(key, resource.ReservationPrefix) {
		return nil, ""
	}
	i := strings.IndexByte(key, '/')
	if i < 0 || strings.IndexByte(key[i+1:], '/') < 0 {
		return nil, ""
	}
	return h.cache(key[:i+1]), key[i+1:]
}

func (h *Hub) cache(prefix string) *Cache {
	h.caches.RLock()
	c := h.caches.by[prefix]
	h.caches.RUnlock()
	if c != nil {
		return c
	}
	h.caches.Lock()
	defer h.caches.Unlock()
	if c = h.caches.by[prefix]; c == nil {
		r, _, _ := resource.ParseStorageKey(prefix + "/")
		c = newCache(h, r, strings.Clone(prefix), h.caches.base)
		h.caches.by[c.prefix] = c
		h.caches.list = append(h.caches.list, c)
	}
	return c
}

// all returns the caches there are; the result is not written any more.
func (h *Hub) all() []*Cache {
	h.caches.RLock()
	defer h.caches.RUnlock()
	return h.caches.list[:len(h.caches.list):len(h.caches.list)]
}

func (h *Hub) isClosed() bool { return h.closed.Load() }

// gate is where all wait who want to see one revision.
type gate struct {
	revision storage.Revision
	members  int
	place    int // in the heap
	open     chan struct{}
}

// Wait returns when all caches show a revision, or when the context ends or the
// hub is closed, with that error.
func (h *Hub) Wait(ctx context.Context, rev storage.Revision) error {
	if h.Revision() >= rev {
		return nil
	}
	g := h.enter(rev)
	if g == nil {
		return nil
	}
	select {
	case <-g.open:
		return nil
	case <-h.done:
		return ErrClosed
	case <-ctx.Done():
		h.leave(g)
		return ctx.Err()
	}
}

// enter returns the gate of a revision, or nil if that has come.
func (h *Hub) enter(rev storage.Revision) *gate {
	h.waits.Lock()
	defer h.waits.Unlock()
	if h.Revision() >= rev {
		return nil
	}
	g := h.waits.by[rev]
	if g == nil {
		g = &gate{revision: rev, open: make(chan struct{})}
		h.waits.by[rev] = g
		heap.Push(&h.waits.gates, g)
	}
	g.members++
	return g
}

func (h *Hub) leave(g *gate) {
	h.waits.Lock()
	defer h.waits.Unlock()
	if g.members--; g.members == 0 && h.waits.by[g.revision] == g {
		delete(h.waits.by, g.revision)
		heap.Remove(&h.waits.gates, g.place)
	}
}

// advance tells that all caches show a revision now.
func (h *Hub) advance(rev storage.Revision) {
	h.waits.Lock()
	defer h.waits.Unlock()
	h.revision.Store(max(h.revision.Load(), int64(rev)))
	for len(h.waits.gates) > 0 && h.waits.gates[0].revision <= rev {
		g := heap.Pop(&h.waits.gates).(*gate)
		delete(h.waits.by, g.revision)
		close(g.open)
	}
}

type gateHeap []*gate

func (q gateHeap) Len() int           { return len(q) }
func (q gateHeap) Less(i, j int) bool { return q[i].revision < q[j].revision }
func (q gateHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *gateHeap) Push(x any) {
	g := x.(*gate)
	g.place = len(*q)
	*q = append(*q, g)
}

func (q *gateHeap) Pop() any {
	last := len(*q) - 1
	g := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return g
}

// history calls each with the commits after one revision up to and including
// another, as the backend remembers them, until it returns false. Those that do not
// concern the type have no events.
func (h *Hub) history(ctx context.Context, c *Cache, after, last storage.Revision, each func(commit) bool) error {
	for events, err := range h.stretch(ctx, c, after, last) {
		if err != nil {
			return gone(err)
		}
		rev := events[0].Revision
		cm := commit{Revision: min(rev, last)}
		for i := range events {
			if key, ok := strings.CutPrefix(events[i].Key, c.prefix); ok && rev <= last {
				if events[i].Damaged != nil {
					return ErrGone
				}
				old, now := h.states(&events[i], key)
				cm.Events = append(cm.Events, record{old: old, new: now})
			}
		}
		if !each(cm) || rev >= last {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.historian == nil {
		return errors.New("the backend's watch ended")
	}
	each(commit{Revision: last})
	return nil
}

// stretch returns the commits of the backend that history looks at.
func (h *Hub) stretch(ctx context.Context, c *Cache, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	switch {
	case h.historian != nil:
		return h.historian.History(ctx, c.prefix, after, last)
	case last <= c.base:
		return h.backend.Watch(ctx, "", after) // the change that ends the history may be another type's
	}
	return h.backend.Watch(ctx, c.prefix, after)
}

// states returns an object before and after an event; nil is not there.
func (h *Hub) states(ev *storage.Event, key string) (old, now *Entry) {
	if ev.Prev.Revision != 0 {
		old = newEntry(h.forms, key, ev.Prev.Revision, ev.Prev.Value)
	}
	if !ev.Deleted() {
		now = newEntry(h.forms, key, ev.Revision, ev.Value)
	}
	return old, now
}
