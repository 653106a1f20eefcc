package watch

import (
	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// Entry is the value that a cache holds for a key: usually a pointer to a struct that
// Options.Entry creates from a record. The zero value stands for "no record". An entry is
// shared by all readers.
type Entry interface {
	comparable

	// Origin returns the key within the cache, the revision and the size in bytes of
	// the record from which the entry was created. The result never changes.
	Origin() (key string, revision storage.Revision, size int)
}

// Record is the Entry that is the stored record itself. Its Key is the key within the
// cache. A struct that embeds a Record is an Entry as well.
type Record storage.Record

// NewRecord returns the record as an entry.
func NewRecord(r storage.Record) *Record { return (*Record)(&r) }

// Origin implements Entry.
func (r *Record) Origin() (key string, revision storage.Revision, size int) {
	return r.Key, r.Revision, len(r.Value)
}

// Event is the change of a key by a commit, as a reader sees it. Old is the entry before
// the commit and New the entry after it. Old is zero if the commit created the key, or if
// the old entry did not match the query. New is zero if the commit deleted the key, or if
// the new entry does not match. Old and New are never both zero.
type Event[V Entry] struct {
	Old, New V
	Revision storage.Revision // revision of the commit
}

// key returns the key that changed, within its cache.
func (ev *Event[V]) key() string {
	var none V
	e := ev.New
	if e == none {
		e = ev.Old
	}
	key, _, _ := e.Origin()
	return key
}

// eventOverhead is the approximate size of an event and its entry in the log beside the
// replaced record.
const eventOverhead = 256

// bytes returns the approximate memory that a log keeps because of the event. The new
// entry does not count, because the tree holds it anyway.
func (ev *Event[V]) bytes() int64 { return eventOverhead + sizeOf(ev.Old) }

// sizeOf returns the size of the record of an entry, or 0 if the entry is zero.
func sizeOf[V Entry](e V) int64 {
	var none V
	if e == none {
		return 0
	}
	_, _, size := e.Origin()
	return int64(size)
}

func revisionOf[V Entry](e V) storage.Revision {
	_, revision, _ := e.Origin()
	return revision
}

// commit holds the events of a commit in a cache, in the order of their keys.
type commit[V Entry] = eventlog.Commit[Event[V]]
