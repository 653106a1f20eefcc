package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"iter"
	"math"

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

// state is the one row of the table of that name.
type state struct {
	revision, floor storage.Revision
	lost            storage.Revision // that was there and is not, 0 if nothing is; only stateOf and lock read it
}

// querier is a transaction, or a database.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func stateOf(ctx context.Context, q querier) (st state, err error) {
	err = q.QueryRowContext(ctx, `SELECT revision, floor, lost FROM state`).Scan(&st.revision, &st.floor, &st.lost)
	return st, err
}

// shown notes the newest revision of a state before a caller sees anything of it, and returns it.
func (s *Store) shown(st state) storage.Revision {
	s.announce(st.revision)
	return st.revision
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
		st, err := stateOf(ctx, s.reads)
		if err == nil {
			err = s.whole(ctx, seen, st)
		}
		if err != nil {
			return err
		}
		q.revision = s.shown(st)
		return nil
	})
	close(q.asked)
}

// Get implements storage.Backend.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	var rec storage.Record
	err := s.call(ctx, func(ctx context.Context) (err error) {
		var st state
		if st, rec, err = recordOf(ctx, s.reads, key, upTo(at)); err != nil {
			return err
		}
		s.shown(st)
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
func recordOf(ctx context.Context, q querier, key string, at storage.Revision) (st state, rec storage.Record, err error) {
	var revision sql.NullInt64
	var deleted sql.NullBool
	var value []byte
	err = q.QueryRowContext(ctx, `
		SELECT s.revision, s.floor, r.revision, r.deleted, r.value FROM state AS s LEFT JOIN
		(SELECT revision, deleted, value FROM records WHERE key = $1 AND revision <= $2 ORDER BY revision DESC LIMIT 1) AS r
		ON true`, []byte(key), int64(at)).Scan(&st.revision, &st.floor, &revision, &deleted, &value)
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
	SELECT s.revision, s.floor, r.key, r.revision, r.value FROM state AS s LEFT JOIN
	(SELECT key, revision, value FROM records AS o WHERE key >= $1 AND key < $2 AND NOT deleted
	AND revision = (SELECT max(revision) FROM records WHERE key = o.key AND revision <= $3)
	ORDER BY key LIMIT $4) AS r ON true ORDER BY r.key`

// page returns the next records under prefix from start on.
func (s *Store) page(ctx context.Context, prefix, start string, at storage.Revision, limit int) (p page, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		p = page{}
		rows, err := s.reads.QueryContext(ctx, pageQuery, []byte(start), end(prefix), int64(upTo(at)), limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		var st state
		for !p.more && rows.Next() {
			var r storage.Record
			var revision sql.NullInt64
			var key []byte
			if err := rows.Scan(&st.revision, &st.floor, &key, &revision, &r.Value); err != nil {
				return err
			}
			if !revision.Valid {
				break // there is nothing but the state
			}
			r.Key, r.Revision, r.Value = string(key), storage.Revision(revision.Int64), present(r.Value)
			p.records, p.bytes = append(p.records, r), p.bytes+len(r.Key)+len(r.Value)
			p.more = len(p.records) == limit || p.bytes >= pageBytes
		}
		if err := rows.Err(); err != nil {
			return err
		}
		s.shown(st)
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
