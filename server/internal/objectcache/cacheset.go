package objectcache

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// The types of package watch, for objects.
type (
	Cursor = watch.Cursor[*Entry]
	Event  = watch.Event[*Entry]
	Page   = watch.Page[*Entry]
)

// Options configure a Set. The fields that watch.Options has as well mean the same.
type Options struct {
	Retain       time.Duration
	MaxEvents    int
	MaxBytes     int64
	MaxSnapshots int
	// MaxEncodedBytes bounds the bytes of all kept encodings; 32 MiB by default.
	MaxEncodedBytes int64
	OnPanic         func(p any)
	OnCommit        func()
}

// Set follows a backend and holds its objects in a Cache for each resource type. All
// methods are safe for concurrent use.
type Set struct {
	set    *watch.CacheSet[*Entry]
	sizes  sizes
	caches struct {
		sync.RWMutex
		by map[meta.GroupResource]*Cache
	}
}

// Open reads all objects of the backend and follows it until Close. Records that are not
// objects, such as reservations, are in no cache.
func Open(ctx context.Context, b storage.Backend, o Options) (*Set, error) {
	s := &Set{}
	s.sizes.by = make(map[string]int64)
	s.caches.by = make(map[meta.GroupResource]*Cache)
	budget := newEncodingBudget(o.MaxEncodedBytes)
	var err error
	s.set, err = watch.Open(ctx, b, watch.Options[*Entry]{
		Entry:    func(r storage.Record) *Entry { return newEntry(budget, r.Key, r.Revision, r.Value) },
		Split:    split,
		Replaced: s.replaced,
		Retain:   o.Retain, MaxEvents: o.MaxEvents, MaxBytes: o.MaxBytes, MaxSnapshots: o.MaxSnapshots,
		OnPanic: o.OnPanic, OnCommit: o.OnCommit,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// split implements watch.Options.Split. Keys of objects are "resource.group/namespace/name".
func split(storageKey string) (prefix, key string, ok bool) {
	i := strings.IndexByte(storageKey, '/') + 1
	if strings.IndexByte(storageKey[i:], '/') < 0 || strings.HasPrefix(storageKey, resource.ReservationPrefix) {
		return "", "", false
	}
	return storageKey[:i], storageKey[i:], i > 0
}

// replaced implements watch.Options.Replaced.
func (s *Set) replaced(prefix string, old, now *Entry) {
	s.sizes.count(prefix, old, now)
	if now != nil {
		now.current.Store(1)
	}
	if old != nil {
		old.current.Store(0)
		old.leaveBlock(nil)
	}
}

// Close ends all cursors, feeds and waits with storage.ErrClosed. The backend stays open.
func (s *Set) Close() error { return s.set.Close() }

// Revision returns the newest revision that all caches show.
func (s *Set) Revision() storage.Revision { return s.set.Revision() }

// Wait returns nil when all caches show a revision, see watch.CacheSet.Wait.
func (s *Set) Wait(ctx context.Context, rev storage.Revision) error { return s.set.Wait(ctx, rev) }

// HistoryUsed returns the used fraction of Options.MaxBytes for events in memory.
func (s *Set) HistoryUsed() float64 { return s.set.HistoryUsed() }

// Cache returns the cache of a resource type, named as in storage keys. Every call returns the same Cache.
func (s *Set) Cache(r meta.GroupResource) *Cache {
	s.caches.RLock()
	c := s.caches.by[r]
	s.caches.RUnlock()
	if c != nil {
		return c
	}
	s.caches.Lock()
	defer s.caches.Unlock()
	if c = s.caches.by[r]; c == nil {
		c = &Cache{Cache: s.set.Cache(r.String() + "/")}
		c.Index(nil)
		s.caches.by[r] = c
	}
	return c
}

// Stored returns the resource types that have objects, or have had objects since Open.
func (s *Set) Stored() (list []meta.GroupResource) {
	for _, c := range s.set.Caches() {
		list = append(list, resourceOf(c))
	}
	return list
}

// Drop ends the watches of a type that is no longer served with watch.ErrEnded, after they have delivered all events
// so far, and forgets its selectable fields. The cache keeps the objects that are still stored.
func (s *Set) Drop(r meta.GroupResource) {
	c := s.Cache(r)
	c.Index(nil)
	c.EndWatches()
}

// resourceOf returns the resource type of a cache.
func resourceOf(c *watch.Cache[*Entry]) (r meta.GroupResource) {
	name, _ := strings.CutSuffix(c.Prefix(), "/")
	r.Resource, r.Group, _ = strings.Cut(name, ".")
	return r
}

// Cache holds the objects of a resource type. All methods are safe for concurrent use.
type Cache struct {
	*watch.Cache[*Entry]
	index atomic.Pointer[[]registry.SelectableField]
}

// Get returns the current entry of an object, or nil. To see a certain commit, call Set.Wait first.
func (c *Cache) Get(key meta.Key) *Entry { return c.Cache.Get(cacheKey(key)) }

// List returns the current objects that the query selects, see watch.Cache.List.
func (c *Cache) List(q Query, start string, limit int) Page {
	return c.Cache.List(c.compile(q), start, limit)
}

// ListAt returns the objects at exactly a revision, see watch.Cache.ListAt.
func (c *Cache) ListAt(ctx context.Context, rev storage.Revision, q Query, start string, limit int) (Page, error) {
	return c.Cache.ListAt(ctx, rev, c.compile(q), start, limit)
}

// Watch returns a cursor on the events after a revision, see watch.Cache.Watch.
func (c *Cache) Watch(q Query, after storage.Revision) (*Cursor, error) {
	return c.Cache.Watch(c.compile(q), after)
}

// ListAndWatch returns the current objects and a cursor on the events after them, see
// watch.Cache.ListAndWatch.
func (c *Cache) ListAndWatch(q Query) ([]*Entry, *Cursor) {
	return c.Cache.ListAndWatch(c.compile(q))
}

// Damaged returns the keys of the unreadable objects in a namespace ("" for all), sorted.
func (c *Cache) Damaged(namespace string) (keys []meta.Key) {
	for _, key := range slices.Sorted(maps.Keys(c.Cache.Damaged())) {
		if k := keyOf(key); namespace == "" || k.Namespace == namespace {
			keys = append(keys, k)
		}
	}
	return keys
}

// DamagedAt returns the revision of an unreadable object. ok is false if the object is not unreadable.
func (c *Cache) DamagedAt(key meta.Key) (rev storage.Revision, ok bool) {
	rev, ok = c.Cache.Damaged()[cacheKey(key)]
	return rev, ok
}

// cacheKey returns the key of an object within its cache; keyOf is the inverse.
func cacheKey(k meta.Key) string { return k.Namespace + "/" + k.Name }

func keyOf(key string) meta.Key {
	namespace, name, _ := strings.Cut(key, "/")
	return meta.Key{Namespace: namespace, Name: name}
}
