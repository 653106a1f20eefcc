package watch

import (
	"sync"
	"time"

	"github.com/tidwall/btree"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/storage"
)

type tree = btree.Map[string, *Entry]

// snapshot is all objects of a type at one revision. Its tree is never written.
type snapshot struct {
	tree  *tree
	other int64 // bytes of objects in it that were replaced before it was made
}

// Cache holds the objects of one resource type. All methods are safe for
// concurrent use.
type Cache struct {
	hub      *Hub
	resource meta.GroupResource
	prefix   string // of storage keys

	mu       sync.RWMutex
	tree     *tree
	current  *snapshot        // of tree, if somebody asked for it
	last     storage.Revision // of the newest change here
	base     storage.Revision // when the cache was made
	exact    storage.Revision // from here on the log knows every single state
	log      eventLog
	ages     storage.Retention // of the changes here
	index    []registry.SelectableField
	parked   map[interest]*group
	pins     []pin // oldest first
	replaced int64 // bytes of all objects that were ever replaced
	damaged  map[string]storage.Revision
	severed  storage.Revision // watches from before it cannot go on
	era      *era             // of the cursors that begin now
}

func newCache(h *Hub, r meta.GroupResource, prefix string, rev storage.Revision) *Cache {
	return &Cache{
		hub: h, resource: r, prefix: prefix,
		tree: new(tree), last: rev, base: rev, exact: rev, log: eventLog{floor: rev},
		ages:   storage.Retention{Keep: h.options.Retain},
		parked: make(map[interest]*group), era: new(era),
	}
}

// Len returns the number of objects.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tree.Len()
}

// Changed returns the revision of the newest change of the type.
func (c *Cache) Changed() storage.Revision {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.last
}

// Get returns the newest state of an object, or nil. To see a certain commit,
// call Hub.Wait before.
func (c *Cache) Get(key meta.Key) *Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, _ := c.tree.Get(key.Namespace + "/" + key.Name)
	return e
}

// revision returns the revision that the cache shows; the caller holds the lock.
// The hub applies changes of all types in order, so a change that is here and
// not counted by the hub yet comes right after those that are.
func (c *Cache) revision() storage.Revision { return max(c.hub.Revision(), c.last) }

// snapshotNow returns the current objects and the revision that they show.
func (c *Cache) snapshotNow() (*snapshot, storage.Revision) {
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

func (c *Cache) snapshotLocked() *snapshot {
	if c.current == nil {
		c.current = &snapshot{tree: c.tree.Copy()}
	}
	return c.current
}

// apply takes in the changes of one commit. It returns the parked cursors to
// release, and by how many bytes the log grew.
func (c *Cache) apply(changes []change, now time.Time) (woken groups, grown int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, news := c.log.bytes, false
	for i := range changes {
		ch := &changes[i]
		woken = append(woken, c.mend(ch.key, ch.revision)...)
		old, had := c.tree.Get(ch.key)
		if ch.entry == nil && !had || had && old.revision >= ch.revision {
			continue
		}
		c.put(ch.key, old, ch.entry)
		c.last = max(c.last, ch.revision)
		r := &record{revision: ch.revision, old: old, new: ch.entry}
		woken = append(woken, c.publish(r)...)
		c.replaced += r.size
		news = true
	}
	if !news {
		return woken, 0
	}
	c.ages.Committed(now, c.last)
	c.log.trim(c.ages.Oldest(now), c.hub.options.MaxEvents)
	c.forgetPins(now)
	return woken, c.log.bytes - before
}

// load puts in an object without an event; before anybody reads the cache.
func (c *Cache) load(key string, e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, nil, e)
}

// put replaces the state of an object; nil is not there. The caller holds the
// lock.
func (c *Cache) put(key string, old, e *Entry) {
	c.current = nil
	c.hub.held.count(c.prefix, key, old, e)
	if e == nil {
		c.tree.Delete(key)
	} else {
		e.current.Store(true)
		c.tree.Set(key, e)
	}
	if old != nil {
		old.current.Store(false)
		old.leaveBlock(nil)
	}
}

// sweep forgets what is too old and returns by how many bytes the log grew.
func (c *Cache) sweep(now time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.log.bytes
	c.log.trim(c.ages.Oldest(now), c.hub.options.MaxEvents)
	c.forgetPins(now)
	return c.log.bytes - before
}

// forgotten is the error for a revision that is history no more; the caller holds
// the lock. The rule is that of storage.Retention, for the states of this type.
func (c *Cache) forgotten(rev storage.Revision) error {
	if oldest := c.ages.Oldest(time.Now()); rev < oldest {
		return &GoneError{oldest}
	}
	return nil
}

// since returns the revision of the oldest change in the log, 0 if there is none
// but the newest.
func (c *Cache) since() storage.Revision {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.log.len() < 2 {
		return 0
	}
	return c.log.at(c.log.first).revision
}

// shorten drops the oldest changes, but not the newest one, until so many bytes
// are free or a chunk is, and returns by how many bytes the log grew.
func (c *Cache) shorten(bytes int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.log.bytes
	for n := 0; n < chunkSize && c.log.len() > 1 && before-c.log.bytes < bytes; n++ {
		c.log.drop(c.log.at(c.log.first))
	}
	return c.log.bytes - before
}
