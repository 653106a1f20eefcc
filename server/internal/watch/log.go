package watch

import (
	"sync/atomic"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/eventlog"
)

// recordOverhead is what a record takes beside the object that it keeps, about.
const recordOverhead = 256

// record is what a commit did to one object. old and new are nil for "not there".
type record struct {
	old, new *Entry
	gone     atomic.Pointer[Entry] // old with the revision of the commit
}

// commit is what one commit did to the objects of a cache, in the order of their
// keys.
type commit = eventlog.Commit[record]

// key returns the key of the object that changed.
func (r *record) key() string {
	if r.new != nil {
		return r.new.key
	}
	return r.old.key
}

// bytes returns what a log keeps because of the record; the new state is there
// anyway.
func (r *record) bytes() int64 {
	if r.old == nil {
		return recordOverhead
	}
	return recordOverhead + int64(r.old.size())
}

// event returns what a change is to one who saw the object before or sees it after; it is
// false if he did neither.
func (r *record) event(was, is bool, rev storage.Revision) (Event, bool) {
	switch {
	case was && is:
		return Event{Modified, r.new, rev, r}, true
	case is:
		return Event{Added, r.new, rev, r}, true
	case was:
		return Event{Deleted, r.last(rev), rev, r}, true
	}
	return Event{}, false
}

// last returns the state that a DELETED event carries: the last one that a
// watcher saw, with the revision of the commit.
func (r *record) last(rev storage.Revision) *Entry {
	if e := r.gone.Load(); e != nil {
		return e
	}
	r.gone.CompareAndSwap(nil, r.old.at(rev))
	return r.gone.Load()
}
