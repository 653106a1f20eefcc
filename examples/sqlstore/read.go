package sqlstore

import (
	"context"
	"database/sql"
	"iter"

	"orch.io/controlplane/storage"
)

// page is how many records are read in one transaction.
const page = 512

// state is the one row of the table of that name.
type state struct{ revision, floor storage.Revision }

// querier is a transaction, or a database.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func stateOf(ctx context.Context, q querier) (st state, err error) {
	err = q.QueryRowContext(ctx, `SELECT revision, floor FROM state`).Scan(&st.revision, &st.floor)
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

// read calls f in a transaction that sees one revision, and makes of its error what
// the contract calls it.
func (s *Store) read(ctx context.Context, f func(ctx context.Context, tx *sql.Tx, st state) error) error {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return s.told(ctx, func() error {
		tx, err := s.reads.BeginTx(inner, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // there is nothing to commit
		st, err := stateOf(inner, tx)
		if err != nil {
			return err
		}
		return f(inner, tx, st)
	}())
}

// Revision implements storage.Backend.
func (s *Store) Revision(ctx context.Context) (storage.Revision, error) {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	st, err := stateOf(inner, s.reads)
	return st.revision, s.told(ctx, err)
}

// Get implements storage.Backend.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (rec storage.Record, err error) {
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx, st state) error {
		at, err := st.resolve(at)
		if err != nil {
			return err
		}
		if rec, err = recordOf(ctx, tx, key, at); err == nil && rec.Value == nil {
			err = storage.ErrNotFound
		}
		return err
	})
	if err != nil {
		return storage.Record{}, err
	}
	return rec, nil
}

// recordOf returns the record of a key at a revision, the zero Record if there is none.
func recordOf(ctx context.Context, q querier, key string, at storage.Revision) (storage.Record, error) {
	rec, deleted := storage.Record{Key: key}, false
	err := q.QueryRowContext(ctx, `
		SELECT revision, deleted, value FROM records
		WHERE key = ? AND revision <= ? ORDER BY revision DESC LIMIT 1`, []byte(key), at).
		Scan(&rec.Revision, &deleted, &rec.Value)
	if err == sql.ErrNoRows || err == nil && deleted {
		return storage.Record{}, nil
	}
	rec.Value = present(rec.Value)
	return rec, err
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
	first, shown, err := s.page(ctx, prefix, max(start, prefix), at)
	if err != nil {
		return 0, nil, err
	}
	return shown, func(yield func(storage.Record, error) bool) {
		for records := first; ; {
			for _, r := range records {
				if err := ctx.Err(); err != nil {
					yield(storage.Record{}, err)
					return
				}
				if !yield(r, nil) {
					return
				}
			}
			if len(records) < page {
				return
			}
			var err error
			if records, _, err = s.page(ctx, prefix, records[page-1].Key+"\x00", shown); err != nil {
				yield(storage.Record{}, err)
				return
			}
		}
	}, nil
}

// page returns the next records under prefix from start on, and the revision that they
// show.
func (s *Store) page(ctx context.Context, prefix, start string, at storage.Revision) (records []storage.Record, shown storage.Revision, err error) {
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx, st state) (err error) {
		if shown, err = st.resolve(at); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, `
			SELECT key, revision, value FROM records AS r
			WHERE key >= ? AND (? IS NULL OR key < ?) AND NOT deleted
			AND revision = (SELECT max(revision) FROM records WHERE key = r.key AND revision <= ?)
			ORDER BY key LIMIT ?`, []byte(start), end(prefix), end(prefix), shown, page)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r storage.Record
			if err := rows.Scan(&r.Key, &r.Revision, &r.Value); err != nil {
				return err
			}
			r.Value = present(r.Value)
			records = append(records, r)
		}
		return rows.Err()
	})
	return records, shown, err
}

// end returns the first key after all that begin with prefix; nil if there is none.
func end(prefix string) any {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return b[:i+1]
		}
	}
	return nil
}
