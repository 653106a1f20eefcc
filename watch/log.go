package watch

import (
	"sort"
	"sync/atomic"

	"orch.io/controlplane/storage"
)

const (
	chunkSize      = 64
	recordOverhead = 256
)

// record is one change in a log. old and new are nil for "not there".
type record struct {
	revision storage.Revision
	old, new *Entry
	gone     atomic.Pointer[Entry] // old with the revision of this change
	size     int64
}

// key returns the key of the object that changed.
func (r *record) key() string {
	if r.new != nil {
		return r.new.key
	}
	return r.old.key
}

// last returns the state that a DELETED event carries: the last one that a
// watcher saw, with the revision of the change.
func (r *record) last() *Entry {
	if e := r.gone.Load(); e != nil {
		return e
	}
	r.gone.CompareAndSwap(nil, r.old.at(r.revision))
	return r.gone.Load()
}

type chunk [chunkSize]atomic.Pointer[record]

// eventLog is a bounded run of records with absolute positions. Its fields are
// guarded by the cache's lock; the records of a run that was handed out are read
// without it, and one that is nil by then was forgotten.
type eventLog struct {
	chunks []*chunk
	first  uint64 // position of the oldest record
	next   uint64 // position after the newest
	bytes  int64
	floor  storage.Revision // everything after it is here
}

func (l *eventLog) len() int { return int(l.next - l.first) }

// slot returns the place of a position between first and next.
func (l *eventLog) slot(pos uint64) *atomic.Pointer[record] {
	i := pos/chunkSize - l.first/chunkSize
	return &l.chunks[i][pos%chunkSize]
}

func (l *eventLog) at(pos uint64) *record { return l.slot(pos).Load() }

func (l *eventLog) add(r *record) {
	if l.next%chunkSize == 0 || len(l.chunks) == 0 {
		l.chunks = append(l.chunks, new(chunk))
	}
	if r.size = recordOverhead; r.old != nil {
		r.size += int64(r.old.size()) // the new one is there anyway
	}
	l.bytes += r.size
	l.next++
	l.slot(l.next - 1).Store(r)
}

// trim forgets the records up to a revision, and those that are too many.
func (l *eventLog) trim(oldest storage.Revision, most int) {
	for l.len() > 0 {
		r := l.at(l.first)
		if l.len() <= most && r.revision > oldest {
			return
		}
		l.drop(r)
	}
}

func (l *eventLog) drop(r *record) {
	l.slot(l.first).Store(nil)
	l.bytes -= r.size
	l.floor = max(l.floor, r.revision)
	if l.first%chunkSize == chunkSize-1 {
		l.chunks[0] = nil
		l.chunks = l.chunks[1:]
	}
	l.first++
}

// run returns the slots from pos on that lie in one chunk; none at the end.
func (l *eventLog) run(pos uint64) []atomic.Pointer[record] {
	if pos >= l.next {
		return nil
	}
	c := l.chunks[pos/chunkSize-l.first/chunkSize]
	from := pos % chunkSize
	return c[from:min(chunkSize, from+l.next-pos)]
}

// after returns the position of the first record newer than a revision.
func (l *eventLog) after(rev storage.Revision) uint64 {
	return l.first + uint64(sort.Search(l.len(), func(i int) bool {
		return l.at(l.first+uint64(i)).revision > rev
	}))
}
