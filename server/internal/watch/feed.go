package watch

import (
	"context"
	"iter"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/storage"
)

// Feed is a cursor over the changes of several types, with decoded objects. It
// implements client.Feed and has no goroutine. It belongs to one goroutine, or to
// who holds a lock of its owner's.
//
// A commit of several types comes whole: what caches show beyond the revision that the
// hub had before the feed looked at them is held back until the hub is there.
type Feed struct {
	hub      *Hub
	some     []*Cache // of the types that were named; none: all
	identity bool
	parts    map[*Cache]*Cursor
	held     []found // read already, newer than revision
	revision storage.Revision
}

// found is a change whose objects are not decoded yet.
type found struct {
	cache    *Cache
	key      string
	revision storage.Revision
	old, new *Entry // nil: not there
}

var _ client.Feed = (*Feed)(nil)

// feedWait is a feed that waits for a change of one of its caches (nil: of any).
type feedWait struct {
	caches []*Cache
	woken  chan struct{}
}

// Feed returns a feed of the types given, or of all types, also those to come,
// if none is given. Its first Changes returns the current objects.
func (h *Hub) Feed(types ...meta.GroupResource) *Feed {
	f := &Feed{hub: h, parts: make(map[*Cache]*Cursor)}
	for _, r := range types {
		f.some = append(f.some, h.Cache(r))
	}
	return f
}

// IdentityFeed is Feed for a reader that asks who objects are and whether they may
// go: they have name, namespace, resourceVersion, uid, ownerReferences, finalizers
// and deletionTimestamp, and nothing else.
func (h *Hub) IdentityFeed(types ...meta.GroupResource) *Feed {
	f := h.Feed(types...)
	f.identity = true
	return f
}

// Changes implements client.Feed. Changes are in revision order, after a reset in that of
// types and keys. They continue after Hub.Drop. Objects are decoded as the sequence is
// iterated.
func (f *Feed) Changes() (changes iter.Seq[client.Event], reset bool) {
	list, reset := f.collect()
	return func(yield func(client.Event) bool) {
		for i := range list {
			c := f.change(list[i])
			list[i] = found{}
			if !yield(c) {
				return
			}
		}
	}, reset
}

func (f *Feed) collect() (list []found, reset bool) {
	upTo := f.hub.Revision()
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
				if f.hub.isClosed() {
					return nil, false
				}
				return f.restart(), true
			}
			if len(commits) == 0 {
				break
			}
			for _, cm := range commits {
				for i := range cm.Events {
					r := &cm.Events[i]
					list = append(list, found{c, r.key(), cm.Revision, r.old, r.new})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b found) int { return int(a.revision - b.revision) })
	n := len(list)
	for n > 0 && list[n-1].revision > upTo {
		n--
	}
	f.held = slices.Clone(list[n:])
	f.revision = max(f.revision, upTo)
	return list[:n:n], false
}

// begin returns the current objects of a type and sets the cursor after them.
func (f *Feed) begin(c *Cache) []found {
	entries, cur := c.WatchFrom(Query{})
	f.parts[c] = cur
	list := make([]found, len(entries))
	for i, e := range entries {
		list[i] = found{cache: c, key: e.key, revision: e.revision, new: e}
	}
	return list
}

// restart forgets all positions and returns the whole current state.
func (f *Feed) restart() []found {
	clear(f.parts)
	f.held = nil
	upTo := f.hub.Revision()
	var list []found
	for _, c := range f.caches() {
		list = append(list, f.begin(c)...)
	}
	f.revision = max(f.revision, upTo)
	return list
}

func (f *Feed) change(c found) client.Event {
	namespace, name, _ := strings.Cut(c.key, "/")
	ch := client.Event{Resource: c.cache.resource, Key: meta.Key{Namespace: namespace, Name: name}, Revision: c.revision}
	decode := (*Entry).Object
	if f.identity {
		decode = (*Entry).identity
	}
	if c.old != nil {
		ch.Old = decode(c.old)
	}
	if c.new != nil {
		ch.Object = decode(c.new)
	}
	return ch
}

// Wait implements client.Feed. It fails with the context's error, or with
// ErrClosed when the hub is closed.
func (f *Feed) Wait(ctx context.Context) error {
	w := f.hub.feedWait(f)
	if w == nil {
		if f.hub.isClosed() {
			return ErrClosed
		}
		return nil
	}
	select {
	case <-w.woken:
		if f.hub.isClosed() {
			return ErrClosed
		}
		return nil
	case <-ctx.Done():
		f.hub.leaveFeed(w)
		return ctx.Err()
	}
}

// Revision implements client.Feed.
func (f *Feed) Revision() storage.Revision { return f.revision }

// Newest implements client.Feed.
func (f *Feed) Newest() (newest storage.Revision) {
	if len(f.some) == 0 {
		return f.hub.Revision()
	}
	for _, c := range f.some {
		newest = max(newest, c.Changed())
	}
	return newest
}

// Close implements client.Feed.
func (f *Feed) Close() { clear(f.parts) }

func (f *Feed) caches() []*Cache {
	if len(f.some) == 0 {
		return f.hub.all()
	}
	return f.some
}

// ready reports whether Changes would return something.
func (f *Feed) ready() bool {
	if len(f.held) > 0 && f.held[0].revision <= f.hub.Revision() {
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

// feedWait registers a feed that waits, or returns nil if it need not.
func (h *Hub) feedWait(f *Feed) *feedWait {
	w := &feedWait{caches: f.some, woken: make(chan struct{})}
	h.waits.Lock()
	defer h.waits.Unlock()
	if h.isClosed() || f.ready() {
		return nil
	}
	h.waits.feeds = append(h.waits.feeds, w)
	return w
}

func (h *Hub) leaveFeed(w *feedWait) {
	h.waits.Lock()
	defer h.waits.Unlock()
	if i := slices.Index(h.waits.feeds, w); i >= 0 {
		h.waits.feeds = slices.Delete(h.waits.feeds, i, i+1)
	}
}

// wakeFeeds wakes the feeds that wait for a cache; nil: all.
func (h *Hub) wakeFeeds(c *Cache) {
	h.waits.Lock()
	defer h.waits.Unlock()
	h.waits.feeds = slices.DeleteFunc(h.waits.feeds, func(w *feedWait) bool {
		if c != nil && w.caches != nil && !slices.Contains(w.caches, c) {
			return false
		}
		close(w.woken)
		return true
	})
}

// commits returns the raw changes that are there, a run at most.
func (cur *Cursor) commits() ([]commit, error) {
	c := cur.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	if cur.Revision() < c.log.Floor() {
		return nil, ErrGone
	}
	run := c.log.After(cur.Revision())
	if len(run) > 0 {
		cur.advance(run[len(run)-1].Revision)
	}
	return run, nil
}
