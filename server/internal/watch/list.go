package watch

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"
	"time"

	"orch.io/controlplane/storage"
)

// Page is a part of a list.
type Page struct {
	Entries  []*Entry
	Revision storage.Revision // the one consistent state that all pages show
	Next     string           // where the next page starts, "" after the last one
	// Remaining is the number of objects after this page, in the namespace that
	// was asked for. It disregards selectors, so it means nothing with them.
	Remaining int64
}

// pin keeps an old state for the pages that follow.
type pin struct {
	revision storage.Revision
	*snapshot
	replaced int64 // bytes that the cache had replaced when it was made
}

// List returns the newest objects that the query selects in the order of their
// keys: those from start on (a Page's Next), limit at most (0: all). If there
// are more, the state is kept for ListAt, for a time and a number of states that
// Options bound.
func (c *Cache) List(q Query, start string, limit int) Page {
	m := c.matcher(q)
	s, rev := c.snapshotNow()
	p, looked := s.page(&m, start, limit)
	p.Revision = rev
	if p.Next != "" {
		c.pin(rev, s)
	}
	c.did.listed(looked, len(p.Entries))
	return p
}

// ListAt returns a page of the objects as they were at exactly a revision. It
// fails with ErrGone if that is forgotten by cache and backend, and with
// storage.ErrFuture if it has not come yet.
func (c *Cache) ListAt(ctx context.Context, rev storage.Revision, q Query, start string, limit int) (Page, error) {
	s, scanned, err := c.snapshotAt(ctx, rev)
	if err != nil {
		return Page{}, err
	}
	m := c.matcher(q)
	p, looked := s.page(&m, start, limit)
	p.Revision = rev
	if p.Next != "" {
		c.pin(rev, s)
	}
	if !scanned {
		c.did.listed(looked, len(p.Entries))
		return p, nil
	}
	c.did.scans.Add(1)
	c.did.scanned.Add(uint64(s.tree.Len()))
	c.did.scanReturned.Add(uint64(len(p.Entries)))
	return p, nil
}

// snapshotAt returns the objects at a revision from the nearest source, and whether that
// was the backend.
func (c *Cache) snapshotAt(ctx context.Context, rev storage.Revision) (s *snapshot, scanned bool, err error) {
	s, undo, err := c.nearest(rev)
	if err != nil || s != nil && undo == nil {
		return s, false, err
	}
	if s == nil {
		s, err = c.scanAt(ctx, rev)
		return s, true, err
	}
	for _, run := range slices.Backward(undo) {
		for _, cm := range slices.Backward(run) {
			for i := range cm.Events {
				r := &cm.Events[i]
				if r.old == nil {
					s.tree.Delete(r.new.key)
					continue
				}
				s.tree.Set(r.old.key, r.old)
				s.other += r.bytes()
			}
		}
	}
	return s, false, nil
}

// nearest returns a state in memory and the commits to undo from there. If there
// are any, the state is the caller's own copy. No state: it is not in memory.
func (c *Cache) nearest(rev storage.Revision) (*snapshot, [][]commit, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rev > c.revision() {
		return nil, nil, storage.ErrFuture
	}
	if err := c.forgotten(rev); err != nil {
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
	return &snapshot{tree: c.tree.Copy()}, runs, nil
}

// scanAt reads a state from the backend. Objects that are in memory are shared.
func (c *Cache) scanAt(ctx context.Context, rev storage.Revision) (*snapshot, error) {
	_, records, err := c.hub.backend.Scan(ctx, c.prefix, "", rev)
	if err != nil {
		return nil, gone(err)
	}
	now, _ := c.snapshotNow()
	s := &snapshot{tree: new(tree)}
	for rec, err := range records {
		if err != nil {
			return nil, gone(err)
		}
		key := rec.Key[len(c.prefix):]
		e, ok := now.tree.Get(key)
		if !ok || e.revision != rec.Revision {
			e = newEntry(c.hub.forms, key, rec.Revision, rec.Value)
			s.other += int64(len(rec.Value)) + recordOverhead
		}
		s.tree.Set(key, e)
	}
	return s, nil
}

// gone returns the error of this package that an error of the backend means.
func gone(err error) error {
	var compacted *storage.CompactedError
	switch {
	case errors.As(err, &compacted):
		return &GoneError{compacted.Oldest}
	case errors.Is(err, storage.ErrCompacted):
		return ErrGone
	case errors.Is(err, storage.ErrClosed):
		return ErrClosed
	}
	return err
}

// pin keeps a state; the oldest ones make room.
func (c *Cache) pin(rev storage.Revision, s *snapshot) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.pins, func(p pin) bool { return p.revision == rev }) {
		return
	}
	c.pins = append(c.pins, pin{rev, s, c.replaced})
	c.forgetPins(now)
}

// forgetPins drops the states that are too old, too many or too large, but the
// newest one is for age alone to end; the caller holds the lock.
func (c *Cache) forgetPins(now time.Time) {
	o := &c.hub.options
	var bytes int64
	for _, p := range c.pins {
		bytes += p.other
	}
	oldest := c.log.Retained(now)
	c.pins = slices.DeleteFunc(c.pins, func(p pin) bool {
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

// page returns the objects from start on that m selects, limit at most, and how many
// objects it looked at.
func (s *snapshot) page(m *matcher, start string, limit int) (p Page, looked int) {
	if m.none {
		return p, 0
	}
	lo, hi := s.keyRange(m)
	whole := !m.selective() && m.Name == "" // the range is what is asked for
	if whole && limit <= 0 {
		p.Entries = s.all(max(lo, start), hi)
		return p, len(p.Entries)
	}
	s.tree.Ascend(max(lo, start), func(key string, e *Entry) bool {
		if hi != "" && key >= hi {
			return false
		}
		looked++
		if !whole && !m.matches(e) {
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
	return p, looked
}

// all returns the objects from lo up to hi; "" means no end.
func (s *snapshot) all(lo, hi string) []*Entry {
	n := max(0, s.end(hi)-s.rank(lo))
	entries := make([]*Entry, 0, n)
	s.tree.Ascend(lo, func(_ string, e *Entry) bool {
		if len(entries) == n {
			return false
		}
		entries = append(entries, e)
		return true
	})
	return entries
}

// keyRange returns the keys that can match: from lo up to, not including, hi; hi
// "" means no end.
func (s *snapshot) keyRange(m *matcher) (lo, hi string) {
	first, _, _ := s.tree.Min()
	switch {
	case m.Name != "" && (m.Namespace != "" || strings.HasPrefix(first, "/")):
		lo = m.Namespace + "/" + m.Name
		return lo, lo + "\x00"
	case m.Namespace != "":
		return m.Namespace + "/", m.Namespace + "0" // '0' follows '/'
	}
	return "", ""
}

// end returns how many keys come before hi; "" stands for the end.
func (s *snapshot) end(hi string) int {
	if hi == "" {
		return s.tree.Len()
	}
	return s.rank(hi)
}

// rank returns how many keys come before key.
func (s *snapshot) rank(key string) int {
	return sort.Search(s.tree.Len(), func(i int) bool {
		k, _, _ := s.tree.GetAt(i)
		return k >= key
	})
}
