package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"

	"orch.io/controlplane/storage"
)

// eventRows is how many events one query returns at most. It is more than a commit has.
const eventRows = 512

// announce wakes the watches if a revision is newer than all that were announced.
func (s *Store) announce(revision storage.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision > s.known {
		s.known = revision
		close(s.news)
		s.news = make(chan struct{})
	}
}

// correct takes back revisions that were announced and that the database does not have, so that the watches
// hear of the commits that get these revisions.
func (s *Store) correct(newest storage.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = min(s.known, newest)
}

// tidings returns what is closed at the next commit.
func (s *Store) tidings() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// look wakes the watches when another process has committed.
func (s *Store) look() {
	for wait(s.life, s.lookEvery()) {
		_, _ = s.Revision(s.life) // which announces it
	}
}

// hear does so at once where the database tells.
func (s *Store) hear() {
	for {
		err := s.listen(s.life, s.announce)
		if err == nil || s.life.Err() != nil {
			return
		}
		s.logger.Warn("the database does not tell of commits, trying again", "error", err)
		if !wait(s.life, longPauseTime) {
			return
		}
	}
}

// Watch implements storage.Backend. A watch keeps nothing but the revision that it has
// come to, so a slow one costs no memory, and one that the database does not answer goes on
// when it does.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		for {
			news := s.tidings()
			seen, more, err := s.deliver(ctx, prefix, after, math.MaxInt64, yield)
			after = seen
			var silent *unansweredError
			switch {
			case ctx.Err() != nil || !more && err == nil:
				return
			case errors.As(err, &silent):
				s.logger.Warn("a watch waits for the database", "prefix", prefix, "after", after, "error", err)
				continue
			case err != nil:
				yield(nil, err)
				return
			}
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

// History implements storage.HistoryReader.
func (s *Store) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		if _, _, err := s.deliver(ctx, prefix, after, last, yield); err != nil && ctx.Err() == nil {
			yield(nil, err)
		}
	}
}

// deliver yields the commits after one revision up to another, and returns the revision
// that it came to. It reports false if the consumer wants no more.
func (s *Store) deliver(ctx context.Context, prefix string, after, last storage.Revision, yield func([]storage.Event, error) bool) (storage.Revision, bool, error) {
	for {
		p, err := s.events(ctx, prefix, after, last)
		if err != nil {
			return after, true, err
		}
		for events := p.events; len(events) > 0; {
			n := 1
			for n < len(events) && events[n].Revision == events[0].Revision {
				n++
			}
			after = events[0].Revision
			if ctx.Err() != nil || !yield(events[:n:n], nil) {
				return after, false, nil
			}
			events = events[n:]
		}
		if after = p.seen; !p.more {
			return after, true, nil
		}
	}
}

// stretch is what one query of a watch returned: all events up to a revision.
type stretch struct {
	events []storage.Event
	seen   storage.Revision
	more   bool // there may be
}

const eventQuery = `
	SELECT s.state, e.key, e.revision, e.deleted, e.value, e.old, e.absent, e.replaced FROM s LEFT JOIN
	(SELECT r.key, r.revision, r.deleted, r.value, p.revision AS old, p.deleted AS absent, p.value AS replaced
	FROM records AS r LEFT JOIN records AS p ON p.key = r.key
	AND p.revision = (SELECT max(revision) FROM records WHERE key = r.key AND revision < r.revision)
	WHERE r.revision > $1 AND r.revision <= $2 AND r.key >= $3 AND r.key < $4
	ORDER BY r.revision, r.key LIMIT $5) AS e ON true ORDER BY e.revision, e.key`

// events returns the first events of whole commits after one revision and up to another.
func (s *Store) events(ctx context.Context, prefix string, after, last storage.Revision) (p stretch, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		p = stretch{}
		seen, done, err := s.reading(ctx)
		if err != nil {
			return err
		}
		defer done()
		statement, args := withState(s.dialect, seen, eventQuery, int64(after), int64(last), []byte(prefix), end(prefix), eventRows)
		rows, err := s.reads.QueryContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		var text string
		size, first := 0, 0 // first is that of the commit that may have more events
		for !p.more && rows.Next() {
			e, err := eventOf(rows, &text)
			if err != nil {
				return err
			}
			if e.Revision == 0 {
				break // there is nothing but the state
			}
			if n := len(p.events); n > 0 && p.events[n-1].Revision < e.Revision {
				first = n
			}
			p.events = append(p.events, e)
			size += len(e.Key) + len(e.Value) + len(e.Prev.Value)
			p.more = len(p.events) == eventRows || size >= pageBytes && first > 0
		}
		st, err := s.stateAfter(ctx, rows, seen, text)
		if err != nil {
			return err
		}
		if after < st.floor {
			return &storage.CompactedError{Oldest: st.floor}
		}
		if p.seen = max(after, min(last, st.revision)); p.more {
			p.seen, p.events = p.events[first].Revision-1, p.events[:first]
		}
		return nil
	})
	return p, err
}

func eventOf(rows *sql.Rows, state *string) (e storage.Event, err error) {
	var key, value, replaced []byte
	var deleted, absent sql.NullBool
	var revision, old sql.NullInt64
	if err := rows.Scan(state, &key, &revision, &deleted, &value, &old, &absent, &replaced); err != nil {
		return e, err
	}
	e.Key, e.Revision = string(key), storage.Revision(revision.Int64)
	if !deleted.Bool {
		e.Value = present(value)
	}
	if old.Valid && !absent.Bool {
		e.Prev = storage.Record{Key: e.Key, Value: present(replaced), Revision: storage.Revision(old.Int64)}
	}
	return e, nil
}
