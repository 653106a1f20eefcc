package watch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/eventlog"
)

type tree = btree.Map[string, *Entry]

// snapshot is all objects of a type at one revision. Its tree is never written.
type snapshot struct {
	tree  *tree
	other int64 // bytes of objects in it that were replaced before it was made
}

// Cache holds the objects of one resource type. All methods are safe for
// concurrent use.
//
// The lock guards everything below it. What it keeps true: the log's newest commit is
// the last one that changed the tree, but for objects that turned out to be damaged or
// whole again, and the watches from before that are severed; undoing the log's commits
// on the tree gives every state from exact on that the log reaches.
type Cache struct {
	hub      *Hub
	resource meta.GroupResource
	prefix   string // of storage keys

	newest atomic.Int64 // the newest revision of the log; set under the lock
	did    did

	mu       sync.RWMutex
	tree     *tree
	current  *snapshot        // of tree, if somebody asked for it
	base     storage.Revision // when the cache was made
	exact    storage.Revision // from here on the log knows every single state
	log      eventlog.Log[record]
	index    []registry.SelectableField
	unsure   func(*Entry) bool // of index, see Index; nil: of none
	parked   eventlog.Waiters[interest]
	pins     []pin // oldest first
	replaced int64 // bytes of all objects that were ever replaced
	damaged  map[string]storage.Revision
	severed  storage.Revision // watches from before it cannot go on
	era      *era             // of the cursors that begin now
}

func newCache(h *Hub, r meta.GroupResource, prefix string, rev storage.Revision) *Cache {
	c := &Cache{
		hub: h, resource: r, prefix: prefix,
		tree: new(tree), base: rev, exact: rev,
		parked: make(eventlog.Waiters[interest]), era: new(era),
	}
	c.newest.Store(int64(rev))
	c.log.Init(rev, eventlog.Limits{Age: h.options.Retain, Events: h.options.MaxEvents, Bytes: h.options.MaxBytes})
	return c
}

// Len returns the number of objects.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tree.Len()
}

// Changed returns the revision of the newest change of the type. It takes no lock.
func (c *Cache) Changed() storage.Revision { return storage.Revision(c.newest.Load()) }

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
func (c *Cache) revision() storage.Revision { return max(c.hub.Revision(), c.log.Newest()) }

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
func (c *Cache) apply(changes []change, now time.Time) (woken eventlog.Woken, grown int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did.received.Add(uint64(len(changes)))
	before := c.log.Bytes()
	cm := commit{Revision: changes[0].revision, Events: make([]record, 0, len(changes))}
	for i := range changes {
		ch := &changes[i]
		if ch.damaged {
			woken = append(woken, c.setDamaged(ch.key, ch.revision)...)
			continue
		}
		woken = append(woken, c.mend(ch.key, ch.revision)...)
		old, had := c.tree.Get(ch.key)
		if ch.entry == nil && !had || had && old.revision >= ch.revision {
			continue
		}
		c.put(ch.key, old, ch.entry)
		cm.Events = append(cm.Events, record{old: old, new: ch.entry})
		cm.Bytes += cm.Events[len(cm.Events)-1].bytes()
	}
	switch {
	case len(cm.Events) == 0:
		return woken, 0
	case cm.Revision <= c.log.Newest():
		// What could not be read before is there again, too late to be told in order.
		return append(woken, c.sever(c.revision()+1)...), 0
	}
	c.did.published.Add(uint64(len(cm.Events)))
	floor := c.log.Floor()
	woken = append(woken, c.publish(now, cm)...)
	if up := c.log.Floor(); up > floor && up > c.log.Retained(now) {
		c.did.shortened.Add(1)
	}
	c.replaced += cm.Bytes
	c.forgetPins(now)
	return woken, c.log.Bytes() - before
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
	c.did.bytes.Add(e.bytesOrNone() - old.bytesOrNone())
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
	before := c.log.Bytes()
	c.log.Trim(now)
	c.forgetPins(now)
	return c.log.Bytes() - before
}

// forgotten is the error for a revision that is history no more; the caller holds
// the lock. The rule is that of storage.Retention, for the states of this type.
func (c *Cache) forgotten(rev storage.Revision) error {
	if oldest := c.log.Retained(time.Now()); rev < oldest {
		return &GoneError{oldest}
	}
	return nil
}

// since returns the revision of the oldest change in the log, 0 if there is none
// but the newest.
func (c *Cache) since() storage.Revision {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.log.First()
}

// shorten drops the oldest changes, but not the newest one, and returns by how many
// bytes the log grew.
func (c *Cache) shorten() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.log.Bytes()
	c.log.Shorten()
	c.did.shortened.Add(1)
	return c.log.Bytes() - before
}
