package watch

import (
	"sync/atomic"

	"orch.io/controlplane/storage"
)

// counters count the work of a cache.
type counters struct {
	received, published, initial atomic.Uint64
	lists, examined, returned    atomic.Uint64
	scans, scanned, scanReturned atomic.Uint64
	shortened                    atomic.Uint64
	bytes                        atomic.Int64
}

// Stats is the size of a cache, and its work since it was created.
type Stats struct {
	Entries int              // current entries
	Bytes   int64            // size of the values of the current records
	Changed storage.Revision // revision of the newest event

	Received  uint64 // changes from the backend
	Published uint64 // events for these changes
	Initial   uint64 // entries returned by ListAndWatch

	Lists, Examined, Returned    uint64 // lists from memory; examined and returned entries
	Scans, Scanned, ScanReturned uint64 // lists read from the backend; examined and returned entries

	Shortened uint64 // number of times that events were dropped before Options.Retain because of a limit
}

// Stats returns the statistics of the cache. The values are not read atomically.
func (c *Cache[V]) Stats() Stats {
	n := &c.counters
	return Stats{
		Entries: c.Len(), Bytes: n.bytes.Load(), Changed: c.Changed(),
		Received: n.received.Load(), Published: n.published.Load(), Initial: n.initial.Load(),
		Lists: n.lists.Load(), Examined: n.examined.Load(), Returned: n.returned.Load(),
		Scans: n.scans.Load(), Scanned: n.scanned.Load(), ScanReturned: n.scanReturned.Load(),
		Shortened: n.shortened.Load(),
	}
}

// listed counts a list from memory.
func (n *counters) listed(examined, returned int) {
	n.lists.Add(1)
	n.examined.Add(uint64(examined))
	n.returned.Add(uint64(returned))
}
