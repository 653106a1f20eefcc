// Package history keeps the newest commits of one store in memory and serves the
// store's watches from them.
//
// It is an eventlog.Log with a lock of its own: Log.mu is the innermost lock of a
// store, taken with or without the store's own, and nothing else is waited for or
// called under it. Whoever appends does so in revision order, which the store's own
// lock, or its one committing goroutine, sees to.
//
// Publishing costs the same however many readers there are behind; a reader that
// falls off the old end is told so and delays nobody. There is no goroutine, and
// readers wait on channels that they made themselves, so that it all works in a
// synctest bubble.
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

// eventOverhead is what an event takes beside its key and value, about.
const eventOverhead = 128

// Log is the newest commits of a store. All methods are safe for concurrent use.
type Log struct {
	limits eventlog.Limits

	mu      sync.Mutex
	log     eventlog.Log[storage.Event]
	waiting eventlog.Waiters[string] // by prefix
	closed  bool
}

// New makes a log that holds nothing yet and continues after revision start.
func New(start storage.Revision, limits eventlog.Limits) *Log {
	l := &Log{limits: limits, waiting: make(eventlog.Waiters[string])}
	l.log.Init(start, limits)
	return l
}

// Begin makes the log hold nothing and continue after revision start, as that of a store
// that was empty until then.
func (l *Log) Begin(start storage.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Init(start, l.limits)
}

// Append publishes the events of one commit or of several, which must continue the
// revision order, all of a commit at once, and wakes the readers whose prefix they
// match.
func (l *Log) Append(now time.Time, events ...storage.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one, rest := First(events); len(one) > 0; one, rest = First(rest) {
		c := Commit{Revision: one[0].Revision, Events: slices.Clone(one)}
		for i := range one {
			// What was replaced is kept too; of what follows each other it counts once.
			c.Bytes += eventOverhead + int64(len(one[i].Key)+max(len(one[i].Value), len(one[i].Prev.Value)))
		}
		l.log.Append(now, c)
	}
	l.wake(events)
}

// First divides events in revision order into those of the first commit and the
// rest.
func First(events []storage.Event) (one, rest []storage.Event) {
	n := 0
	for n < len(events) && events[n].Revision == events[0].Revision {
		n++
	}
	return events[:n:n], events[n:]
}

// wake releases the readers that any of the events concerns; the caller holds the
// lock.
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

// Forget drops the history before the given revision: what comes after it
// stays readable.
func (l *Log) Forget(before storage.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Forget(before)
}

// Floor returns the revision after which every event is in the log.
func (l *Log) Floor() storage.Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Trim(time.Now())
	return l.log.Floor()
}

// Between returns the commits after one revision up to and including another,
// in runs. It reports false if part of them is forgotten.
func (l *Log) Between(after, last storage.Revision) ([][]Commit, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Trim(time.Now())
	return l.log.Between(after, last)
}

// At returns what the commit of a revision did to a key, if it is not forgotten.
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

// Fork returns a log with the same history that goes its own way. Readers of
// the original are not readers of the fork.
func (l *Log) Fork() *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &Log{limits: l.limits, waiting: make(eventlog.Waiters[string]), closed: l.closed}
	l.log.Fork(&f.log, time.Now())
	return f
}

// Close ends every reader with storage.ErrClosed. The history stays readable
// through Between.
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
