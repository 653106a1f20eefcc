package watch

import (
	"errors"
	"maps"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// A record that the backend cannot read has no entry. Its last value is unknown, so no
// event can report its deletion or replacement. Instead, cursors from before such a change
// fail with storage.ErrCompacted.

// Damaged returns the keys of records that cannot be read, with the revisions of these
// records, or nil if all records can be read. The map belongs to the caller. A program
// must not treat these keys as missing.
func (c *Cache[V]) Damaged() map[string]storage.Revision {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.damaged) == 0 {
		return nil
	}
	return maps.Clone(c.damaged)
}

// noteDamage reports whether an error of a scan is a damaged record, and records the
// damage in the cache of the key. c is nil if the key is in no cache.
func (s *CacheSet[V]) noteDamage(err error) (c *Cache[V], key string, damaged bool) {
	var d *storage.DamagedError
	if !errors.As(err, &d) {
		return nil, "", false
	}
	if c, key = s.cacheOf(d.Key); c != nil {
		c.mu.Lock()
		woken := c.setDamaged(key, d.Revision)
		c.mu.Unlock()
		woken.Release()
	}
	return c, key, true
}

// setDamaged records that the record of a key is damaged. The caller holds c.mu.
func (c *Cache[V]) setDamaged(key string, rev storage.Revision) (woken eventlog.Woken) {
	if c.damaged == nil {
		c.damaged = make(map[string]storage.Revision)
	}
	c.damaged[key] = rev
	if old, had := c.tree.Get(key); had {
		var none V
		c.put(key, old, none)
		c.exact = max(c.exact, rev)
		woken = c.sever(max(rev, c.revision()+1))
	}
	return woken
}

// mend records that a damaged record was replaced or deleted. The caller holds c.mu.
func (c *Cache[V]) mend(key string, rev storage.Revision) (woken eventlog.Woken) {
	if _, ok := c.damaged[key]; !ok {
		return nil
	}
	delete(c.damaged, key)
	return c.sever(rev)
}

// sever makes cursors before a revision fail. The caller holds c.mu.
func (c *Cache[V]) sever(rev storage.Revision) (woken eventlog.Woken) {
	c.severed = max(c.severed, rev)
	return c.wakeAll()
}
