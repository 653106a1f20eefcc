package watch

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"orch.io/controlplane/storage"
)

// Feed reads the events of several or all caches in the order of the commits. It has no
// filter, and only Wait waits. It is meant for a reader in the same process that maintains
// its own state. It is not safe for concurrent use. It holds no goroutine and no other
// resources.
//
// A commit is always delivered as a whole. To ensure this, the feed reads
// CacheSet.Revision before it reads its caches, and holds back newer events until the
// CacheSet shows their revision.
type Feed[V Entry] struct {
	set      *CacheSet[V]
	some     []*Cache[V] // nil for all
	parts    map[*Cache[V]]*Cursor[V]
	held     []cacheEvent[V] // read already, newer than revision
	revision storage.Revision
}

type cacheEvent[V Entry] struct {
	cache *Cache[V]
	Event[V]
}

// feedWait is a waiting feed. An event of any of its caches wakes it; if it has no list of
// caches, an event of any cache does.
type feedWait[V Entry] struct {
	caches []*Cache[V]
	woken  chan struct{}
}

// Feed returns a feed of the given caches. Without arguments, it returns a feed of all
// caches, including caches that are created later. The first call of Changes that
// includes a cache returns its current entries.
func (s *CacheSet[V]) Feed(caches ...*Cache[V]) *Feed[V] {
	return &Feed[V]{set: s, some: caches, parts: make(map[*Cache[V]]*Cursor[V])}
}

// Changes returns the events since the last call, with their caches, in the order of their
// revisions. It does not wait. If the feed has fallen behind the log of a cache, reset
// is true and the events are the current entries of all its caches: the reader must drop
// its state. Entries of the first call or of a reset are returned as events without Old,
// whose Revision is the revision of the entry. The sequence can be read only once, even
// after further calls of Changes.
func (f *Feed[V]) Changes() (events iter.Seq2[*Cache[V], Event[V]], reset bool) {
	list, reset := f.collect()
	return func(yield func(*Cache[V], Event[V]) bool) {
		for i := range list {
			ev := list[i]
			list[i] = cacheEvent[V]{} // releases the entries of a long list as it is read
			if !yield(ev.cache, ev.Event) {
				return
			}
		}
	}, reset
}

func (f *Feed[V]) collect() (list []cacheEvent[V], reset bool) {
	upTo := f.set.Revision()
	if len(f.parts) > 0 && f.Newest() <= f.revision {
		f.revision = max(f.revision, upTo)
		return nil, false
	}
	list, f.held = f.held, nil
	for _, c := range f.caches() {
		cur := f.parts[c]
		if cur == nil {
			list = append(list, f.begin(c)...)
			continue
		}
		for {
			commits, err := cur.commits()
			if err != nil {
				if f.set.closed.Load() {
					return nil, false
				}
				return f.restart(), true
			}
			if len(commits) == 0 {
				break
			}
			for _, cm := range commits {
				for _, ev := range cm.Events {
					list = append(list, cacheEvent[V]{c, ev})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b cacheEvent[V]) int { return cmp.Compare(a.Revision, b.Revision) })
	n := len(list)
	for n > 0 && list[n-1].Revision > upTo {
		n--
	}
	f.held = slices.Clone(list[n:])
	f.revision = max(f.revision, upTo)
	return list[:n:n], false
}

// begin returns the current entries of a cache and sets the cursor after them.
func (f *Feed[V]) begin(c *Cache[V]) []cacheEvent[V] {
	entries, cur := c.ListAndWatch(Query[V]{})
	f.parts[c] = cur
	list := make([]cacheEvent[V], len(entries))
	for i, e := range entries {
		list[i] = cacheEvent[V]{c, Event[V]{New: e, Revision: revisionOf(e)}}
	}
	return list
}

// restart drops all positions and returns the current entries.
func (f *Feed[V]) restart() []cacheEvent[V] {
	clear(f.parts)
	f.held = nil
	upTo := f.set.Revision()
	var list []cacheEvent[V]
	for _, c := range f.caches() {
		list = append(list, f.begin(c)...)
	}
	f.revision = max(f.revision, upTo)
	return list
}

// Wait returns nil when Changes has events to return. It fails with the context's error if the
// context ends first, and with storage.ErrClosed after Close of the CacheSet.
func (f *Feed[V]) Wait(ctx context.Context) error {
	w := f.set.feedWait(f)
	if w != nil {
		select {
		case <-w.woken:
		case <-ctx.Done():
			f.set.leaveFeed(w)
			return ctx.Err()
		}
	}
	if f.set.closed.Load() {
		return storage.ErrClosed
	}
	return nil
}

// Revision returns the revision up to which Changes has returned all events.
func (f *Feed[V]) Revision() storage.Revision { return f.revision }

// Newest returns the revision of the newest event of the caches of the feed. For a feed of
// all caches it is the revision of the CacheSet.
func (f *Feed[V]) Newest() (newest storage.Revision) {
	if len(f.some) == 0 {
		return f.set.Revision()
	}
	for _, c := range f.some {
		newest = max(newest, c.Changed())
	}
	return newest
}

func (f *Feed[V]) caches() []*Cache[V] {
	if len(f.some) == 0 {
		return f.set.Caches()
	}
	return f.some
}

// ready reports whether Changes would return events.
func (f *Feed[V]) ready() bool {
	if len(f.held) > 0 && f.held[0].Revision <= f.set.Revision() {
		return true
	}
	for _, c := range f.caches() {
		cur := f.parts[c]
		if cur == nil {
			if c.Len() > 0 {
				return true
			}
			continue
		}
		c.mu.RLock()
		more := cur.Revision() < c.log.Newest()
		c.mu.RUnlock()
		if more {
			return true
		}
	}
	return false
}

// feedWait registers a feed that waits. It returns nil if the feed need not wait.
func (s *CacheSet[V]) feedWait(f *Feed[V]) *feedWait[V] {
	w := &feedWait[V]{caches: f.some, woken: make(chan struct{})}
	s.waits.Lock()
	defer s.waits.Unlock()
	if s.closed.Load() || f.ready() {
		return nil
	}
	s.waits.feeds = append(s.waits.feeds, w)
	return w
}

func (s *CacheSet[V]) leaveFeed(w *feedWait[V]) {
	s.waits.Lock()
	defer s.waits.Unlock()
	if i := slices.Index(s.waits.feeds, w); i >= 0 {
		s.waits.feeds = slices.Delete(s.waits.feeds, i, i+1)
	}
}

// wakeFeeds wakes the feeds that wait for a cache, or all if c is nil.
func (s *CacheSet[V]) wakeFeeds(c *Cache[V]) {
	s.waits.Lock()
	defer s.waits.Unlock()
	s.waits.feeds = slices.DeleteFunc(s.waits.feeds, func(w *feedWait[V]) bool {
		if c != nil && w.caches != nil && !slices.Contains(w.caches, c) {
			return false
		}
		close(w.woken)
		return true
	})
}

// commits returns the next run of commits, unfiltered, and moves the cursor past it. It
// ignores EndWatches.
func (cur *Cursor[V]) commits() ([]commit[V], error) {
	c := cur.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	if cur.Revision() < c.log.Floor() {
		return nil, storage.ErrCompacted
	}
	run := c.log.After(cur.Revision())
	if len(run) > 0 {
		cur.advance(run[len(run)-1].Revision)
	}
	return run, nil
}
