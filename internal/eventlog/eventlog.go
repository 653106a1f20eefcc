// Package eventlog implements the history that the stores and the watch cache share: a Log of recent commits in
// memory, with limits, and Waiters for readers that have read all of it.
//
// # Locking
//
// A Log and its Waiters have no lock. Their owner guards both with one lock, and uses the same lock to publish
// the state to which the commits lead, so that it can take a state and the matching position in the log
// atomically. All methods must be called with that lock held; methods that modify the log need it for writing.
//
// # Runs
//
// A run of commits, as returned by After, stays valid after the lock is released and must not be modified. A
// commit in the log is never modified; a chunk only grows after the end of the runs taken from it; and dropping
// commits only drops references to chunks. A reader therefore holds the lock only for a binary search, and the
// cost of Append does not depend on the number of readers.
//
// # Positions
//
// The position of a reader is the revision up to which it has read; it continues with After(position). If the
// position is below Floor, the reader has missed commits, and the owner decides whether that is an error. A
// commit is an element of the log regardless of its number of events, so a run never ends within a commit.
//
// # Memory
//
// Memory is freed in whole chunks, and Bytes includes chunks that are only partly in use. A chunk is limited to
// an eighth of the limits of the log, so the log keeps at least seven eighths of what they allow.
package eventlog

import (
	"slices"
	"sort"
	"time"

	"orch.io/controlplane/storage"
)

// Commit is a commit with its events. It must not be modified after it was appended to a log.
type Commit[E any] struct {
	Revision storage.Revision
	Events   []E   // at least one
	Bytes    int64 // approximate memory that the log keeps for the commit
}

// Limits are the limits of a Log; a zero field means no limit. The newest commit is kept even if it alone exceeds
// Events or Bytes, but not if it exceeds Age.
type Limits struct {
	Age    time.Duration // see storage.Retention.Keep
	Events int
	Bytes  int64
}

// A chunk is full when it has this many events or bytes, or an eighth of the limits of the log.
const (
	chunkEvents = 64
	chunkBytes  = 128 << 10
)

// chunk is a run of at least one commit.
type chunk[E any] struct {
	commits []Commit[E]
	events  int
	bytes   int64
}

// last returns the newest revision of the chunk.
func (c *chunk[E]) last() storage.Revision { return c.commits[len(c.commits)-1].Revision }

// Log holds recent commits in revision order. It must be initialized with Init and must not be copied.
type Log[E any] struct {
	limits Limits
	full   struct { // size at which a chunk is full
		events int
		bytes  int64
	}
	ages   storage.Retention
	chunks []*chunk[E] // oldest first
	events int
	bytes  int64
	floor  storage.Revision // the log has all commits after it
	newest storage.Revision // revision of the newest commit, even if it was dropped
}

// Init empties the log. The first commit must have a revision larger than start.
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

// Append adds a commit. Its revision must be larger than Newest. Append drops old commits that exceed the limits.
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

// open returns the chunk to append to. If the last chunk is full, it adds a new chunk.
func (l *Log[E]) open() *chunk[E] {
	n := len(l.chunks)
	if n > 0 && l.chunks[n-1].events < l.full.events && l.chunks[n-1].bytes < l.full.bytes {
		return l.chunks[n-1]
	}
	c := new(chunk[E])
	if n > 0 { // expect as many commits as in the previous chunk
		c.commits = make([]Commit[E], 0, len(l.chunks[n-1].commits))
	}
	l.chunks = append(l.chunks, c)
	return c
}

// Trim drops commits that exceed the limits at the time now.
func (l *Log[E]) Trim(now time.Time) {
	l.Forget(l.ages.Oldest(now))
	for len(l.chunks) > 1 && (l.limits.Events > 0 && l.events > l.limits.Events || l.limits.Bytes > 0 && l.bytes > l.limits.Bytes) {
		l.drop()
	}
}

// Forget raises Floor to the given revision and drops the chunks that have no later commits.
func (l *Log[E]) Forget(before storage.Revision) {
	l.floor = max(l.floor, min(before, l.newest))
	for len(l.chunks) > 0 && l.chunks[0].last() <= l.floor {
		l.drop()
	}
}

// drop removes the oldest chunk.
func (l *Log[E]) drop() {
	c := l.chunks[0]
	l.events -= c.events
	l.bytes -= c.bytes
	l.floor = max(l.floor, c.last())
	l.chunks[0] = nil
	l.chunks = l.chunks[1:]
}

// Shorten drops the oldest chunk, but never the newest commit.
func (l *Log[E]) Shorten() {
	switch n := len(l.chunks); {
	case n > 1:
		l.drop()
	case n == 1 && len(l.chunks[0].commits) > 1:
		c := l.chunks[0].commits
		l.floor = max(l.floor, c[len(c)-2].Revision)
		// Readers may hold the old chunk, so the remaining commit moves to a new chunk.
		kept := c[len(c)-1]
		l.events, l.bytes = len(kept.Events), kept.Bytes
		l.chunks[0] = &chunk[E]{[]Commit[E]{kept}, l.events, l.bytes}
	}
}

// First returns the revision of the oldest commit in memory, or 0 if there is at most the newest commit.
func (l *Log[E]) First() storage.Revision {
	if len(l.chunks) == 0 || l.chunks[0].commits[0].Revision == l.newest {
		return 0
	}
	return l.chunks[0].commits[0].Revision
}

// Floor returns the oldest position from which a reader misses no commit.
func (l *Log[E]) Floor() storage.Revision { return l.floor }

// Newest returns the revision of the newest commit that was ever appended, or the start revision of Init.
func (l *Log[E]) Newest() storage.Revision { return l.newest }

// Retained returns the oldest revision that Limits.Age allows at the time now.
func (l *Log[E]) Retained(now time.Time) storage.Revision { return l.ages.Oldest(now) }

// Events returns the number of events in memory.
func (l *Log[E]) Events() int { return l.events }

// Bytes returns the approximate memory of the commits in bytes.
func (l *Log[E]) Bytes() int64 { return l.bytes }

// After returns the next commits after a revision, at most those of one chunk. The result is empty if there are no
// later commits. After does not check Floor.
func (l *Log[E]) After(rev storage.Revision) []Commit[E] {
	i := l.find(rev)
	if i == len(l.chunks) {
		return nil
	}
	c := l.chunks[i].commits
	return c[index(c, rev):len(c):len(c)]
}

// Between returns the commits with revisions larger than after and up to last, as consecutive runs. It returns
// false if some of them were dropped.
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

// UpTo returns the commits of a run up to and including the revision last.
func UpTo[E any](run []Commit[E], last storage.Revision) []Commit[E] {
	return run[:index(run, last)]
}

// find returns the index of the first chunk with a commit after a revision, or len(l.chunks). It searches the last
// chunks first, because most readers are near the end.
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

// index returns the index of the first commit of a run after a revision, or len(run). It searches linearly from the
// end, because most readers are near the end and a chunk is short.
func index[E any](run []Commit[E], rev storage.Revision) int {
	i := len(run)
	for i > 0 && run[i-1].Revision > rev {
		i--
	}
	return i
}

// Fork makes to an independent log with the same history. The caller must hold the lock of l for reading.
func (l *Log[E]) Fork(to *Log[E], now time.Time) {
	*to = *l
	to.ages = storage.Retention{Keep: l.limits.Age}
	to.ages.Restore(l.ages.Spans(), now, l.newest)
	to.chunks = slices.Clone(l.chunks)
	if n := len(to.chunks); n > 0 {
		last := *to.chunks[n-1] // copy the chunk that is appended to; Clip makes append copy the array
		last.commits = slices.Clip(last.commits)
		to.chunks[n-1] = &last
	}
}
