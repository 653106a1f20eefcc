// Package cache has a bounded map with entries that expire.
package cache

import (
	"container/list"
	"sync"
	"time"
)

// Cache holds a limited number of values, each until it expires. When it is full, the least
// recently used value is removed. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	max int
	now func() time.Time

	mu    sync.Mutex // guards the fields below
	items map[K]*list.Element
	used  *list.List // of *entry[K, V], most recently used first
}

type entry[K comparable, V any] struct {
	key     K
	value   V
	expires time.Time
}

// New returns a cache of at most max values. now returns the current time.
func New[K comparable, V any](max int, now func() time.Time) *Cache[K, V] {
	return &Cache[K, V]{max: max, now: now, items: map[K]*list.Element{}, used: list.New()}
}

// Get returns the value of a key. ok is false if there is none or it has expired.
func (c *Cache[K, V]) Get(key K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.items[key]
	if !ok {
		return v, false
	}
	e := el.Value.(*entry[K, V])
	if !c.now().Before(e.expires) {
		c.remove(el)
		return v, false
	}
	c.used.MoveToFront(el)
	return e.value, true
}

// Put stores a value that expires after keep. If keep is zero or negative, it stores nothing.
func (c *Cache[K, V]) Put(key K, v V, keep time.Duration) {
	if keep <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.items[key]; ok {
		c.remove(el)
	}
	for len(c.items) >= c.max {
		c.remove(c.used.Back())
	}
	c.items[key] = c.used.PushFront(&entry[K, V]{key, v, c.now().Add(keep)})
}

// Len returns the number of stored values, including expired values.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.items)
}

// remove removes an element. c.mu is held.
func (c *Cache[K, V]) remove(el *list.Element) {
	delete(c.items, el.Value.(*entry[K, V]).key)
	c.used.Remove(el)
}
