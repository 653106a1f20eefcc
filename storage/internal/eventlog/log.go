// Package eventlog keeps the newest commits of one store in memory, bounded by
// age, count and bytes, for readers that each hold a position in it.
//
// Publishing costs the same however many readers there are behind; a reader
// that falls off the old end is told so and delays nobody. The log has no
// goroutine, and its readers wait on channels that they made themselves.
package eventlog

import (
	"sort"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/storage"
)

// Limits bound what a Log keeps; a zero field means no bound. Age is that of
// storage.Retention.
type Limits struct {
	Age    time.Duration
	Events int
	Bytes  int
}

const (
	chunkEvents   = 256
	chunkBytes    = 256 << 10
	eventOverhead = 96
)

// chunk is a run of events, with all those of one commit. Published elements are never written again, so a
// reader may use the slice that it was given without the lock.
type chunk struct {
	events []storage.Event
	bytes  int
}

func (c *chunk) last() storage.Revision { return c.events[len(c.events)-1].Revision }

// Log is a bounded run of events in revision order.
type Log struct {
	limits Limits

	mu      sync.Mutex
	ages    storage.Retention
	chunks  []*chunk
	events  int
	bytes   int
	floor   storage.Revision // everything after it is here
	newest  storage.Revision
	waiters []*waiter
	closed  bool
}

// New makes a log that holds nothing yet and continues after revision start.
func New(start storage.Revision, limits Limits) *Log {
	return &Log{limits: limits, ages: storage.Retention{Keep: limits.Age}, floor: start, newest: start}
}

// Append publishes events, which must continue the revision order, all of a commit
// at once, and wakes the readers whose prefix they match.
func (l *Log) Append(now time.Time, events ...storage.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.add(e)
	}
	l.ages.Committed(now, l.newest)
	l.trim(now)
	l.wake(events)
}

func (l *Log) add(e storage.Event) {
	c := l.open(e.Revision)
	// What was replaced is kept too; of what follows each other it counts once.
	size := eventOverhead + len(e.Key) + max(len(e.Value), len(e.Prev.Value))
	c.events = append(c.events, e)
	c.bytes += size
	l.events++
	l.bytes += size
	l.newest = e.Revision
}

// open returns the chunk to append an event of a revision to. Chunks are closed
// early when they are large, because memory is given back a chunk at a time.
func (l *Log) open(rev storage.Revision) *chunk {
	size := chunkEvents
	if n := l.limits.Events; n > 0 {
		size = max(1, min(size, n/8))
	}
	if n := len(l.chunks); n > 0 {
		c := l.chunks[n-1]
		if len(c.events) < size && c.bytes < chunkBytes || c.last() == rev {
			return c
		}
	}
	c := &chunk{}
	l.chunks = append(l.chunks, c)
	return c
}

// trim forgets what is too old or too much; the caller holds the lock.
func (l *Log) trim(now time.Time) {
	l.forget(l.ages.Oldest(now))
	for len(l.chunks) > 1 && (l.limits.Events > 0 && l.events > l.limits.Events || l.limits.Bytes > 0 && l.bytes > l.limits.Bytes) {
		l.drop()
	}
}

func (l *Log) drop() {
	c := l.chunks[0]
	l.chunks[0] = nil
	l.chunks = l.chunks[1:]
	l.events -= len(c.events)
	l.bytes -= c.bytes
	l.floor = max(l.floor, c.last())
}

// Forget drops the history before the given revision: what comes after it
// stays readable.
func (l *Log) Forget(before storage.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(before)
}

func (l *Log) forget(before storage.Revision) {
	l.floor = max(l.floor, min(before, l.newest))
	for len(l.chunks) > 0 && l.chunks[0].last() <= l.floor {
		l.drop()
	}
}

// Floor returns the revision after which every event is in the log.
func (l *Log) Floor() storage.Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim(time.Now())
	return l.floor
}

// Between returns the events after one revision up to and including another,
// in runs. It reports false if part of them is forgotten.
func (l *Log) Between(after, last storage.Revision) ([][]storage.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trim(time.Now()); after < l.floor {
		return nil, false
	}
	var runs [][]storage.Event
	for _, c := range l.chunks[l.find(after):] {
		run := c.events[index(c.events, after):]
		if c.last() > last {
			run = run[:index(run, last)]
		}
		if len(run) == 0 {
			break
		}
		runs = append(runs, run)
	}
	return runs, true
}

// At returns what the commit of a revision did to a key, if it is not forgotten.
func (l *Log) At(key string, rev storage.Revision) (storage.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.find(rev - 1); i < len(l.chunks) {
		events := l.chunks[i].events
		for _, e := range events[index(events, rev-1):] {
			if e.Revision != rev {
				break
			}
			if e.Key == key {
				return e, true
			}
		}
	}
	return storage.Event{}, false
}

// find returns the place of the first chunk that holds an event after the revision.
func (l *Log) find(after storage.Revision) int {
	return sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].last() > after })
}

// index returns the place of the first event after the revision.
func index(events []storage.Event, after storage.Revision) int {
	return sort.Search(len(events), func(i int) bool { return events[i].Revision > after })
}

// Fork returns a log with the same history that goes its own way. Readers of
// the original are not readers of the fork.
func (l *Log) Fork() *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &Log{limits: l.limits, ages: storage.Retention{Keep: l.limits.Age}, events: l.events, bytes: l.bytes, floor: l.floor, newest: l.newest, closed: l.closed}
	f.ages.Restore(l.ages.Spans(), time.Now(), l.newest)
	f.chunks = append(f.chunks, l.chunks...)
	if n := len(f.chunks); n > 0 {
		open := *f.chunks[n-1]
		open.events = open.events[:len(open.events):len(open.events)]
		f.chunks[n-1] = &open
	}
	return f
}

// Close ends every reader with storage.ErrClosed. The history stays readable
// through Between.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, w := range l.waiters {
		w.parked = false
		close(w.woken)
	}
	l.waiters = nil
}

func (l *Log) wake(events []storage.Event) {
	for i := 0; i < len(l.waiters); {
		w := l.waiters[i]
		hit := -1
		for j := range events {
			if events[j].Revision > w.after && strings.HasPrefix(events[j].Key, w.prefix) {
				hit = j
				break
			}
		}
		if hit < 0 {
			i++
			continue
		}
		w.after = max(w.after, events[hit].Revision-1)
		l.unpark(w)
		close(w.woken)
	}
}
