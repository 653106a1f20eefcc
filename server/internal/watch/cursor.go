package watch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/eventlog"
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

// maxBatch bounds the changes in the log that one call of Next looks at while it has
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
	of       *record
}

// States returns the object before and after the change, nil where the query did not select
// it. Neither has the revision of the change if that deleted it.
func (ev Event) States() (old, now *Entry) {
	if ev.Type != Added {
		old = ev.of.old
	}
	if ev.Type != Deleted {
		now = ev.of.new
	}
	return old, now
}

// Narrow returns what a change is to one who sees less of what the query selects: the states
// of which selects says so. It is false if he sees nothing of it.
func (ev Event) Narrow(selects func(*Entry) bool) (Event, bool) {
	old, now := ev.States()
	return ev.of.event(old != nil && selects(old), now != nil && selects(now), ev.Revision)
}

// Frame returns the event in a representation, framed for a stream: what make
// returned for the first watcher that asked. The bytes are shared and must not
// be modified.
func (ev Event) Frame(key FormKey, make func() ([]byte, error)) ([]byte, error) {
	return ev.Entry.form(formKey{FormKey: key, event: ev.Type}, make)
}

// Cursor is a watcher: a position in the log of a cache. It belongs to one
// goroutine; only Revision and Close may be called by others. What it does with the
// log is under the cache's lock; commits that it took out are read without.
type Cursor struct {
	cache    *Cache
	match    matcher
	interest interest
	history  storage.Revision // the backend has what comes up to here; 0: the log has it
	era      *era             // when it began
	revision atomic.Int64     // the position: everything up to here was read
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
	cur.era = c.era
	cur.revision.Store(int64(after))
	if after < c.severed {
		return nil, &GoneError{c.severed}
	}
	cur.enterLog()
	return cur, nil
}

// enterLog notes how far the backend has to help before the log goes on; the caller
// holds the cache's lock.
func (cur *Cursor) enterLog() {
	cur.history = 0
	if floor := cur.cache.log.Floor(); cur.Revision() < floor {
		cur.history = floor
	}
}

// WatchFrom returns the current objects that the query selects and a cursor on
// the changes after them: nothing is missed between and nothing comes twice.
func (c *Cache) WatchFrom(q Query) ([]*Entry, *Cursor) {
	cur := c.newCursor(q)
	c.mu.Lock()
	s, rev := c.snapshotLocked(), c.revision()
	cur.era = c.era
	c.mu.Unlock()
	cur.revision.Store(int64(rev))
	p, _ := s.page(&cur.match, "", 0)
	c.did.initial.Add(uint64(len(p.Entries)))
	return p.Entries, cur
}

func (c *Cache) newCursor(q Query) *Cursor {
	cur := &Cursor{cache: c, match: c.matcher(q)}
	cur.interest = cur.match.interest()
	return cur
}

// Revision returns the revision up to which Next has delivered everything: what
// a bookmark may tell between two calls. During a call it counts what that is about to
// deliver.
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

// drain returns the events that are there, a batch at most.
func (cur *Cursor) drain() ([]Event, error) {
	var events []Event
	for seen, last := 0, false; !last && (seen < maxBatch || len(events) == 0); {
		run, more, err := cur.take()
		if err != nil && len(events) > 0 {
			return events, nil // the next call fails
		}
		if err != nil {
			return nil, err
		}
		for _, cm := range run {
			events = cur.match.appendEvents(events, cm)
			seen += len(cm.Events)
		}
		last = !more
	}
	return events, nil
}

// take returns the next run of commits, moves the cursor past it and reports whether
// there are more.
func (cur *Cursor) take() (run []commit, more bool, err error) {
	c := cur.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := cur.fault(); err != nil {
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

// fault tells why the cursor cannot go on; the caller holds the cache's lock.
func (cur *Cursor) fault() error {
	switch {
	case cur.cache.hub.isClosed():
		return ErrClosed
	case cur.era.over && cur.Revision() >= cur.era.end:
		return ErrEnded
	case cur.Revision() < cur.cache.severed:
		return &GoneError{cur.cache.severed}
	case cur.Revision() < cur.cache.log.Floor():
		return &GoneError{cur.cache.log.Floor()}
	}
	return nil
}

// cut tells that the cursor reads history that does not lead to now.
func (cur *Cursor) cut() error {
	cur.cache.mu.RLock()
	defer cur.cache.mu.RUnlock()
	if cur.Revision() < cur.cache.severed {
		return &GoneError{cur.cache.severed}
	}
	return nil
}

// park returns a group to wait in, or nil if there is something to read.
func (cur *Cursor) park() (*eventlog.Group, error) {
	c := cur.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cur.fault(); err != nil {
		return nil, err
	}
	if cur.Revision() < c.log.Newest() {
		return nil, nil
	}
	cur.advance(c.revision())
	return c.parked.Park(cur.interest), nil
}

// unpark leaves the group and reports whether that was woken at the last moment.
// As long as it was not, nothing in the log concerns the cursor.
func (cur *Cursor) unpark(g *eventlog.Group) bool {
	c := cur.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parked.Leave(cur.interest, g) {
		cur.advance(c.revision())
		return false
	}
	cur.advance(g.Quiet())
	return true
}

func (cur *Cursor) advance(rev storage.Revision) {
	if rev > cur.Revision() {
		cur.revision.Store(int64(rev))
	}
}

// appendEvents appends what a commit is to one who sees only what the query selects.
func (m *matcher) appendEvents(events []Event, cm commit) []Event {
	for i := range cm.Events {
		r := &cm.Events[i]
		if ev, seen := r.event(m.matches(r.old), m.matches(r.new), cm.Revision); seen {
			events = append(events, ev)
		}
	}
	return events
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
	err = cur.cache.hub.history(ctx, cur.cache, cur.Revision(), cur.history, func(cm commit) bool {
		events = cur.match.appendEvents(events, cm)
		seen += max(1, len(cm.Events))
		cur.advance(cm.Revision)
		enough := len(events) >= historyBatch || len(events) > 0 && seen >= maxBatch
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
