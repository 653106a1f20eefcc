package watch

import (
	"errors"
	"maps"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// A record that the backend cannot read has no entry. Its last value is unknown, so no
// event can report its deletion or replacement: cursors from before that fail with
// storage.ErrCompacted instead.

// Damaged returns the keys whose records cannot be read, with the revisions of these
// records; nil if there are none. The map is the caller's. A program that answers for
// all keys should not answer as if these did not exist.
func (c *Cache[V]) Damaged() map[string]storage.Revision {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.damaged) == 0 {
		return nil
	}
	return maps.Clone(c.damaged)
}

// noteDamage reports whether an error of a scan concerns a damaged record, and notes
// that record in its cache. The cache is nil if the key is in none.
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

// setDamaged notes that the record of a key cannot be read; the caller holds the lock.
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

// mend notes that the record of a key was replaced or deleted; the caller holds the
// lock.
func (c *Cache[V]) mend(key string, rev storage.Revision) (woken eventlog.Woken) {
	if _, ok := c.damaged[key]; !ok {
		return nil
	}
	delete(c.damaged, key)
	return c.sever(rev)
}

// sever makes cursors from before a revision fail; the caller holds the lock.
func (c *Cache[V]) sever(rev storage.Revision) (woken eventlog.Woken) {
	c.severed = max(c.severed, rev)
	return c.wakeAll()
}
