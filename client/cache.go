package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"

	"github.com/tidwall/btree"

	"orch.io/controlplane/api/meta"
)

// Cache holds objects in memory. While Run runs, a watch keeps them current. The methods may be
// called concurrently. Cached objects are shared by all readers: do not modify them. When an object
// changes at the server, the cache replaces it and does not modify it.
type Cache[T any] struct {
	objects *Objects[T]
	synced  chan struct{} // closed when the cache holds all objects of the first list

	mu      sync.RWMutex // guards the fields below, except observe
	current *btree.BTreeG[cached[T]]
	version uint64        // of the server's state that the cache shows
	changed chan struct{} // closed and replaced when version changes
	running bool
	failure error                           // of the last watch; nil while the watch works
	observe func(key meta.Key, old, new *T) // called for each change with mu held; set before Run
}

type cached[T any] struct {
	key   meta.Key
	value *T
}

// newTree returns an empty tree sorted by namespace and name.
func newTree[T any]() *btree.BTreeG[cached[T]] {
	less := func(a, b cached[T]) bool {
		if a.key.Namespace != b.key.Namespace {
			return a.key.Namespace < b.key.Namespace
		}
		return a.key.Name < b.key.Name
	}
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// Cache returns an empty cache of the objects, which respects namespace and selectors. Call Run to
// fill it.
func (o *Objects[T]) Cache() *Cache[T] {
	return &Cache[T]{
		objects: o, synced: make(chan struct{}), current: newTree[T](), changed: make(chan struct{}), observe: func(meta.Key, *T, *T) {},
	}
}

// Run keeps the cache current until the context ends and then returns nil. After a failure it
// retries without limit; meanwhile the cache keeps its objects. Run may be called only once: a
// second call, and a call for an invalid kind, returns an error.
func (c *Cache[T]) Run(ctx context.Context) error {
	c.mu.Lock()
	again := c.running
	c.running = true
	c.mu.Unlock()
	if again {
		return fmt.Errorf("the cache of %s is already running", c.objects.resource())
	}
	if c.objects.err != nil {
		return c.objects.err
	}
	for wait := minPause; ctx.Err() == nil; wait = min(2*wait, maxPause) {
		synced, err := c.follow(ctx)
		if ctx.Err() != nil {
			break
		}
		c.mu.Lock()
		c.failure = err
		c.mu.Unlock()
		if synced {
			wait = minPause
		}
		c.objects.conn.log().Warn("cache failed; it lists again after a pause", "resource", c.objects.resource(), "pause", wait, "error", err)
		if pause(ctx, jitter(wait)) != nil {
			break
		}
	}
	return nil
}

// follow lists and watches the objects until the watch fails. It reports whether the list was
// complete.
func (c *Cache[T]) follow(ctx context.Context) (synced bool, err error) {
	next := newTree[T]()
	for e, err := range c.objects.watch(ctx, "", c.bookmark) {
		switch {
		case err != nil:
			return synced, err
		case e.Type == Synced:
			synced = true
			c.replace(next, e.Version)
		case !synced:
			next.Set(cached[T]{e.Key, e.Object})
		default:
			c.apply(e)
		}
	}
	return synced, nil
}

// replace replaces all objects and reports the differences to observe.
func (c *Cache[T]) replace(next *btree.BTreeG[cached[T]], version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.current
	c.current, c.failure = next, nil
	before.Scan(func(old cached[T]) bool {
		if _, ok := next.Get(old); !ok {
			c.observe(old.key, old.value, nil)
		}
		return true
	})
	next.Scan(func(now cached[T]) bool {
		old, _ := before.Get(now)
		c.observe(now.key, old.value, now.value)
		return true
	})
	c.setVersion(version)
	select {
	case <-c.synced:
	default:
		close(c.synced)
	}
}

// apply applies an event to the cache.
func (c *Cache[T]) apply(e WatchEvent[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Type == Deleted {
		c.current.Delete(cached[T]{key: e.Key})
		c.observe(e.Key, e.Object, nil)
	} else {
		old, _ := c.current.Set(cached[T]{e.Key, e.Object})
		c.observe(e.Key, old.value, e.Object)
	}
	c.setVersion(e.Version)
}

// bookmark records that the cache is current as of a version that changed none of its objects.
func (c *Cache[T]) bookmark(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setVersion(version)
}

// setVersion records the version of the server's state that the cache shows, and wakes WaitFor.
// c.mu must be held. The version may decrease if the server lost its latest writes.
func (c *Cache[T]) setVersion(version string) {
	if n, err := strconv.ParseUint(version, 10, 64); err == nil {
		c.version = n
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// onChange sets a function that is called for each change, with c.mu held. old is nil for a new
// object, and new is nil for a deleted object. Call onChange before Run.
func (c *Cache[T]) onChange(f func(key meta.Key, old, new *T)) { c.observe = f }

// Wait waits until the cache holds all objects that existed when Run began. If the context ends
// first, the error includes the failure of the last watch.
func (c *Cache[T]) Wait(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return c.waitError(ctx, "the initial objects")
	}
}

// WaitFor waits until the cache shows a version, such as the resourceVersion of a written object:
// later reads are at least as new. A cache with selectors learns the versions of unselected objects
// only by bookmarks, which the server sends now and then.
func (c *Cache[T]) WaitFor(ctx context.Context, version string) error {
	want, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return meta.BadRequest("invalid resourceVersion %q", version)
	}
	for {
		c.mu.RLock()
		seen, changed := c.version >= want, c.changed
		c.mu.RUnlock()
		if seen {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return c.waitError(ctx, "version "+version)
		}
	}
}

// waitError returns the error of a wait that the context ended.
func (c *Cache[T]) waitError(ctx context.Context, what string) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return fmt.Errorf("waiting for %s in the cache of %s: %w", what, c.objects.resource(), errors.Join(context.Cause(ctx), c.failure))
}

// Get returns an object and reports whether it exists.
func (c *Cache[T]) Get(key meta.Key) (*T, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.current.Get(cached[T]{key: key})
	return e.value, ok
}

// Len returns the number of objects.
func (c *Cache[T]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.current.Len()
}

// All returns the objects in the order of namespace and name, as of the start of the iteration. It
// holds no lock while it iterates.
func (c *Cache[T]) All() iter.Seq2[meta.Key, *T] {
	return func(yield func(meta.Key, *T) bool) {
		c.snapshot().Scan(func(e cached[T]) bool { return yield(e.key, e.value) })
	}
}

// In is All for a single namespace.
func (c *Cache[T]) In(namespace string) iter.Seq2[meta.Key, *T] {
	return func(yield func(meta.Key, *T) bool) {
		c.snapshot().Ascend(cached[T]{key: meta.Key{Namespace: namespace}}, func(e cached[T]) bool {
			return e.key.Namespace == namespace && yield(e.key, e.value)
		})
	}
}

// snapshot returns a copy-on-write copy of the current tree. It locks for writing, because Copy
// marks the shared nodes.
func (c *Cache[T]) snapshot() *btree.BTreeG[cached[T]] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Copy()
}
