package watch

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/eventlog"
)

// An object whose record the backend cannot read is in no list and no watch of
// the cache; who answers for all objects of a type asks for it with Damaged. As
// nobody knows what it was, no event can tell that it went: watches end with
// ErrGone when it is deleted or replaced.

// Damaged returns the keys of the objects in a namespace ("" for all) that cannot
// be read, in order.
func (c *Cache) Damaged(namespace string) (keys []meta.Key) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.damaged) == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(c.damaged)) {
		ns, name, _ := strings.Cut(key, "/")
		if namespace == "" || ns == namespace {
			keys = append(keys, meta.Key{Namespace: ns, Name: name})
		}
	}
	return keys
}

// DamagedAt returns the revision of an object that cannot be read, and whether
// there is one.
func (c *Cache) DamagedAt(key meta.Key) (storage.Revision, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	rev, ok := c.damaged[key.Namespace+"/"+key.Name]
	return rev, ok
}

// damage takes in what a scan says of a record, and reports whether that is that
// it cannot be read. The cache is nil if the record is no object's.
func (h *Hub) damage(err error) (c *Cache, key string, damaged bool) {
	var d *storage.DamagedError
	if !errors.As(err, &d) {
		return nil, "", false
	}
	if c, key = h.cacheOf(d.Key); c != nil {
		c.mu.Lock()
		woken := c.setDamaged(key, d.Revision)
		c.mu.Unlock()
		woken.Release()
	}
	return c, key, true
}

// setDamaged notes that the object at key cannot be read any more; the caller holds
// the lock.
func (c *Cache) setDamaged(key string, rev storage.Revision) (woken eventlog.Woken) {
	if c.damaged == nil {
		c.damaged = make(map[string]storage.Revision)
	}
	c.damaged[key] = rev
	old, had := c.tree.Get(key)
	if had {
		c.put(key, old, nil)
		c.exact = max(c.exact, rev)
		woken = c.sever(max(rev, c.revision()+1))
	}
	return woken
}

// mend notes that the object at key was replaced or deleted; the caller holds
// the lock.
func (c *Cache) mend(key string, rev storage.Revision) (woken eventlog.Woken) {
	if _, ok := c.damaged[key]; !ok {
		return nil
	}
	delete(c.damaged, key)
	return c.sever(rev)
}

// sever ends the watches from before a revision with ErrGone; the caller holds
// the lock.
func (c *Cache) sever(rev storage.Revision) (woken eventlog.Woken) {
	c.severed = max(c.severed, rev)
	return c.wakeAll()
}
