// Package history keeps the recent commits of a store in memory and serves the watches of the store
// from them.
//
// A Log is an eventlog.Log with its own lock. Log.mu is the innermost lock of a store: it may be
// acquired while the lock of the store is held, and a holder of Log.mu neither waits nor calls out of
// the package. The store must append commits in revision order, so it appends under its own lock or
// from its single committing goroutine.
//
// The cost of an append does not depend on the number of readers that are behind. A reader that falls
// behind the oldest commit gets storage.ErrCompacted and never delays other readers or appends. The
// package starts no goroutine, and readers wait on channels that they created themselves, so a Log
// works in a synctest bubble.
package history

import (
	"slices"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// Commit is one commit of a store.
type Commit = eventlog.Commit[storage.Event]

// eventOverhead is the approximate size of an event without its key and values, in bytes.
const eventOverhead = 128

// Log holds the recent commits of a store. All methods are safe for concurrent use.
type Log struct {
	limits eventlog.Limits

	mu      sync.Mutex // guards the fields below
	log     eventlog.Log[storage.Event]
	waiting eventlog.Waiters[string] // grouped by prefix
	closed  bool
}

// New returns an empty log; its first commit will have a revision larger than start.
func New(start storage.Revision, limits eventlog.Limits) *Log {
	l := &Log{limits: limits, waiting: make(eventlog.Waiters[string])}
	l.log.Init(start, limits)
	return l
}

// Begin empties the log and makes it continue after revision start. It is called when an import fills
// an empty store.
func (l *Log) Begin(start storage.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Init(start, l.limits)
}

// Append adds the events of commits, at least one, and wakes the readers with a matching prefix. The events
// must be in revision order, be newer than the log, and include all events of each commit. Append
// copies events but keeps their values.
func (l *Log) Append(now time.Time, events ...storage.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for first, rest := First(events); len(first) > 0; first, rest = First(rest) {
		c := Commit{Revision: first[0].Revision, Events: slices.Clone(first)}
		for i := range first {
			// The log also keeps the replaced value. It is usually the value of an earlier event, so
			// only the larger one of the two is counted.
			c.Bytes += eventOverhead + int64(len(first[i].Key)+max(len(first[i].Value), len(first[i].Prev.Value)))
		}
		l.log.Append(now, c)
	}
	l.wake(events)
}

// First splits events, which are in revision order, into the events of the first commit and the rest.
// Both are slices of events.
func First(events []storage.Event) (first, rest []storage.Event) {
	n := 0
	for n < len(events) && events[n].Revision == events[0].Revision {
		n++
	}
	return events[:n:n], events[n:]
}

// wake wakes the readers with an event under their prefix. The caller holds l.mu.
func (l *Log) wake(events []storage.Event) {
	var woken eventlog.Woken
	for prefix := range l.waiting {
		i := slices.IndexFunc(events, func(e storage.Event) bool { return strings.HasPrefix(e.Key, prefix) })
		if i >= 0 {
			woken = l.waiting.Wake(woken, prefix, events[i].Revision-1)
		}
	}
	woken.Release()
}

// Forget drops the commits up to and including the given revision, so readers can still start after
// that revision.
func (l *Log) Forget(before storage.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Forget(before)
}

// Floor returns the oldest revision after which a reader can start: the log has all commits after it.
func (l *Log) Floor() storage.Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Trim(time.Now())
	return l.log.Floor()
}

// Between returns the commits with revisions larger than after and up to last, as consecutive runs. It
// returns false if some of them were dropped. The runs must not be modified.
func (l *Log) Between(after, last storage.Revision) ([][]Commit, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Trim(time.Now())
	return l.log.Between(after, last)
}

// At returns the event of key in the commit with revision rev. It returns false if that commit was
// dropped or did not write the key.
func (l *Log) At(key string, rev storage.Revision) (storage.Event, bool) {
	l.mu.Lock()
	run := l.log.After(rev - 1)
	l.mu.Unlock()
	if len(run) > 0 && run[0].Revision == rev {
		for _, e := range run[0].Events {
			if e.Key == key {
				return e, true
			}
		}
	}
	return storage.Event{}, false
}

// Fork returns an independent log with the same history. It has none of the waiting readers of l.
func (l *Log) Fork() *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &Log{limits: l.limits, waiting: make(eventlog.Waiters[string]), closed: l.closed}
	l.log.Fork(&f.log, time.Now())
	return f
}

// Close makes Next and Watch fail with storage.ErrClosed, also for readers that are waiting. Between
// still works.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var woken eventlog.Woken
	for prefix := range l.waiting {
		woken = l.waiting.Wake(woken, prefix, 0)
	}
	woken.Release()
}
