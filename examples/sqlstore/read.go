package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"iter"
	"math"
	"strconv"
	"strings"

	"orch.io/controlplane/storage"
)

// How many bytes one query returns about, and how many rows. How large the records are is
// known only when some are there, so the first page of a scan is short.
const (
	pageBytes   = 4 << 20
	firstPage   = 64
	longestPage = 8192
	pageGrowth  = 8
)

// state is the row of the table state, and what one statement reads beside it.
type state struct {
	revision, floor storage.Revision
	lost            storage.Revision // at least the newest lost revision, 0 if nothing is known to be lost
	history         int64            // changed by each Accept
	id              int64            // of the commit at revision
	gone            storage.Revision // the oldest revision of the marks given whose commit is missing, 0 if there is none
}

// parse sets the state to the text of withState.
func (st *state) parse(text string) error {
	var n [6]int64
	for i := range n {
		var field string
		var err error
		field, text, _ = strings.Cut(text, " ")
		if n[i], err = strconv.ParseInt(field, 10, 64); err != nil {
			return err
		}
	}
	*st = state{storage.Revision(n[0]), storage.Revision(n[1]), storage.Revision(n[2]), n[3], n[4], storage.Revision(n[5])}
	return nil
}

// withState makes a statement of a query whose first column is s.state, the text that state.parse reads. The
// statement gets the arguments of the query and then those that withState returns. One column is cheaper than
// six, because it comes with each row.
func withState(d dialect, seen marks, query string, args ...any) (statement string, all []any) {
	gone, more := d.gone(seen, len(args)+1)
	return `WITH s AS MATERIALIZED (SELECT concat_ws(' ', s.revision, s.floor, s.lost, s.history,
		coalesce((SELECT id FROM commits WHERE revision = s.revision), 0), coalesce((` + gone + `), 0)) AS state FROM state AS s) ` + query, append(args, more...)
}

// querier is a transaction, or a database.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func stateOf(ctx context.Context, d dialect, q querier, seen marks) (st state, err error) {
	var text string
	statement, args := withState(d, seen, `SELECT s.state FROM s`)
	if err = q.QueryRowContext(ctx, statement, args...).Scan(&text); err == nil {
		err = st.parse(text)
	}
	return st, err
}

// resolve returns the revision that a read at a revision shows.
func (st state) resolve(at storage.Revision) (storage.Revision, error) {
	switch {
	case at == 0:
		return st.revision, nil
	case at > st.revision:
		return 0, storage.ErrFuture
	case at < st.floor:
		return 0, &storage.CompactedError{Oldest: st.floor}
	}
	return at, nil
}

// upTo is the revision up to which a statement looks that reads at a revision: it sees
// nothing newer than the state that it reads itself.
func upTo(at storage.Revision) storage.Revision {
	if at == 0 {
		return math.MaxInt64
	}
	return at
}

// question is one query for the newest revision, for all who ask before it begins. What it
// returns is never older than their asking.
type question struct {
	asked    chan struct{} // closed when there is an answer
	revision storage.Revision
	err      error
}

// Revision implements storage.Backend.
func (s *Store) Revision(ctx context.Context) (storage.Revision, error) {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	q := s.join()
	select {
	case <-q.asked:
		return q.revision, s.told(ctx, q.err)
	case <-inner.Done():
		return 0, s.told(ctx, inner.Err())
	}
}

// join returns the question that is asked next.
func (s *Store) join() *question {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		q := &question{asked: make(chan struct{})}
		s.next = q
		s.done.Go(func() { s.ask(q) })
	}
	return s.next
}

func (s *Store) ask(q *question) {
	s.asking.Lock()
	defer s.asking.Unlock()
	s.mu.Lock()
	s.next = nil // whoever comes now may be later than the query
	s.mu.Unlock()
	q.err = s.again(s.life, func(ctx context.Context) error {
		seen := s.seen()
		st, err := stateOf(ctx, s.dialect, s.reads, seen)
		if err == nil {
			err = s.whole(ctx, seen, st)
		}
		if err != nil {
			return err
		}
		s.correct(st.revision)
		q.revision = st.revision
		return nil
	})
	close(q.asked)
}

// reading waits until the store makes fewer than maxReaders reads and returns the marks that the next one must
// find. The read then has a connection at once. If it waited with its marks, it would not find the commits that
// are shown meanwhile, and each waiting read could add a mark. The caller calls done after the read.
func (s *Store) reading(ctx context.Context) (seen marks, done func(), err error) {
	select {
	case s.readers <- struct{}{}:
		return s.seen(), func() { <-s.readers }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// Get implements storage.Backend.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	var rec storage.Record
	err := s.call(ctx, func(ctx context.Context) (err error) {
		seen, done, err := s.reading(ctx)
		if err != nil {
			return err
		}
		defer done()
		var st state
		if st, rec, err = recordOf(ctx, s.dialect, s.reads, seen, key, upTo(at)); err != nil {
			return err
		}
		if err := s.whole(ctx, seen, st); err != nil {
			return err
		}
		if _, err = st.resolve(at); err == nil && rec.Value == nil {
			err = storage.ErrNotFound
		}
		return err
	})
	if err != nil {
		return storage.Record{}, err
	}
	return rec, nil
}

// recordOf returns the record of a key at a revision, the zero Record if there is none,
// and the state that belongs to it.
func recordOf(ctx context.Context, d dialect, q querier, seen marks, key string, at storage.Revision) (st state, rec storage.Record, err error) {
	var revision sql.NullInt64
	var deleted sql.NullBool
	var value []byte
	var text string
	statement, args := withState(d, seen, `
		SELECT s.state, r.revision, r.deleted, r.value FROM s LEFT JOIN
		(SELECT revision, deleted, value FROM records WHERE key = $1 AND revision <= $2 ORDER BY revision DESC LIMIT 1) AS r
		ON true`, []byte(key), int64(at))
	if err = q.QueryRowContext(ctx, statement, args...).Scan(&text, &revision, &deleted, &value); err == nil {
		err = st.parse(text)
	}
	if err == nil && revision.Valid && !deleted.Bool {
		rec = storage.Record{Key: key, Value: present(value), Revision: storage.Revision(revision.Int64)}
	}
	return st, rec, err
}

// present is a value that is there: SQLite gives an empty one back as nil.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// Scan implements storage.Backend. It reads in pages, so that a slow caller holds no
// transaction open.
func (s *Store) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	first, err := s.page(ctx, prefix, max(start, prefix), at, firstPage)
	if err != nil {
		return 0, nil, err
	}
	return first.shown, func(yield func(storage.Record, error) bool) {
		for p := first; ; {
			for _, r := range p.records {
				if err := ctx.Err(); err != nil {
					yield(storage.Record{}, err)
					return
				}
				if !yield(r, nil) {
					return
				}
			}
			if !p.more {
				return
			}
			n := len(p.records)
			limit := max(1, min(n*pageBytes/max(1, p.bytes), n*pageGrowth, longestPage))
			var err error
			if p, err = s.page(ctx, prefix, p.records[n-1].Key+"\x00", first.shown, limit); err != nil {
				yield(storage.Record{}, err)
				return
			}
		}
	}, nil
}

// page is what one query of a scan returned.
type page struct {
	records []storage.Record
	bytes   int
	more    bool             // there may be
	shown   storage.Revision // that the records belong to
}

const pageQuery = `
	SELECT s.state, r.key, r.revision, r.value FROM s LEFT JOIN
	(SELECT key, revision, value FROM records AS o WHERE key >= $1 AND key < $2 AND NOT deleted
	AND revision = (SELECT max(revision) FROM records WHERE key = o.key AND revision <= $3)
	ORDER BY key LIMIT $4) AS r ON true ORDER BY r.key`

// stateAfter ends the reading of rows and returns their state, which text has, if it contains the marks in seen.
func (s *Store) stateAfter(ctx context.Context, rows *sql.Rows, seen marks, text string) (st state, err error) {
	if err := rows.Err(); err != nil {
		return st, err
	}
	_ = rows.Close() // its connection may be the one that whole needs
	if err := st.parse(text); err != nil {
		return st, err
	}
	return st, s.whole(ctx, seen, st)
}

// page returns the next records under prefix from start on.
func (s *Store) page(ctx context.Context, prefix, start string, at storage.Revision, limit int) (p page, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		p = page{}
		seen, done, err := s.reading(ctx)
		if err != nil {
			return err
		}
		defer done()
		statement, args := withState(s.dialect, seen, pageQuery, []byte(start), end(prefix), int64(upTo(at)), limit)
		rows, err := s.reads.QueryContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		var text string
		for !p.more && rows.Next() {
			var r storage.Record
			var revision sql.NullInt64
			var key []byte
			if err := rows.Scan(&text, &key, &revision, &r.Value); err != nil {
				return err
			}
			if !revision.Valid {
				break // there is nothing but the state
			}
			r.Key, r.Revision, r.Value = string(key), storage.Revision(revision.Int64), present(r.Value)
			p.records, p.bytes = append(p.records, r), p.bytes+len(r.Key)+len(r.Value)
			p.more = len(p.records) == limit || p.bytes >= pageBytes
		}
		st, err := s.stateAfter(ctx, rows, seen, text)
		if err != nil {
			return err
		}
		p.shown, err = st.resolve(at)
		return err
	})
	return p, err
}

// end returns what is after all keys that begin with prefix.
func end(prefix string) []byte {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return b[:i+1]
		}
	}
	return bytes.Repeat([]byte{0xff}, maxKey+1)
}
