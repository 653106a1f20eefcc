package watch

import (
	"context"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/tidwall/btree"

	"orch.io/controlplane/storage"
)

// Query selects entries of a cache. The zero Query selects all.
type Query[V Entry] struct {
	Key    string       // the only key; "" for all
	Prefix string       // prefix of the keys; "" for all
	Match  func(V) bool // filter for the entries with Key and Prefix; nil for all

	// Topic, if set, is a topic of all entries that the query selects, see
	// Cache.SetTopics.
	Topic Topic
}

// selects reports whether the query selects an entry. It returns false for the zero value.
func (q *Query[V]) selects(e V) bool {
	var none V
	if e == none {
		return false
	}
	if q.Key != "" || q.Prefix != "" {
		key, _, _ := e.Origin()
		if q.Key != "" && key != q.Key || !strings.HasPrefix(key, q.Prefix) {
			return false
		}
	}
	return q.Match == nil || q.Match(e)
}

// keyRange returns the keys that the query can select: from lo up to, not including,
// hi. An empty hi stands for the end.
func (q *Query[V]) keyRange() (lo, hi string) {
	if q.Key != "" {
		return q.Key, q.Key + "\x00"
	}
	for n := len(q.Prefix); n > 0; n-- {
		if b := q.Prefix[n-1]; b < 0xff {
			return q.Prefix, q.Prefix[:n-1] + string([]byte{b + 1})
		}
	}
	return q.Prefix, ""
}

// Page is a part of a list, in the order of the keys.
type Page[V Entry] struct {
	Entries  []V              // owned by the caller
	Revision storage.Revision // revision of all pages of the list
	Next     string           // key at which the next page starts, "" after the last page
	// Remaining is the number of entries after this page that have the Key or Prefix of
	// the query. It ignores Query.Match.
	Remaining int64
}

// pin keeps a snapshot for further pages.
type pin[V Entry] struct {
	revision storage.Revision
	*snapshot[V]
	replaced int64 // Cache.replaced when it was made
}

// List returns the current entries that the query selects, beginning at the key start,
// which is Page.Next of the previous page. If limit is positive, it returns at most limit
// entries; if there are more, it keeps the state for ListAt, within the bounds of Options.
func (c *Cache[V]) List(q Query[V], start string, limit int) Page[V] {
	s, rev := c.snapshotNow()
	p, examined := s.page(&q, start, limit)
	p.Revision = rev
	if p.Next != "" {
		c.pin(rev, s)
	}
	c.counters.listed(examined, len(p.Entries))
	return p
}

// ListAt is like List for the state at exactly the given revision. If that state is not in
// memory, it is read from the backend. ListAt fails with storage.ErrCompacted if the
// backend does not have the state either, and with storage.ErrFuture if the cache does not
// show the revision yet.
func (c *Cache[V]) ListAt(ctx context.Context, rev storage.Revision, q Query[V], start string, limit int) (Page[V], error) {
	s, scanned, err := c.snapshotAt(ctx, rev)
	if err != nil {
		return Page[V]{}, err
	}
	p, examined := s.page(&q, start, limit)
	p.Revision = rev
	if p.Next != "" {
		c.pin(rev, s)
	}
	if !scanned {
		c.counters.listed(examined, len(p.Entries))
		return p, nil
	}
	c.counters.scans.Add(1)
	c.counters.scanned.Add(uint64(s.tree.Len()))
	c.counters.scanReturned.Add(uint64(len(p.Entries)))
	return p, nil
}

// snapshotAt returns the state at a revision, and whether it was read from the backend.
func (c *Cache[V]) snapshotAt(ctx context.Context, rev storage.Revision) (s *snapshot[V], scanned bool, err error) {
	s, undo, err := c.nearest(rev)
	if err != nil || s != nil && undo == nil {
		return s, false, err
	}
	if s == nil {
		s, err = c.scanAt(ctx, rev)
		return s, true, err
	}
	var none V
	for _, run := range slices.Backward(undo) {
		for _, cm := range slices.Backward(run) {
			for i := range cm.Events {
				ev := &cm.Events[i]
				if ev.Old == none {
					s.tree.Delete(ev.key())
					continue
				}
				s.tree.Set(ev.key(), ev.Old)
				s.other += ev.bytes()
			}
		}
	}
	return s, false, nil
}

// nearest returns a state in memory and the commits to undo on it. If there are commits to
// undo, the state is a copy that the caller may change. If the revision is not in memory,
// nearest returns no state.
func (c *Cache[V]) nearest(rev storage.Revision) (*snapshot[V], [][]commit[V], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rev > c.revision() {
		return nil, nil, storage.ErrFuture
	}
	if err := c.compacted(rev); err != nil {
		return nil, nil, err
	}
	for _, p := range c.pins {
		if p.revision == rev {
			return p.snapshot, nil, nil
		}
	}
	if rev < c.exact {
		return nil, nil, nil
	}
	if rev >= c.log.Newest() {
		return c.snapshotLocked(), nil, nil
	}
	runs, ok := c.log.Between(rev, c.log.Newest())
	if !ok {
		return nil, nil, nil
	}
	return &snapshot[V]{tree: c.tree.Copy()}, runs, nil
}

// scanAt reads the state at a revision from the backend. Entries that are current are
// shared with the cache.
func (c *Cache[V]) scanAt(ctx context.Context, rev storage.Revision) (*snapshot[V], error) {
	_, records, err := c.set.backend.Scan(ctx, c.prefix, "", rev)
	if err != nil {
		return nil, err
	}
	now, _ := c.snapshotNow()
	s := &snapshot[V]{tree: new(btree.Map[string, V])}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		key := rec.Key[len(c.prefix):]
		e, ok := now.tree.Get(key)
		if !ok || revisionOf(e) != rec.Revision {
			e = c.set.entry(key, rec)
			s.other += int64(len(rec.Value)) + eventOverhead
		}
		s.tree.Set(key, e)
	}
	return s, nil
}

// pin keeps a snapshot, and drops the oldest snapshots if there are too many.
func (c *Cache[V]) pin(rev storage.Revision, s *snapshot[V]) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.pins, func(p pin[V]) bool { return p.revision == rev }) {
		return
	}
	c.pins = append(c.pins, pin[V]{rev, s, c.replaced})
	c.forgetPins(now)
}

// forgetPins drops the oldest snapshots until the rest is within the bounds of age, number
// and size. The newest snapshot is dropped only for its age. The caller holds the lock.
func (c *Cache[V]) forgetPins(now time.Time) {
	o := &c.set.options
	var bytes int64
	for _, p := range c.pins {
		bytes += p.other
	}
	oldest := c.log.Retained(now)
	c.pins = slices.DeleteFunc(c.pins, func(p pin[V]) bool {
		if p.revision < oldest {
			bytes -= p.other
		}
		return p.revision < oldest
	})
	n := 0
	for ; n+1 < len(c.pins); n++ {
		p, left := &c.pins[n], len(c.pins)-n
		if left <= o.MaxSnapshots && bytes+c.replaced-p.replaced <= o.MaxBytes {
			break
		}
		bytes -= p.other
	}
	if n > 0 {
		c.pins = slices.Delete(c.pins, 0, n)
	}
}

// page returns the selected entries from the key start on, at most limit of them if
// limit is positive, and the number of entries that it examined.
func (s *snapshot[V]) page(q *Query[V], start string, limit int) (p Page[V], examined int) {
	lo, hi := q.keyRange()
	match := q.Match // the range already selects Key and Prefix
	if match == nil && q.Key == "" && limit <= 0 {
		p.Entries = s.all(max(lo, start), hi)
		return p, len(p.Entries)
	}
	s.tree.Ascend(max(lo, start), func(key string, e V) bool {
		if hi != "" && key >= hi {
			return false
		}
		examined++
		if match != nil && !match(e) {
			return true
		}
		if limit > 0 && len(p.Entries) == limit {
			p.Next = key
			return false
		}
		p.Entries = append(p.Entries, e)
		return true
	})
	if p.Next != "" {
		p.Remaining = int64(s.end(hi) - s.rank(p.Next))
	}
	return p, examined
}

// all returns the entries from lo up to, not including, hi. An empty hi stands for the
// end.
func (s *snapshot[V]) all(lo, hi string) []V {
	n := max(0, s.end(hi)-s.rank(lo))
	entries := make([]V, 0, n)
	s.tree.Ascend(lo, func(_ string, e V) bool {
		if len(entries) == n {
			return false
		}
		entries = append(entries, e)
		return true
	})
	return entries
}

// end returns the number of keys before hi. An empty hi stands for the end.
func (s *snapshot[V]) end(hi string) int {
	if hi == "" {
		return s.tree.Len()
	}
	return s.rank(hi)
}

// rank returns the number of keys before key.
func (s *snapshot[V]) rank(key string) int {
	return sort.Search(s.tree.Len(), func(i int) bool {
		k, _, _ := s.tree.GetAt(i)
		return k >= key
	})
}
