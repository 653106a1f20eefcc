package memstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/storage"
)

// Import implements storage.Importer. The store stays empty until Import succeeds.
func (s *Store) Import(ctx context.Context, stamps map[string]string, oldest storage.Revision, records iter.Seq2[storage.Record, error]) error {
	if err := s.checkEmpty(stamps); err != nil {
		return err
	}
	n := &imported{base: make(map[string]storage.Record), newest: oldest}
	for rec, err := range records {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		n.add(rec, oldest)
	}
	tree, events := n.replay()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkEmptyLocked(stamps); err != nil {
		return err
	}
	maps.Copy(s.stamps, stamps)
	s.tree, s.revision, s.newest = tree, n.newest, nil
	s.log.Begin(oldest)
	if len(events) > 0 {
		s.log.Append(time.Now(), events...)
	}
	return nil
}

// checkEmpty returns an error if the store cannot be the target of an import with stamps.
func (s *Store) checkEmpty(stamps map[string]string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.checkEmptyLocked(stamps)
}

// checkEmptyLocked is checkEmpty for a caller that holds s.mu.
func (s *Store) checkEmptyLocked(stamps map[string]string) error {
	switch {
	case s.closed:
		return storage.ErrClosed
	case s.revision != 0:
		return storage.ErrNotEmpty
	}
	for name, value := range stamps {
		if have, ok := s.stamps[name]; ok && have != value {
			return fmt.Errorf("%w: stamp %q has the value %q instead of %q", storage.ErrNotEmpty, name, have, value)
		}
	}
	return nil
}

// imported collects the records of an import.
type imported struct {
	base   map[string]storage.Record // newest record of each key at the start of the history; nil Value: deleted
	later  []storage.Record          // records after the start of the history, unsorted
	newest storage.Revision          // largest revision
}

// add adds a record to an import with a history that begins at oldest.
func (n *imported) add(rec storage.Record, oldest storage.Revision) {
	n.newest = max(n.newest, rec.Revision)
	switch {
	case rec.Revision > oldest:
		n.later = append(n.later, rec)
	case rec.Revision > n.base[rec.Key].Revision:
		n.base[rec.Key] = rec
	}
}

// replay applies the later records to the base. It returns the newest records and the events of the
// history in revision order.
func (n *imported) replay() (*tree, []storage.Event) {
	t := new(tree)
	for _, key := range slices.Sorted(maps.Keys(n.base)) {
		if rec := n.base[key]; rec.Value != nil {
			t.Load(key, rec)
		}
	}
	slices.SortFunc(n.later, func(a, b storage.Record) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), strings.Compare(a.Key, b.Key))
	})
	n.later = slices.CompactFunc(n.later, func(a, b storage.Record) bool { return a.Revision == b.Revision && a.Key == b.Key })
	events := make([]storage.Event, 0, len(n.later))
	for _, rec := range n.later {
		prev, _ := t.Get(rec.Key)
		if rec.Value == nil {
			t.Delete(rec.Key)
		} else {
			t.Set(rec.Key, rec)
		}
		events = append(events, storage.Event{Record: rec, Prev: prev})
	}
	return t, events
}

var (
	_ storage.Importer    = (*Store)(nil)
	_ storage.StampReader = (*Store)(nil)
)

// Stamps implements storage.StampReader.
func (s *Store) Stamps(ctx context.Context) (map[string]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, storage.ErrClosed
	}
	return maps.Clone(s.stamps), nil
}
