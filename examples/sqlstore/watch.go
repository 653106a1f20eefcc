package sqlstore

import (
	"context"
	"database/sql"
	"iter"
	"math"
	"time"

	"orch.io/controlplane/storage"
)

// announce wakes the watches.
func (s *Store) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.news)
	s.news = make(chan struct{})
}

// tidings returns what is closed at the next commit.
func (s *Store) tidings() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// look wakes the watches when another process has committed.
func (s *Store) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var seen storage.Revision
	for {
		select {
		case <-tick.C:
		case <-s.life.Done():
			return
		}
		if st, err := stateOf(s.life, s.reads); err == nil && st.revision > seen {
			seen = st.revision
			s.announce()
		}
	}
}

// Watch implements storage.Backend. A watch keeps nothing but the revision that it has
// come to, so a slow one costs no memory.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		for {
			news := s.tidings()
			seen, more := s.deliver(ctx, prefix, after, math.MaxInt64, yield)
			if !more {
				return
			}
			after = seen
			select {
			case <-news:
			case <-ctx.Done():
				return
			case <-s.life.Done():
				yield(nil, storage.ErrClosed)
				return
			}
		}
	}
}

// History implements storage.Historian.
func (s *Store) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) { s.deliver(ctx, prefix, after, last, yield) }
}

// deliver yields the commits after one revision up to another, and returns the revision
// that it came to. It reports false if the sequence ends.
func (s *Store) deliver(ctx context.Context, prefix string, after, last storage.Revision, yield func([]storage.Event, error) bool) (storage.Revision, bool) {
	for {
		events, seen, whole, err := s.events(ctx, prefix, after, last)
		if ctx.Err() != nil {
			return after, false
		}
		if err != nil {
			yield(nil, err)
			return after, false
		}
		for len(events) > 0 {
			n := 1
			for n < len(events) && events[n].Revision == events[0].Revision {
				n++
			}
			if !yield(events[:n:n], nil) {
				return after, false
			}
			events = events[n:]
		}
		if after = seen; whole {
			return after, true
		}
	}
}

// events returns the first events of whole commits after one revision and up to another,
// the revision up to which they are all that there are, and whether that is all for now.
func (s *Store) events(ctx context.Context, prefix string, after, last storage.Revision) (events []storage.Event, seen storage.Revision, whole bool, err error) {
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx, st state) error {
		if after < st.floor {
			return &storage.CompactedError{Oldest: st.floor}
		}
		seen = max(after, min(last, st.revision))
		rows, err := tx.QueryContext(ctx, `
			SELECT r.key, r.revision, r.deleted, r.value, p.revision, p.deleted, p.value
			FROM records AS r LEFT JOIN records AS p ON p.key = r.key
			AND p.revision = (SELECT max(revision) FROM records WHERE key = r.key AND revision < r.revision)
			WHERE r.revision > ? AND r.revision <= ? AND r.key >= ? AND (? IS NULL OR r.key < ?)
			ORDER BY r.revision, r.key LIMIT ?`, after, seen, []byte(prefix), end(prefix), end(prefix), page)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			e, err := eventOf(rows)
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		if whole = len(events) < page; !whole { // the last commit may have more events; a page is longer than a commit
			seen = events[page-1].Revision - 1
			for events[len(events)-1].Revision > seen {
				events = events[:len(events)-1]
			}
		}
		return rows.Err()
	})
	return events, seen, whole, err
}

func eventOf(rows *sql.Rows) (e storage.Event, err error) {
	var deleted, prevDeleted sql.NullBool
	var revision sql.NullInt64
	if err := rows.Scan(&e.Key, &e.Revision, &deleted, &e.Value, &revision, &prevDeleted, &e.Prev.Value); err != nil {
		return e, err
	}
	if !deleted.Bool {
		e.Value = present(e.Value)
	}
	if revision.Valid && !prevDeleted.Bool {
		e.Prev = storage.Record{Key: e.Key, Value: present(e.Prev.Value), Revision: storage.Revision(revision.Int64)}
	} else {
		e.Prev = storage.Record{}
	}
	return e, nil
}
