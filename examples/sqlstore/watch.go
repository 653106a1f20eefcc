package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"

	"orch.io/controlplane/storage"
)

// eventRows is the maximal number of events that one query returns. It is larger than the number of
// events of a commit.
const eventRows = 512

// announce wakes the watches if revision is newer than all announced revisions.
func (s *Store) announce(revision storage.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision > s.known {
		s.known = revision
		close(s.committed)
		s.committed = make(chan struct{})
	}
}

// correct lowers the newest announced revision if the database does not have it, so that later commits
// with these revisions wake the watches.
func (s *Store) correct(newest storage.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = min(s.known, newest)
}

// nextCommit returns a channel that is closed at the next commit.
func (s *Store) nextCommit() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committed
}

// poll wakes the watches after another process has committed.
func (s *Store) poll() {
	for wait(s.lifetime, s.pollInterval()) {
		_, _ = s.Revision(s.lifetime) // Revision calls announce
	}
}

// receive wakes the watches by the notifications of the database, if it has any.
func (s *Store) receive() {
	for {
		err := s.listen(s.lifetime, s.announce)
		if err == nil || s.lifetime.Err() != nil {
			return
		}
		s.logger.Warn("failed to receive notifications of commits; trying again", "error", err)
		if !wait(s.lifetime, longPauseTime) {
			return
		}
	}
}

// Watch implements storage.Backend. A watch holds only the revision that it has reached, so a slow
// consumer costs no memory. If the database does not answer, the watch waits and continues.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		for {
			news := s.nextCommit()
			seen, more, err := s.deliver(ctx, prefix, after, math.MaxInt64, yield)
			after = seen
			var silent *unansweredError
			switch {
			case ctx.Err() != nil || !more && err == nil:
				return
			case errors.As(err, &silent):
				s.logger.Warn("watch waits for the database", "prefix", prefix, "after", after, "error", err)
				continue
			case err != nil:
				yield(nil, err)
				return
			}
			select {
			case <-news:
			case <-ctx.Done():
				return
			case <-s.lifetime.Done():
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

// deliver yields the commits after one revision and up to another, and returns the revision that it
// reached. It reports false if the consumer has stopped.
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

// eventPage is the result of one query of a watch: all events up to a revision.
type eventPage struct {
	events []storage.Event
	seen   storage.Revision
	more   bool // whether there may be more
}

const eventQuery = `
	SELECT s.state, e.key, e.revision, e.deleted, e.value, e.old, e.absent, e.replaced FROM s LEFT JOIN
	(SELECT r.key, r.revision, r.deleted, r.value, p.revision AS old, p.deleted AS absent, p.value AS replaced
	FROM records AS r LEFT JOIN records AS p ON p.key = r.key
	AND p.revision = (SELECT max(revision) FROM records WHERE key = r.key AND revision < r.revision)
	WHERE r.revision > $1 AND r.revision <= $2 AND r.key >= $3 AND r.key < $4
	ORDER BY r.revision, r.key LIMIT $5) AS e ON true ORDER BY e.revision, e.key`

// events returns the first events after one revision and up to another. It returns only complete
// commits.
func (s *Store) events(ctx context.Context, prefix string, after, last storage.Revision) (p eventPage, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		p = eventPage{}
		seen, done, err := s.beginRead(ctx)
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
		size, first := 0, 0 // first is the index of the first event of the last commit, which may have more events
		for !p.more && rows.Next() {
			e, err := eventOf(rows, &text)
			if err != nil {
				return err
			}
			if e.Revision == 0 {
				break // the row has only the state
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
		e.Value = nonNil(value)
	}
	if old.Valid && !absent.Bool {
		e.Prev = storage.Record{Key: e.Key, Value: nonNil(replaced), Revision: storage.Revision(old.Int64)}
	}
	return e, nil
}
