package watch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// snapshot is the state of a cache at a revision. Its tree is immutable.
type snapshot[V Entry] struct {
	tree  *btree.Map[string, V]
	other int64 // bytes of its records that were already replaced when it was created
}

// Cache holds the current entries under a key prefix, and the newest events. All
// methods are safe for concurrent use.
//
// Invariants, under mu: the newest commit of the log is the last commit that changed the
// tree, except for keys that became damaged or readable again; cursors from before such
// a change are severed. For every revision that is not below exact and that the log still
// covers, undoing the later commits of the log on the tree gives the state at that
// revision.
type Cache[V Entry] struct {
	set    *CacheSet[V]
	prefix string

	newest   atomic.Int64 // newest revision of the log; written under mu
	counters counters

	mu       sync.RWMutex // guards the fields below
	tree     *btree.Map[string, V]
	current  *snapshot[V]     // snapshot of tree; nil until a reader needs it
	base     storage.Revision // revision of the CacheSet when the cache was created
	exact    storage.Revision // the log has all commits from this revision on
	log      eventlog.Log[Event[V]]
	topics   func([]Topic, V) ([]Topic, bool) // see SetTopics
	scratch  []Topic                          // reused by publish
	parked   eventlog.Waiters[Topic]
	pins     []pin[V]                    // oldest first
	replaced int64                       // bytes of all records ever replaced
	damaged  map[string]storage.Revision // by key
	severed  storage.Revision            // cursors before this revision fail
	era      *era                        // the era of new cursors
}

func newCache[V Entry](s *CacheSet[V], prefix string, rev storage.Revision) *Cache[V] {
	c := &Cache[V]{
		set: s, prefix: prefix,
		tree: new(btree.Map[string, V]), base: rev, exact: rev,
		parked: make(eventlog.Waiters[Topic]), era: new(era),
	}
	c.newest.Store(int64(rev))
	c.log.Init(rev, eventlog.Limits{Age: s.options.Retain, Events: s.options.MaxEvents, Bytes: s.options.MaxBytes})
	return c
}

// Prefix returns the prefix of the cache's storage keys.
func (c *Cache[V]) Prefix() string { return c.prefix }

// Len returns the number of entries.
func (c *Cache[V]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tree.Len()
}

// Changed returns the revision of the newest event. It takes no lock.
func (c *Cache[V]) Changed() storage.Revision { return storage.Revision(c.newest.Load()) }

// Get returns the current entry of a key, or the zero value if the key has no record. To
// see the result of a certain commit, call CacheSet.Wait first.
func (c *Cache[V]) Get(key string) V {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, _ := c.tree.Get(key)
	return e
}

// revision returns the revision that the cache shows: the revision of the CacheSet or of
// the commit that is being applied. The CacheSet applies commits to all caches in order,
// so there is no other commit between the two. The caller holds c.mu.
func (c *Cache[V]) revision() storage.Revision { return max(c.set.Revision(), c.log.Newest()) }

// snapshotNow returns the current state and its revision.
func (c *Cache[V]) snapshotNow() (*snapshot[V], storage.Revision) {
	c.mu.RLock()
	s, rev := c.current, c.revision()
	c.mu.RUnlock()
	if s != nil {
		return s, rev
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshotLocked(), c.revision()
}

func (c *Cache[V]) snapshotLocked() *snapshot[V] {
	if c.current == nil {
		c.current = &snapshot[V]{tree: c.tree.Copy()}
	}
	return c.current
}

// apply applies the changes of a commit. It returns the waiting cursors to release
// and the growth of the log in bytes.
func (c *Cache[V]) apply(changes []change[V], now time.Time) (woken eventlog.Woken, grown int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counters.received.Add(uint64(len(changes)))
	var none V
	before := c.log.Bytes()
	cm := commit[V]{Revision: changes[0].revision, Events: make([]Event[V], 0, len(changes))}
	for i := range changes {
		ch := &changes[i]
		if ch.damaged {
			woken = append(woken, c.setDamaged(ch.key, ch.revision)...)
			continue
		}
		woken = append(woken, c.mend(ch.key, ch.revision)...)
		old, had := c.tree.Get(ch.key)
		if ch.entry == none && !had || had && revisionOf(old) >= ch.revision {
			continue
		}
		c.put(ch.key, old, ch.entry)
		cm.Events = append(cm.Events, Event[V]{Old: old, New: ch.entry, Revision: cm.Revision})
		cm.Bytes += cm.Events[len(cm.Events)-1].bytes()
	}
	switch {
	case len(cm.Events) == 0:
		return woken, 0
	case cm.Revision <= c.log.Newest():
		// A damaged record is readable again, but its event would be out of order.
		return append(woken, c.sever(c.revision()+1)...), 0
	}
	c.counters.published.Add(uint64(len(cm.Events)))
	floor := c.log.Floor()
	woken = append(woken, c.publish(now, cm)...)
	if up := c.log.Floor(); up > floor && up > c.log.Retained(now) {
		c.counters.shortened.Add(1)
	}
	c.replaced += cm.Bytes
	c.forgetPins(now)
	return woken, c.log.Bytes() - before
}

// load adds an entry without an event, before the cache has readers.
func (c *Cache[V]) load(key string, e V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var none V
	c.put(key, none, e)
}

// put replaces the current entry of a key; the zero value means no record. The caller
// holds the lock.
func (c *Cache[V]) put(key string, old, now V) {
	var none V
	c.current = nil
	c.counters.bytes.Add(sizeOf(now) - sizeOf(old))
	if now == none {
		c.tree.Delete(key)
	} else {
		c.tree.Set(key, now)
	}
	c.set.options.Replaced(c.prefix, old, now)
}

// sweep drops events and snapshots that are too old. It returns the growth of the log
// in bytes.
func (c *Cache[V]) sweep(now time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.log.Bytes()
	c.log.Trim(now)
	c.forgetPins(now)
	return c.log.Bytes() - before
}

// compacted returns an error if a revision is too old by Options.Retain; the caller
// holds the lock.
func (c *Cache[V]) compacted(rev storage.Revision) error {
	if oldest := c.log.Retained(time.Now()); rev < oldest {
		return &storage.CompactedError{Oldest: oldest}
	}
	return nil
}

// since returns the revision of the oldest commit in the log, or 0 if the log has no
// commit except the newest.
func (c *Cache[V]) since() storage.Revision {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.log.First()
}

// shorten drops the oldest commits, but never the newest commit. It returns the growth of
// the log in bytes.
func (c *Cache[V]) shorten() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.log.Bytes()
	c.log.Shorten()
	c.counters.shortened.Add(1)
	return c.log.Bytes() - before
}
