// Package cache is a bounded map whose entries end.
package cache

import (
	"container/list"
	"sync"
	"time"
)

// Cache keeps at most a number of values, each until its time is over; the one
// unused for longest makes room. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	max int
	now func() time.Time

	mu    sync.Mutex // guards the rest
	items map[K]*list.Element
	used  *list.List // of entry[K, V], the last used first
}

type entry[K comparable, V any] struct {
	key   K
	value V
	ends  time.Time
}

// New returns a cache of at most max values. now is the clock.
func New[K comparable, V any](max int, now func() time.Time) *Cache[K, V] {
	return &Cache[K, V]{max: max, now: now, items: map[K]*list.Element{}, used: list.New()}
}

// Get returns the value of a key if it is there and its time is not over.
func (c *Cache[K, V]) Get(key K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.items[key]
	if !ok {
		return v, false
	}
	e := el.Value.(*entry[K, V])
	if !c.now().Before(e.ends) {
		c.remove(el)
		return v, false
	}
	c.used.MoveToFront(el)
	return e.value, true
}

// Put keeps a value for some time; a time of zero or less keeps nothing.
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

// Len returns how many values are kept, ended ones among them.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.items)
}

// remove is called with mu held.
func (c *Cache[K, V]) remove(el *list.Element) {
	delete(c.items, el.Value.(*entry[K, V]).key)
	c.used.Remove(el)
}
