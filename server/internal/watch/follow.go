package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/eventlog"
)

// Pauses after a watch of the backend was lost or a reload failed.
const (
	firstPause = 5 * time.Millisecond
	maxPause   = time.Second
)

// follow applies what the backend commits until the context ends or the backend
// is closed. A lost watch is taken up again; if history was lost too, the
// differences are found by reading everything.
func (h *Hub) follow(ctx context.Context) {
	defer close(h.done)
	defer h.end()
	pause := firstPause
	for {
		before := h.Revision()
		err := h.catchUp(ctx)
		if ctx.Err() != nil || errors.Is(err, storage.ErrClosed) {
			return
		}
		if h.Revision() > before {
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

// catchUp takes in what the backend has until its watch ends. That the backend,
// which may be a program's own, panics is one way of that.
func (h *Hub) catchUp(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			h.options.Panicked(p)
			err = errors.New("the backend panicked")
		}
	}()
	if err = h.watchBackend(ctx); errors.Is(err, storage.ErrCompacted) {
		err = h.reload(ctx)
	}
	return err
}

// end wakes everybody for good.
func (h *Hub) end() {
	h.closed.Store(true)
	for _, c := range h.all() {
		c.endWatches()
	}
	h.wakeFeeds(nil)
}

func (h *Hub) watchBackend(ctx context.Context) error {
	commits := h.backend.Watch(ctx, "", h.Revision())
	if h.follower != nil {
		commits = h.follower.Follow(ctx, h.Revision())
	}
	var changes []change
	for events, err := range commits {
		if err != nil {
			return err
		}
		for i := range events {
			ev := &events[i]
			if c, key := h.cacheOf(ev.Key); c != nil {
				var e *Entry
				if ev.Value != nil {
					e = newEntry(h.forms, key, ev.Revision, ev.Value)
				}
				changes = append(changes, change{c, key, ev.Revision, e, ev.Damaged != nil})
			}
		}
		h.apply(events[0].Revision, changes)
		clear(changes)
		changes = changes[:0]
	}
	return nil
}

// change is what happened to one object: it is entry now, or cannot be read, or is
// gone.
type change struct {
	cache    *Cache
	key      string
	revision storage.Revision
	entry    *Entry
	damaged  bool
}

// apply takes the changes of one commit into their caches, in the order of the
// storage keys, and counts it. Those of one cache are seen there at one moment.
func (h *Hub) apply(rev storage.Revision, changes []change) {
	now := time.Now()
	var woken eventlog.Woken
	for rest := changes; len(rest) > 0; {
		c, n := rest[0].cache, 1
		for n < len(rest) && rest[n].cache == c {
			n++
		}
		some, kept := c.apply(rest[:n], now)
		woken = append(woken, some...)
		h.kept += kept
		rest = rest[n:]
	}
	h.advance(rev) // writers first
	woken.Release()
	for i := range changes {
		if c := changes[i].cache; i == 0 || c != changes[i-1].cache {
			h.wakeFeeds(c)
		}
	}
	if now.Sub(h.swept) > h.options.Retain/4 {
		h.swept = now
		for _, c := range h.all() {
			h.kept += c.sweep(now)
		}
	}
	h.shorten()
	h.keptBytes.Store(h.kept)
	h.options.Followed()
}

// shorten makes room for the changes of all types.
func (h *Hub) shorten() {
	for h.kept > h.options.MaxBytes {
		c := h.longest()
		if c == nil {
			return
		}
		h.kept += c.shorten()
	}
}

// longest returns the cache whose log reaches back furthest, or nil if none has
// more than its newest change.
func (h *Hub) longest() (longest *Cache) {
	var since storage.Revision
	for _, c := range h.all() {
		if rev := c.since(); rev > 0 && (longest == nil || rev < since) {
			longest, since = c, rev
		}
	}
	return longest
}

// reload reads everything and applies the differences as changes.
func (h *Hub) reload(ctx context.Context) error {
	rev, records, err := h.backend.Scan(ctx, "", "", 0)
	if err != nil {
		return err
	}
	var found []change
	seen := make(map[*Cache]map[string]bool)
	for rec, err := range records {
		c, key, damaged := h.damage(err)
		switch {
		case damaged:
		case err != nil:
			return err
		default:
			c, key = h.cacheOf(rec.Key)
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
		if old, ok := c.tree.Get(key); !ok || old.revision != rec.Revision {
			found = append(found, change{c, key, rec.Revision, newEntry(h.forms, key, rec.Revision, rec.Value), false})
		}
	}
	found = append(found, h.deletions(rev, found, seen)...)
	slices.SortFunc(found, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), strings.Compare(a.cache.prefix, b.cache.prefix), strings.Compare(a.key, b.key))
	})
	for _, c := range h.all() {
		c.mu.Lock()
		c.exact = rev
		c.mu.Unlock()
	}
	for len(found) > 0 {
		n := 1
		for n < len(found) && found[n].revision == found[0].revision {
			n++
		}
		h.apply(found[0].revision, found[:n])
		found = found[n:]
	}
	h.caches.Lock()
	h.caches.base = rev
	h.caches.Unlock()
	h.advance(rev)
	return nil
}

// deletions returns the objects that are gone, readable or not. The revisions at which they went
// are unknown; each gets one of its own, as late as possible, so that a watch can
// be resumed between any two changes.
func (h *Hub) deletions(rev storage.Revision, changed []change, seen map[*Cache]map[string]bool) []change {
	taken := make(map[storage.Revision]bool, len(changed))
	for _, d := range changed {
		taken[d.revision] = true
	}
	var gone []change
	for _, c := range h.all() {
		missing := func(key string) {
			if !seen[c][key] {
				gone = append(gone, change{cache: c, key: key})
			}
		}
		c.tree.Scan(func(key string, _ *Entry) bool {
			missing(key)
			return true
		})
		for key := range c.damaged {
			missing(key)
		}
	}
	free := rev
	for i := range slices.Backward(gone) {
		for taken[free] && free > h.Revision()+1 {
			free--
		}
		gone[i].revision = free
		taken[free] = true
	}
	return gone
}
