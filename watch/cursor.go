package watch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"orch.io/controlplane/storage"
)

var (
	// ErrGone says that the history from the asked revision on is forgotten.
	ErrGone = errors.New("the history of this revision is gone")
	// ErrEnded says that the watch ended because its type was dropped.
	ErrEnded = errors.New("the watch ended: its type was removed")
	// ErrClosed says that the hub was closed.
	ErrClosed = errors.New("the watch cache is closed")
)

// GoneError is ErrGone with the oldest revision from which one can go on.
type GoneError struct{ Oldest storage.Revision }

func (e *GoneError) Error() string { return fmt.Sprintf("%v: the oldest one is %d", ErrGone, e.Oldest) }

// Is makes it an ErrGone.
func (e *GoneError) Is(target error) bool { return target == ErrGone }

// maxBatch bounds the log records that one call of Next looks at while it has
// something to deliver.
const maxBatch = 1000

// EventType says how an object changed, as seen through a query.
type EventType uint8

// The event types.
const (
	Added EventType = iota + 1
	Modified
	Deleted
)

// String returns the word of the watch protocol.
func (t EventType) String() string {
	switch t {
	case Added:
		return "ADDED"
	case Modified:
		return "MODIFIED"
	case Deleted:
		return "DELETED"
	}
	return "UNKNOWN"
}

// Event is one change. Entry is the object after it; for Deleted it is the last
// state that matched the query, with the revision of the change.
type Event struct {
	Type     EventType
	Entry    *Entry
	Revision storage.Revision
}

// AddedEvent returns the event that tells a watcher about an object that is
// there already.
func AddedEvent(e *Entry) Event { return Event{Added, e, e.revision} }

// Frame returns the event in a representation, framed for a stream: what make
// returned for the first watcher that asked. The bytes are shared and must not
// be modified.
func (ev Event) Frame(key FormKey, make func() ([]byte, error)) ([]byte, error) {
	return ev.Entry.form(formKey{FormKey: key, event: ev.Type}, make)
}

// Cursor is a watcher: a position in the log of a cache. It belongs to one
// goroutine; only Revision and Close may be called by others.
type Cursor struct {
	cache    *Cache
	match    matcher
	interest interest
	pos      uint64           // of the next record to read
	skip     storage.Revision // records up to here are not delivered
	history  storage.Revision // the backend has what comes from skip to here; 0: the log has it
	era      *era             // when it began
	revision atomic.Int64
	closed   atomic.Bool
}

// Watch returns a cursor on the changes after a revision. Those that the log
// does not hold any more, such as after a restart, are read from the backend by
// the first Next. If that has forgotten them too, Watch or the first Next fails
// with ErrGone. A revision in the future delivers nothing until it has passed.
func (c *Cache) Watch(q Query, after storage.Revision) (*Cursor, error) {
	cur := c.newCursor(q)
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := c.forgotten(after); err != nil {
		return nil, err
	}
	cur.era, cur.skip = c.era, after
	cur.revision.Store(int64(after))
	if after < c.severed {
		return nil, &GoneError{c.severed}
	}
	cur.enterLog()
	return cur, nil
}

// enterLog finds the place in the log to go on at, or how far the backend has to
// help; the caller holds the cache's lock.
func (cur *Cursor) enterLog() {
	l := &cur.cache.log
	if cur.pos, cur.history = l.after(cur.skip), 0; cur.skip < l.floor {
		cur.history = l.floor
	}
}

// WatchFrom returns the current objects that the query selects and a cursor on
// the changes after them: nothing is missed between and nothing comes twice.
func (c *Cache) WatchFrom(q Query) ([]*Entry, *Cursor) {
	cur := c.newCursor(q)
	c.mu.Lock()
	s, rev := c.snapshotLocked(), c.revision()
	cur.pos, cur.skip, cur.era = c.log.next, rev, c.era
	c.mu.Unlock()
	cur.revision.Store(int64(rev))
	return s.page(&cur.match, "", 0).Entries, cur
}

func (c *Cache) newCursor(q Query) *Cursor {
	cur := &Cursor{cache: c, match: c.matcher(q)}
	cur.interest = cur.match.interest()
	return cur
}

// Revision returns the revision up to which Next has delivered everything: what
// a bookmark may tell.
func (cur *Cursor) Revision() storage.Revision { return storage.Revision(cur.revision.Load()) }

// Close ends the cursor: Next fails with ErrClosed from its next call on.
func (cur *Cursor) Close() { cur.closed.Store(true) }

// Next returns the next changes that the query selects, at least one, in
// revision order. It blocks until there is one, the context ends (then the error
// is the context's, and Revision tells how far the silence reaches), history was
// lost (ErrGone), the type was dropped and all until then delivered (ErrEnded), or
// the hub closed (ErrClosed).
func (cur *Cursor) Next(ctx context.Context) ([]Event, error) {
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
	return nil, ErrClosed
}

// wait returns when there is something to read.
func (cur *Cursor) wait(ctx context.Context) error {
	g, err := cur.park()
	if g == nil {
		return err
	}
	select {
	case <-g.woken:
		// What came before did not concern this cursor.
		cur.pos = max(cur.pos, g.pos)
		return nil
	case <-ctx.Done():
		if cur.unpark(g) {
			return nil
		}
		return ctx.Err()
	}
}

// drain returns the events that are there, a batch at most.
func (cur *Cursor) drain() ([]Event, error) {
	var events []Event
	var within storage.Revision // of which there is more than was read; 0: none
	for seen, last := 0, false; !last && (seen < maxBatch || len(events) == 0 || within != 0); {
		run, upTo, err := cur.take()
		for err != nil && len(events) > 0 && events[len(events)-1].Revision == within {
			events = events[:len(events)-1]
		}
		if err != nil && len(events) > 0 {
			return events, nil // the next call fails
		}
		if err != nil {
			return nil, err
		}
		within = 0
		for i := range run {
			r := run[i].Load()
			if r == nil {
				return nil, cur.lost()
			}
			if ev, ok := cur.match.event(r); ok && r.revision > cur.skip {
				events = append(events, ev)
			}
			cur.advance(r.revision)
		}
		cur.pos += uint64(len(run))
		seen += len(run)
		if last = upTo >= 0; last {
			cur.advance(upTo)
		} else {
			within = cur.within(run)
		}
	}
	return events, nil
}

// within returns the revision of the last record of a run that was read if the next
// one has it too, else 0.
func (cur *Cursor) within(run []atomic.Pointer[record]) storage.Revision {
	last := run[len(run)-1].Load()
	cur.cache.mu.RLock()
	defer cur.cache.mu.RUnlock()
	l := &cur.cache.log
	if last == nil || cur.pos < l.first || cur.pos >= l.next || l.at(cur.pos).revision != last.revision {
		return 0
	}
	return last.revision
}

// take returns the next run of records and the revision up to which there is no
// more after it, -1 if there is.
func (cur *Cursor) take() ([]atomic.Pointer[record], storage.Revision, error) {
	c := cur.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := cur.fault(); err != nil {
		return nil, 0, err
	}
	run := c.log.run(cur.pos)
	if e := cur.era; e.over {
		run = run[:min(uint64(len(run)), e.end-cur.pos)]
	}
	if cur.pos+uint64(len(run)) < c.log.next {
		return run, -1, nil
	}
	return run, c.revision(), nil
}

// fault tells why the cursor cannot go on; the caller holds the cache's lock.
func (cur *Cursor) fault() error {
	switch {
	case cur.cache.hub.isClosed():
		return ErrClosed
	case cur.era.over && cur.pos >= cur.era.end:
		return ErrEnded
	case cur.Revision() < cur.cache.severed:
		return &GoneError{cur.cache.severed}
	case cur.pos < cur.cache.log.first:
		return &GoneError{cur.cache.log.floor}
	}
	return nil
}

// lost is the error of a cursor whose next record is forgotten.
func (cur *Cursor) lost() error {
	cur.cache.mu.RLock()
	defer cur.cache.mu.RUnlock()
	return &GoneError{cur.cache.log.floor}
}

// cut tells that the cursor reads history that does not lead to now.
func (cur *Cursor) cut() error {
	cur.cache.mu.RLock()
	defer cur.cache.mu.RUnlock()
	if cur.skip < cur.cache.severed {
		return &GoneError{cur.cache.severed}
	}
	return nil
}

// park returns a group to wait in, or nil if there is something to read.
func (cur *Cursor) park() (*group, error) {
	c := cur.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cur.fault(); err != nil {
		return nil, err
	}
	if cur.pos < c.log.next {
		return nil, nil
	}
	cur.advance(c.revision())
	return c.park(cur.interest), nil
}

// unpark leaves the group and reports whether that was woken at the last moment.
// As long as it was not, nothing in the log concerns the cursor.
func (cur *Cursor) unpark(g *group) bool {
	c := cur.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leave(cur.interest, g) {
		cur.pos = c.log.next
		cur.advance(c.revision())
		return false
	}
	cur.pos = max(cur.pos, g.pos)
	return true
}

func (cur *Cursor) advance(rev storage.Revision) {
	if rev > cur.Revision() {
		cur.revision.Store(int64(rev))
	}
}

// event returns what a change is to one who sees only what the query selects.
func (m *matcher) event(r *record) (Event, bool) {
	was, is := m.matches(r.old), m.matches(r.new)
	switch {
	case was && is:
		return Event{Modified, r.new, r.revision}, true
	case is:
		return Event{Added, r.new, r.revision}, true
	case was:
		return Event{Deleted, r.last(), r.revision}, true
	}
	return Event{}, false
}

// historyBatch is how many changes of the past are delivered at once.
const historyBatch = 100

// readHistory delivers the next changes from before the log begins. As many
// clients give up before they have read everything, each batch is theirs as soon
// as it is read. Who is so slow that the log has moved on reads more of it from
// the backend.
func (cur *Cursor) readHistory(ctx context.Context) (events []Event, err error) {
	seen := 0
	if err := cur.cut(); err != nil {
		return nil, err
	}
	err = cur.cache.hub.history(ctx, cur.cache, cur.skip, cur.history, func(rev storage.Revision, r *record, more bool) bool {
		if r != nil {
			if ev, ok := cur.match.event(r); ok {
				events = append(events, ev)
			}
		}
		if seen++; more {
			return true
		}
		cur.skip = rev
		cur.advance(rev)
		enough := len(events) >= historyBatch || len(events) > 0 && seen >= maxBatch
		return !enough && !cur.closed.Load()
	})
	if err != nil && len(events) == 0 {
		return nil, err
	}
	if cur.skip >= cur.history {
		c := cur.cache
		c.mu.RLock()
		defer c.mu.RUnlock()
		cur.enterLog()
	}
	return events, nil
}
