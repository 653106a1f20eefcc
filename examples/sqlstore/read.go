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

// The size of the result of one query, in bytes (approximately) and rows. The size of the records is
// known only after the first page, so the first page of a scan is short.
const (
	pageBytes   = 4 << 20
	firstPage   = 64
	longestPage = 8192
	pageGrowth  = 8
)

// state is the row of the table state, with related values that are read in the same statement.
type state struct {
	revision, floor storage.Revision
	lost            storage.Revision // at least the newest lost revision, 0 if nothing is known to be lost
	history         int64            // a random ID, changed by each Accept
	id              int64            // the ID of the commit at revision
	gone            storage.Revision // the oldest revision of the given marks with a missing commit, or 0
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

// withState extends a query whose first column is s.state, the text that state.parse reads, to a
// statement. It returns the statement and its arguments. The state is one column because that is
// cheaper than six, since it is repeated in each row.
func withState(d dialect, seen marks, query string, args ...any) (statement string, all []any) {
	gone, more := d.gone(seen, len(args)+1)
	return `WITH s AS MATERIALIZED (SELECT concat_ws(' ', s.revision, s.floor, s.lost, s.history,
		coalesce((SELECT id FROM commits WHERE revision = s.revision), 0), coalesce((` + gone + `), 0)) AS state FROM state AS s) ` + query, append(args, more...)
}

// querier is a transaction or a database.
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

// resolve returns the revision that a read at a requested revision returns.
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

// upTo returns the upper limit of the revisions that a statement reads: at, or no limit if at is 0,
// because a statement sees nothing newer than the state that it reads.
func upTo(at storage.Revision) storage.Revision {
	if at == 0 {
		return math.MaxInt64
	}
	return at
}

// revisionQuery is a query for the newest revision, shared by all callers that arrive before it
// begins. So its result is never older than a call.
type revisionQuery struct {
	done     chan struct{} // closed after revision and err are set
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
	q := s.joinQuery()
	select {
	case <-q.done:
		return q.revision, s.callerError(ctx, q.err)
	case <-inner.Done():
		return 0, s.callerError(ctx, inner.Err())
	}
}

// joinQuery returns the next query, which has not begun, and starts it if necessary.
func (s *Store) joinQuery() *revisionQuery {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		q := &revisionQuery{done: make(chan struct{})}
		s.next = q
		s.background.Go(func() { s.runQuery(q) })
	}
	return s.next
}

func (s *Store) runQuery(q *revisionQuery) {
	s.queryMu.Lock()
	defer s.queryMu.Unlock()
	s.mu.Lock()
	s.next = nil // a caller that arrives from now on may need a newer result
	s.mu.Unlock()
	q.err = s.retry(s.lifetime, func(ctx context.Context) error {
		seen := s.seen()
		st, err := stateOf(ctx, s.dialect, s.reads, seen)
		if err == nil {
			err = s.checkRead(ctx, seen, st)
		}
		if err != nil {
			return err
		}
		s.correct(st.revision)
		q.revision = st.revision
		return nil
	})
	close(q.done)
}

// beginRead waits until fewer than maxReaders reads are running, and returns the marks that the next
// read must find. The read then has a connection at once. If it waited for a connection with its marks,
// it would not confirm the commits that are shown meanwhile, and each waiting read could add a mark.
// The caller calls done after the read.
func (s *Store) beginRead(ctx context.Context) (seen marks, done func(), err error) {
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
		seen, done, err := s.beginRead(ctx)
		if err != nil {
			return err
		}
		defer done()
		var st state
		if st, rec, err = recordOf(ctx, s.dialect, s.reads, seen, key, upTo(at)); err != nil {
			return err
		}
		if err := s.checkRead(ctx, seen, st); err != nil {
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

// recordOf returns the record of a key as of a revision, or the zero Record if the key does not exist,
// and the state that was read with it.
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
		rec = storage.Record{Key: key, Value: nonNil(value), Revision: storage.Revision(revision.Int64)}
	}
	return st, rec, err
}

// nonNil returns the value of an existing record: SQLite returns an empty value as nil.
func nonNil(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// Scan implements storage.Backend. It reads in pages, so that a slow caller does not keep a transaction
// open.
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

// page is the result of one query of a scan.
type page struct {
	records []storage.Record
	bytes   int
	more    bool             // whether there may be more
	shown   storage.Revision // the revision that was read
}

const pageQuery = `
	SELECT s.state, r.key, r.revision, r.value FROM s LEFT JOIN
	(SELECT key, revision, value FROM records AS o WHERE key >= $1 AND key < $2 AND NOT deleted
	AND revision = (SELECT max(revision) FROM records WHERE key = o.key AND revision <= $3)
	ORDER BY key LIMIT $4) AS r ON true ORDER BY r.key`

// stateAfter closes rows and returns the state in text, if it contains the marks in seen.
func (s *Store) stateAfter(ctx context.Context, rows *sql.Rows, seen marks, text string) (st state, err error) {
	if err := rows.Err(); err != nil {
		return st, err
	}
	_ = rows.Close() // checkRead may need its connection
	if err := st.parse(text); err != nil {
		return st, err
	}
	return st, s.checkRead(ctx, seen, st)
}

// page returns the next records with the prefix, from start on.
func (s *Store) page(ctx context.Context, prefix, start string, at storage.Revision, limit int) (p page, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		p = page{}
		seen, done, err := s.beginRead(ctx)
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
				break // the row has only the state
			}
			r.Key, r.Revision, r.Value = string(key), storage.Revision(revision.Int64), nonNil(r.Value)
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

// end returns the upper limit of the keys with the prefix.
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
