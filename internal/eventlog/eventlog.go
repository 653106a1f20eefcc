// Package eventlog is what a store's watches and the watch cache have in common: a
// bounded run of commits in memory, for readers that each hold a position in it,
// and a place for those to wait who have read everything (Waiters).
//
// Locks. A Log and its Waiters have none. Their owner guards both with one lock,
// the one under which it also publishes what the log tells about, so that a state
// and the position after it can be taken at one moment. Every method is called with
// that lock held; those that change something, with it held for writing.
//
// What readers may keep. A run of commits stays valid without the lock, for as long
// as the reader likes: a commit is never written again once it is in the log; a
// chunk only grows behind the end of the runs that were taken of it; and forgetting
// drops references to chunks, it does not touch what is in them. So a reader holds
// the lock for a binary search, however much it then does with the run, and Append
// costs the same however many readers are behind.
//
// Positions are revisions. A commit is one element, whatever the number of its
// events, so no run, no chunk and no reader ends within one. A reader that has read
// up to a revision goes on with After of it; one whose revision is below Floor has
// missed something, and whether that is an error is its owner's business.
//
// Memory is given back a chunk at a time, and Bytes counts what is really held.
// Chunks are short if the limits are, and are closed early if what is in them is
// large, so that a limit is met to within an eighth.
package eventlog

import (
	"slices"
	"sort"
	"time"

	"orch.io/controlplane/storage"
)

// Commit is what one commit did. It must not be modified once it is in a log.
type Commit[E any] struct {
	Revision storage.Revision
	Events   []E   // at least one
	Bytes    int64 // that the log keeps in memory because of it, about
}

// Limits bound a Log; a zero field means no bound. The newest commit stays however
// large it is, until Age ends it.
type Limits struct {
	Age    time.Duration // that of storage.Retention
	Events int
	Bytes  int64
}

// A chunk takes no more commits when it has so much, or an eighth of the limits.
const (
	chunkEvents = 64
	chunkBytes  = 128 << 10
)

// chunk is a run of commits. There are no empty ones.
type chunk[E any] struct {
	commits []Commit[E]
	events  int
	bytes   int64
}

func (c *chunk[E]) last() storage.Revision { return c.commits[len(c.commits)-1].Revision }

// Log is a bounded run of commits in revision order. It must not be copied.
type Log[E any] struct {
	limits Limits
	full   struct { // when a chunk is
		events int
		bytes  int64
	}
	ages   storage.Retention
	chunks []*chunk[E] // oldest first
	events int
	bytes  int64
	floor  storage.Revision // every commit after it is here
	newest storage.Revision
}

// Init makes the log empty, to continue after revision start.
func (l *Log[E]) Init(start storage.Revision, limits Limits) {
	*l = Log[E]{limits: limits, ages: storage.Retention{Keep: limits.Age}, floor: start, newest: start}
	l.full.events, l.full.bytes = chunkEvents, chunkBytes
	if n := limits.Events; n > 0 {
		l.full.events = max(1, min(chunkEvents, n/8))
	}
	if n := limits.Bytes; n > 0 {
		l.full.bytes = max(1, min(chunkBytes, n/8))
	}
}

// Append adds a commit, whose revision must be larger than Newest, and forgets what
// is beyond the limits then.
func (l *Log[E]) Append(now time.Time, c Commit[E]) {
	k := l.open()
	k.commits = append(k.commits, c)
	k.events += len(c.Events)
	k.bytes += c.Bytes
	l.events += len(c.Events)
	l.bytes += c.Bytes
	l.newest = c.Revision
	l.ages.Committed(now, c.Revision)
	l.Trim(now)
}

// open returns the chunk to append to.
func (l *Log[E]) open() *chunk[E] {
	n := len(l.chunks)
	if n > 0 && l.chunks[n-1].events < l.full.events && l.chunks[n-1].bytes < l.full.bytes {
		return l.chunks[n-1]
	}
	c := new(chunk[E])
	if n > 0 { // there will be as many again
		c.commits = make([]Commit[E], 0, len(l.chunks[n-1].commits))
	}
	l.chunks = append(l.chunks, c)
	return c
}

// Trim forgets what is too old now, and what is too much.
func (l *Log[E]) Trim(now time.Time) {
	l.Forget(l.ages.Oldest(now))
	for len(l.chunks) > 1 && (l.limits.Events > 0 && l.events > l.limits.Events || l.limits.Bytes > 0 && l.bytes > l.limits.Bytes) {
		l.drop()
	}
}

// Forget drops the history before a revision: what comes after it stays readable.
func (l *Log[E]) Forget(before storage.Revision) {
	l.floor = max(l.floor, min(before, l.newest))
	for len(l.chunks) > 0 && l.chunks[0].last() <= l.floor {
		l.drop()
	}
}

func (l *Log[E]) drop() {
	c := l.chunks[0]
	l.events -= c.events
	l.bytes -= c.bytes
	l.floor = max(l.floor, c.last())
	l.chunks[0] = nil
	l.chunks = l.chunks[1:]
}

// Shorten forgets the oldest commits, a chunk of them, but never the newest one.
func (l *Log[E]) Shorten() {
	switch n := len(l.chunks); {
	case n > 1:
		l.drop()
	case n == 1 && len(l.chunks[0].commits) > 1:
		c := l.chunks[0].commits
		l.floor = max(l.floor, c[len(c)-2].Revision)
		// Readers may hold the old chunk, so the commit that stays moves to a new one.
		kept := c[len(c)-1]
		l.events, l.bytes = len(kept.Events), kept.Bytes
		l.chunks[0] = &chunk[E]{[]Commit[E]{kept}, l.events, l.bytes}
	}
}

// First returns the revision of the oldest commit in memory, 0 if there is none but
// the newest.
func (l *Log[E]) First() storage.Revision {
	if len(l.chunks) == 0 || l.chunks[0].commits[0].Revision == l.newest {
		return 0
	}
	return l.chunks[0].commits[0].Revision
}

// Floor returns the revision after which every commit is in the log.
func (l *Log[E]) Floor() storage.Revision { return l.floor }

// Newest returns the revision of the newest commit that there ever was.
func (l *Log[E]) Newest() storage.Revision { return l.newest }

// Retained returns the revision before which everything is too old.
func (l *Log[E]) Retained(now time.Time) storage.Revision { return l.ages.Oldest(now) }

// Events returns how many events the log holds.
func (l *Log[E]) Events() int { return l.events }

// Bytes returns how many bytes the log holds.
func (l *Log[E]) Bytes() int64 { return l.bytes }

// After returns the commits after a revision, those of one chunk at most; none if
// there are no more. It does not look at Floor.
func (l *Log[E]) After(rev storage.Revision) []Commit[E] {
	i := l.find(rev)
	if i == len(l.chunks) {
		return nil
	}
	c := l.chunks[i].commits
	return c[index(c, rev):len(c):len(c)]
}

// Between returns the commits after one revision up to and including another, in
// runs. It reports false if some of them are forgotten.
func (l *Log[E]) Between(after, last storage.Revision) (runs [][]Commit[E], ok bool) {
	if after < l.floor {
		return nil, false
	}
	for ; after < last; after = runs[len(runs)-1][len(runs[len(runs)-1])-1].Revision {
		run := UpTo(l.After(after), last)
		if len(run) == 0 {
			break
		}
		runs = append(runs, run)
	}
	return runs, true
}

// UpTo returns the part of a run up to and including a revision.
func UpTo[E any](run []Commit[E], last storage.Revision) []Commit[E] {
	return run[:index(run, last)]
}

// find returns the place of the first chunk that has a commit after a revision.
// Most readers are at the end, so it looks there first.
func (l *Log[E]) find(rev storage.Revision) int {
	n := len(l.chunks)
	switch {
	case n == 0 || l.chunks[n-1].last() <= rev:
		return n
	case n == 1 || l.chunks[n-2].last() <= rev:
		return n - 1
	}
	return sort.Search(n, func(i int) bool { return l.chunks[i].last() > rev })
}

// index returns the place of the first commit after a revision, from the end on for
// the same reason; a chunk is short.
func index[E any](run []Commit[E], rev storage.Revision) int {
	i := len(run)
	for i > 0 && run[i-1].Revision > rev {
		i--
	}
	return i
}

// Fork makes to a log with the same history that goes its own way.
func (l *Log[E]) Fork(to *Log[E], now time.Time) {
	*to = *l
	to.ages = storage.Retention{Keep: l.limits.Age}
	to.ages.Restore(l.ages.Spans(), now, l.newest)
	to.chunks = slices.Clone(l.chunks)
	if n := len(to.chunks); n > 0 {
		last := *to.chunks[n-1] // both go on behind it, each in an array of its own
		last.commits = slices.Clip(last.commits)
		to.chunks[n-1] = &last
	}
}
