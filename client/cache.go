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

// Cache holds objects in memory, kept current by a watch while Run runs. What it gives is
// shared by all who read it and must not be changed; an object that changes at the server
// is another value, so that what was read stays as it is.
type Cache[T any] struct {
	objects *Objects[T]
	synced  chan struct{} // closed when the cache holds what was there at the start

	mu      sync.RWMutex // guards the rest but observe
	current *btree.BTreeG[cached[T]]
	version uint64 // of the server's state that it holds
	changed chan struct{}
	running bool
	failure error                           // of the last attempt to watch, nil while that works
	observe func(key meta.Key, old, new *T) // called with each change; set before Run
}

type cached[T any] struct {
	key   meta.Key
	value *T
}

func newTree[T any]() *btree.BTreeG[cached[T]] {
	less := func(a, b cached[T]) bool {
		if a.key.Namespace != b.key.Namespace {
			return a.key.Namespace < b.key.Namespace
		}
		return a.key.Name < b.key.Name
	}
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// Cache returns a cache of the objects, which is empty until it runs (Run).
func (o *Objects[T]) Cache() *Cache[T] {
	return &Cache[T]{
		objects: o, synced: make(chan struct{}), current: newTree[T](), changed: make(chan struct{}), observe: func(meta.Key, *T, *T) {},
	}
}

// Run keeps the cache current until the context ends, and returns nil then. What fails is
// tried again, for as long as it takes: what the cache holds stays meanwhile. It is called
// once.
func (c *Cache[T]) Run(ctx context.Context) error {
	c.mu.Lock()
	again := c.running
	c.running = true
	c.mu.Unlock()
	if again {
		return fmt.Errorf("the cache of %s runs already", c.objects.resource())
	}
	if c.objects.err != nil {
		return c.objects.err
	}
	for wait := firstPause; ctx.Err() == nil; wait = min(2*wait, longestPause) {
		whole, err := c.follow(ctx)
		if ctx.Err() != nil {
			break
		}
		c.mu.Lock()
		c.failure = err
		c.mu.Unlock()
		if whole {
			wait = firstPause
		}
		c.objects.conn.log().Warn("a cache starts over", "of", c.objects.resource(), "in", wait, "error", err)
		if pause(ctx, jitter(wait)) != nil {
			break
		}
	}
	return nil
}

// follow watches from the start until that fails, and reports whether it saw all that was
// there.
func (c *Cache[T]) follow(ctx context.Context) (whole bool, err error) {
	next := newTree[T]()
	for e, err := range c.objects.watch(ctx, "", c.quiet) {
		switch {
		case err != nil:
			return whole, err
		case e.Type == Synced:
			whole = true
			c.replace(next, e.Version)
		case !whole:
			next.Set(cached[T]{e.Key, e.Object})
		default:
			c.apply(e)
		}
	}
	return whole, nil
}

// replace puts all objects in the place of those before.
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
	c.seen(version)
	select {
	case <-c.synced:
	default:
		close(c.synced)
	}
}

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
	c.seen(e.Version)
}

// quiet notes a version at which nothing happened to the objects.
func (c *Cache[T]) quiet(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen(version)
}

// seen notes up to which version the cache has all. The lock is held. It may go back: a
// server may have lost its store.
func (c *Cache[T]) seen(version string) {
	if n, err := strconv.ParseUint(version, 10, 64); err == nil {
		c.version = n
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// onChange sets a function that is called with each change; old is nil for a new object, new
// for a deleted one. The lock is held during the call. Call onChange before Run.
func (c *Cache[T]) onChange(f func(key meta.Key, old, new *T)) { c.observe = f }

// Wait waits until the cache holds what was there when it began to run. If the context
// ends before, the error tells what it failed at.
func (c *Cache[T]) Wait(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return c.waited(ctx, "the objects that are there")
	}
}

// WaitFor waits until the cache has seen a version, such as that of an object that was
// written (resourceVersion): what is read after that is at least as new. A cache that
// selects sees versions of other objects only now and then.
func (c *Cache[T]) WaitFor(ctx context.Context, version string) error {
	want, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return meta.BadRequest("%q is no version to wait for", version)
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
			return c.waited(ctx, "version "+version)
		}
	}
}

func (c *Cache[T]) waited(ctx context.Context, what string) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return fmt.Errorf("waiting for %s in the cache of %s: %w", what, c.objects.resource(), errors.Join(context.Cause(ctx), c.failure))
}

// Get returns an object, and whether it is there.
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

// All returns the objects in the order of their keys, as they are when the iteration
// begins. It holds no lock while it goes on.
func (c *Cache[T]) All() iter.Seq2[meta.Key, *T] {
	return func(yield func(meta.Key, *T) bool) {
		c.snapshot().Scan(func(e cached[T]) bool { return yield(e.key, e.value) })
	}
}

// In is All of one namespace.
func (c *Cache[T]) In(namespace string) iter.Seq2[meta.Key, *T] {
	return func(yield func(meta.Key, *T) bool) {
		c.snapshot().Ascend(cached[T]{key: meta.Key{Namespace: namespace}}, func(e cached[T]) bool {
			return e.key.Namespace == namespace && yield(e.key, e.value)
		})
	}
}

// snapshot returns what is there now. It shares all that does not change.
func (c *Cache[T]) snapshot() *btree.BTreeG[cached[T]] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Copy()
}
