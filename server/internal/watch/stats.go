package watch

import (
	"sync/atomic"

	"orch.io/controlplane/storage"
)

// did counts what a cache has done.
type did struct {
	received, published, initial atomic.Uint64
	lists, looked, returned      atomic.Uint64
	scans, scanned, scanReturned atomic.Uint64
	shortened                    atomic.Uint64
	bytes                        atomic.Int64
}

// Stats are how a cache is, and what it has done since it was made.
type Stats struct {
	Objects  int              // that there are
	Bytes    int64            // that they take in the store, without their keys
	Revision storage.Revision // of the newest change

	Received  uint64 // changes that came from the backend
	Published uint64 // those of them that watches were told
	Initial   uint64 // objects that watches began with

	Lists, Looked, Returned      uint64 // lists from memory; objects that they looked at and returned
	Scans, Scanned, ScanReturned uint64 // lists that the backend was asked for, and the same of these

	Shortened uint64 // how often changes were forgotten before their time, since there was no room for them
}

// Stats returns how the cache is.
func (c *Cache) Stats() Stats {
	d := &c.did
	return Stats{
		Objects: c.Len(), Bytes: d.bytes.Load(), Revision: c.Changed(),
		Received: d.received.Load(), Published: d.published.Load(), Initial: d.initial.Load(),
		Lists: d.lists.Load(), Looked: d.looked.Load(), Returned: d.returned.Load(),
		Scans: d.scans.Load(), Scanned: d.scanned.Load(), ScanReturned: d.scanReturned.Load(),
		Shortened: d.shortened.Load(),
	}
}

// HistoryUsed returns which part is in use of the memory that there is for changes.
func (h *Hub) HistoryUsed() float64 {
	return float64(h.keptBytes.Load()) / float64(h.options.MaxBytes)
}

// listed counts a list from memory.
func (d *did) listed(looked, returned int) {
	d.lists.Add(1)
	d.looked.Add(uint64(looked))
	d.returned.Add(uint64(returned))
}

// bytesOrNone is what an object takes in the store; nil is not there.
func (e *Entry) bytesOrNone() int64 {
	if e == nil {
		return 0
	}
	return e.StoredBytes()
}
