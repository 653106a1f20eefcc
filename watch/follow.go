package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// Pauses after the backend's watch was lost or a reload failed.
const (
	firstPause = 5 * time.Millisecond
	maxPause   = time.Second
)

// follow applies the commits of the backend until the context ends or the backend is
// closed. A lost watch is resumed. If the backend has compacted the commits in between,
// reload finds the differences.
func (s *CacheSet[V]) follow(ctx context.Context) {
	defer close(s.done)
	defer s.end()
	pause := firstPause
	for {
		before := s.Revision()
		err := s.catchUp(ctx)
		if ctx.Err() != nil || errors.Is(err, storage.ErrClosed) {
			return
		}
		if s.Revision() > before {
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// catchUp applies commits until the backend's watch ends. A panic of the backend counts
// as a lost watch.
func (s *CacheSet[V]) catchUp(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.options.OnPanic(p)
			err = errors.New("the backend panicked")
		}
	}()
	if err = s.watchBackend(ctx); errors.Is(err, storage.ErrCompacted) {
		err = s.reload(ctx)
	}
	return err
}

// end releases all waiters permanently.
func (s *CacheSet[V]) end() {
	s.closed.Store(true)
	for _, c := range s.Caches() {
		c.EndWatches()
	}
	s.wakeFeeds(nil)
}

func (s *CacheSet[V]) watchBackend(ctx context.Context) error {
	commits := s.backend.Watch(ctx, "", s.Revision())
	if s.follower != nil {
		commits = s.follower.Follow(ctx, s.Revision())
	}
	var changes []change[V]
	for events, err := range commits {
		if err != nil {
			return err
		}
		for i := range events {
			ev := &events[i]
			if c, key := s.cacheOf(ev.Key); c != nil {
				ch := change[V]{cache: c, key: key, revision: ev.Revision, damaged: ev.Damaged != nil}
				if ev.Value != nil {
					ch.entry = s.entry(key, ev.Record)
				}
				changes = append(changes, ch)
			}
		}
		s.apply(events[0].Revision, changes)
		clear(changes)
		changes = changes[:0]
	}
	return nil
}

// change is the new state of a key: an entry, damaged, or deleted.
type change[V Entry] struct {
	cache    *Cache[V]
	key      string
	revision storage.Revision
	entry    V
	damaged  bool
}

// apply applies a commit. Its changes are in the order of the storage keys, so the changes
// of a cache are adjacent.
func (s *CacheSet[V]) apply(rev storage.Revision, changes []change[V]) {
	now := time.Now()
	var woken eventlog.Woken
	for rest := changes; len(rest) > 0; {
		c, n := rest[0].cache, 1
		for n < len(rest) && rest[n].cache == c {
			n++
		}
		some, grown := c.apply(rest[:n], now)
		woken = append(woken, some...)
		s.kept += grown
		rest = rest[n:]
	}
	s.advance(rev) // first, because writers wait for it
	woken.Release()
	for i := range changes {
		if c := changes[i].cache; i == 0 || c != changes[i-1].cache {
			s.wakeFeeds(c)
		}
	}
	if now.Sub(s.swept) > s.options.Retain/4 {
		s.swept = now
		for _, c := range s.Caches() {
			s.kept += c.sweep(now)
		}
	}
	s.shorten()
	s.keptBytes.Store(s.kept)
	s.options.OnCommit()
}

// shorten drops the oldest commits of all logs until they fit into Options.MaxBytes.
func (s *CacheSet[V]) shorten() {
	for s.kept > s.options.MaxBytes {
		c := s.longest()
		if c == nil {
			return
		}
		s.kept += c.shorten()
	}
}

// longest returns the cache with the log that begins at the oldest commit, or nil if no log has
// more than its newest commit.
func (s *CacheSet[V]) longest() (longest *Cache[V]) {
	var since storage.Revision
	for _, c := range s.Caches() {
		if rev := c.since(); rev > 0 && (longest == nil || rev < since) {
			longest, since = c, rev
		}
	}
	return longest
}

// reload reads all records and applies the differences as changes.
func (s *CacheSet[V]) reload(ctx context.Context) error {
	rev, records, err := s.backend.Scan(ctx, "", "", 0)
	if err != nil {
		return err
	}
	var changes []change[V]
	seen := make(map[*Cache[V]]map[string]bool)
	for rec, err := range records {
		c, key, damaged := s.noteDamage(err)
		switch {
		case damaged:
		case err != nil:
			return err
		default:
			c, key = s.cacheOf(rec.Key)
		}
		if c == nil {
			continue
		}
		if seen[c] == nil {
			seen[c] = make(map[string]bool)
		}
		seen[c][key] = true
		if damaged {
			continue
		}
		if old, ok := c.tree.Get(key); !ok || revisionOf(old) != rec.Revision {
			changes = append(changes, change[V]{cache: c, key: key, revision: rec.Revision, entry: s.entry(key, rec)})
		}
	}
	changes = append(changes, s.deletions(rev, changes, seen)...)
	slices.SortFunc(changes, func(a, b change[V]) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), strings.Compare(a.cache.prefix, b.cache.prefix), strings.Compare(a.key, b.key))
	})
	for _, c := range s.Caches() {
		c.mu.Lock()
		c.exact = rev
		c.mu.Unlock()
	}
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].revision == changes[0].revision {
			n++
		}
		s.apply(changes[0].revision, changes[:n])
		changes = changes[n:]
	}
	s.caches.Lock()
	s.caches.base = rev
	s.caches.Unlock()
	s.advance(rev)
	return nil
}

// deletions returns deletions of the keys, damaged or not, that a scan at rev did not
// see. Their revisions are unknown. Each deletion gets a different revision, as late as
// possible, so that a cursor can resume between any two deletions.
func (s *CacheSet[V]) deletions(rev storage.Revision, changes []change[V], seen map[*Cache[V]]map[string]bool) []change[V] {
	taken := make(map[storage.Revision]bool, len(changes))
	for _, d := range changes {
		taken[d.revision] = true
	}
	var deleted []change[V]
	for _, c := range s.Caches() {
		check := func(key string) {
			if !seen[c][key] {
				deleted = append(deleted, change[V]{cache: c, key: key})
			}
		}
		c.tree.Scan(func(key string, _ V) bool {
			check(key)
			return true
		})
		for key := range c.damaged {
			check(key)
		}
	}
	free := rev
	for i := range slices.Backward(deleted) {
		for taken[free] && free > s.Revision()+1 {
			free--
		}
		deleted[i].revision = free
		taken[free] = true
	}
	return deleted
}
