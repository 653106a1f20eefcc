package watch

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// ErrEnded reports that Cache.EndWatches ended the watch.
var ErrEnded = errors.New("watch ended")

// maxBatch bounds the events of the log that a call of Next examines after it has
// found an event to return.
const maxBatch = 1000

// Cursor is a watcher: a position in the log of a cache, and a query. It is not safe for
// concurrent use, except Revision and Close. It holds no resources, so a cursor that is
// not needed any more can be dropped.
//
// The position moves with each commit that Next has examined, whether or not the query
// selects its events, so a cursor with a query that selects little does not fall behind. The
// cursor takes runs of commits out of the log under Cache.mu and examines them without
// the lock.
type Cursor[V Entry] struct {
	cache    *Cache[V]
	query    Query[V]
	history  storage.Revision // up to here the backend has the commits; 0 if the log has all
	era      *era             // in which the cursor began
	revision atomic.Int64     // the position: every commit up to here was examined
	closed   atomic.Bool
}

// Watch returns a cursor for the events after a revision. Commits that the log does not
// have, such as those from before a restart, are read from the backend by Next. Watch
// or the first Next fails with storage.ErrCompacted if the backend does not have them
// either. A cursor at a future revision returns only events after that revision.
func (c *Cache[V]) Watch(q Query[V], after storage.Revision) (*Cursor[V], error) {
	cur := &Cursor[V]{cache: c, query: q}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := c.compacted(after); err != nil {
		return nil, err
	}
	cur.era = c.era
	cur.revision.Store(int64(after))
	if after < c.severed {
		return nil, &storage.CompactedError{Oldest: c.severed}
	}
	cur.enterLog()
	return cur, nil
}

// enterLog sets cur.history to the revision up to which commits must be read from the
// backend, or to 0 if the log has all of them. The caller holds the lock of the cache.
func (cur *Cursor[V]) enterLog() {
	cur.history = 0
	if floor := cur.cache.log.Floor(); cur.Revision() < floor {
		cur.history = floor
	}
}

// ListAndWatch returns the current entries that the query selects, in the order of their
// keys, and a cursor for the events after them. The revision of the entries is
// Cursor.Revision.
func (c *Cache[V]) ListAndWatch(q Query[V]) ([]V, *Cursor[V]) {
	cur := &Cursor[V]{cache: c, query: q}
	c.mu.Lock()
	s, rev := c.snapshotLocked(), c.revision()
	cur.era = c.era
	c.mu.Unlock()
	cur.revision.Store(int64(rev))
	p, _ := s.page(&q, "", 0)
	c.counters.initial.Add(uint64(len(p.Entries)))
	return p.Entries, cur
}

// Revision returns the revision up to which the calls of Next have returned all events:
// Watch can resume there. While Next runs, it may already count the events that this
// call is about to return.
func (cur *Cursor[V]) Revision() storage.Revision { return storage.Revision(cur.revision.Load()) }

// Close makes the following calls of Next fail with storage.ErrClosed. It does not
// interrupt a waiting call; cancel the context of the call instead.
func (cur *Cursor[V]) Close() { cur.closed.Store(true) }

// Next returns the next events that the query selects, in the order of their revisions
// and, within a commit, of their keys. It waits until there is at least one event. All
// events of a commit are returned by the same call. Next fails
//
//   - with the error of the context when it ends; all events up to Revision were returned
//     then, and Next can be called again,
//   - with storage.ErrCompacted, a *storage.CompactedError if the oldest usable revision
//     is known, if the cursor fell behind the log and the history, or if a damaged record
//     has changed; the reader must list again,
//   - with ErrEnded after EndWatches, when all events before it were returned,
//   - with storage.ErrClosed after Close of the cursor or of the CacheSet.
func (cur *Cursor[V]) Next(ctx context.Context) ([]Event[V], error) {
	for cur.history != 0 && !cur.closed.Load() {
		if events, err := cur.readHistory(ctx); err != nil || len(events) > 0 {
			return events, err
		}
	}
	for !cur.closed.Load() {
		if err := cur.wait(ctx); err != nil {
			return nil, err
		}
		if events, err := cur.drain(); err != nil || len(events) > 0 {
			return events, err
		}
	}
	return nil, storage.ErrClosed
}

// wait returns when the log may have an event for the cursor.
func (cur *Cursor[V]) wait(ctx context.Context) error {
	g, err := cur.park()
	if g == nil {
		return err
	}
	select {
	case <-g.Woken():
		cur.advance(g.Quiet())
		return nil
	case <-ctx.Done():
		if cur.unpark(g) {
			return nil
		}
		return ctx.Err()
	}
}

// drain returns the next selected events in the log, at most one batch.
func (cur *Cursor[V]) drain() ([]Event[V], error) {
	var events []Event[V]
	for examined, last := 0, false; !last && (examined < maxBatch || len(events) == 0); {
		run, more, err := cur.take()
		if err != nil && len(events) > 0 {
			return events, nil // the next call fails
		}
		if err != nil {
			return nil, err
		}
		for _, cm := range run {
			events = cur.query.appendEvents(events, cm)
			examined += len(cm.Events)
		}
		last = !more
	}
	return events, nil
}

// take returns the next run of commits, moves the cursor past it and reports whether
// there are more.
func (cur *Cursor[V]) take() (run []commit[V], more bool, err error) {
	c := cur.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := cur.check(); err != nil {
		return nil, false, err
	}
	run = c.log.After(cur.Revision())
	if e := cur.era; e.over {
		run = eventlog.UpTo(run, e.end)
	}
	if n := len(run); n > 0 && run[n-1].Revision < c.log.Newest() {
		cur.advance(run[n-1].Revision)
		return run, true, nil
	}
	cur.advance(c.revision())
	return run, false, nil
}

// check returns an error if the cursor cannot go on; the caller holds the lock of the
// cache.
func (cur *Cursor[V]) check() error {
	switch {
	case cur.cache.set.closed.Load():
		return storage.ErrClosed
	case cur.era.over && cur.Revision() >= cur.era.end:
		return ErrEnded
	case cur.Revision() < cur.cache.severed:
		return &storage.CompactedError{Oldest: cur.cache.severed}
	case cur.Revision() < cur.cache.log.Floor():
		return &storage.CompactedError{Oldest: cur.cache.log.Floor()}
	}
	return nil
}

// park returns a group to wait in, or nil if the log has commits to read.
func (cur *Cursor[V]) park() (*eventlog.Group, error) {
	c := cur.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cur.check(); err != nil {
		return nil, err
	}
	if cur.Revision() < c.log.Newest() {
		return nil, nil
	}
	cur.advance(c.revision())
	return c.parked.Park(cur.query.topic()), nil
}

// unpark leaves the group and reports whether the group was woken before. If it was not
// woken, the log has no event for the cursor.
func (cur *Cursor[V]) unpark(g *eventlog.Group) bool {
	c := cur.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parked.Leave(cur.query.topic(), g) {
		cur.advance(c.revision())
		return false
	}
	cur.advance(g.Quiet())
	return true
}

func (cur *Cursor[V]) advance(rev storage.Revision) {
	if rev > cur.Revision() {
		cur.revision.Store(int64(rev))
	}
}

// appendEvents appends the events of a commit that the query selects.
func (q *Query[V]) appendEvents(events []Event[V], cm commit[V]) []Event[V] {
	var none V
	for _, ev := range cm.Events {
		if !q.selects(ev.Old) {
			ev.Old = none
		}
		if !q.selects(ev.New) {
			ev.New = none
		}
		if ev.Old != none || ev.New != none {
			events = append(events, ev)
		}
	}
	return events
}

// historyBatch is the number of events of the history that Next returns at once.
const historyBatch = 100

// readHistory returns the next events from before the log. It returns each batch as soon
// as it is read, because many readers stop before they have read the whole history. If
// the log has dropped commits in the meantime, the cursor reads them from the backend, too.
func (cur *Cursor[V]) readHistory(ctx context.Context) (events []Event[V], err error) {
	examined := 0
	if err := cur.checkSevered(); err != nil {
		return nil, err
	}
	err = cur.cache.history(ctx, cur.Revision(), cur.history, func(cm commit[V]) bool {
		events = cur.query.appendEvents(events, cm)
		examined += max(1, len(cm.Events))
		cur.advance(cm.Revision)
		enough := len(events) >= historyBatch || len(events) > 0 && examined >= maxBatch
		return !enough && !cur.closed.Load()
	})
	if err != nil && len(events) == 0 {
		return nil, err
	}
	if cur.Revision() >= cur.history {
		c := cur.cache
		c.mu.RLock()
		defer c.mu.RUnlock()
		cur.enterLog()
	}
	return events, nil
}

// checkSevered returns an error if the history that the cursor reads does not lead to
// the current state.
func (cur *Cursor[V]) checkSevered() error {
	cur.cache.mu.RLock()
	defer cur.cache.mu.RUnlock()
	if cur.Revision() < cur.cache.severed {
		return &storage.CompactedError{Oldest: cur.cache.severed}
	}
	return nil
}

// history calls each with the commits after the revision after, up to and including last,
// in the order of the backend's history, until each returns false. A commit without a
// change of the cache has no events.
func (c *Cache[V]) history(ctx context.Context, after, last storage.Revision, each func(commit[V]) bool) error {
	for events, err := range c.backendHistory(ctx, after, last) {
		if err != nil {
			return err
		}
		rev := events[0].Revision
		cm := commit[V]{Revision: min(rev, last)}
		for i := range events {
			if key, ok := strings.CutPrefix(events[i].Key, c.prefix); ok && rev <= last {
				if events[i].Damaged != nil {
					return storage.ErrCompacted
				}
				cm.Events = append(cm.Events, c.set.event(key, &events[i]))
			}
		}
		if !each(cm) || rev >= last {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.set.historian == nil {
		return errors.New("the backend's watch ended early")
	}
	each(commit[V]{Revision: last})
	return nil
}

// backendHistory returns the commits that history reads.
func (c *Cache[V]) backendHistory(ctx context.Context, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	switch {
	case c.set.historian != nil:
		return c.set.historian.History(ctx, c.prefix, after, last)
	case last <= c.base:
		return c.set.backend.Watch(ctx, "", after) // the commit at last may concern another cache
	}
	return c.set.backend.Watch(ctx, c.prefix, after)
}

// event returns the event of a change in the backend's history.
func (s *CacheSet[V]) event(key string, ev *storage.Event) Event[V] {
	out := Event[V]{Revision: ev.Revision}
	if ev.Prev.Revision != 0 {
		out.Old = s.entry(key, ev.Prev)
	}
	if !ev.Deleted() {
		out.New = s.entry(key, ev.Record)
	}
	return out
}
