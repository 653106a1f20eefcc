package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"

	"orch.io/controlplane/storage"
)

var _ storage.Importer = (*Store)(nil)

// Import implements storage.Importer. It uses one transaction, so an interrupted import leaves the
// store empty.
func (s *Store) Import(ctx context.Context, stamps map[string]string, oldest storage.Revision, records iter.Seq2[storage.Record, error]) error {
	if oldest < 0 || oldest == math.MaxInt64 {
		return fmt.Errorf("import: revision %d is out of range", oldest)
	}
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	in := &importing{store: s, oldest: oldest, newest: oldest, id: newID()}
	err = in.transact(inner, stamps, records)
	if errors.Is(err, errUnknown) {
		err = in.outcome(inner, err)
	}
	if err != nil && in.ended == nil {
		return s.callerError(ctx, err)
	}
	if err == nil {
		s.show(nil, mark{in.newest, in.id})
	}
	return err
}

// importing is the state of a running import.
type importing struct {
	store          *Store
	oldest, newest storage.Revision
	id             int64 // the ID of all imported commits
	ended          error // the error of the caller's records, which Import returns unchanged
}

func (in *importing) transact(ctx context.Context, stamps map[string]string, records iter.Seq2[storage.Record, error]) error {
	tx, err := in.store.commits.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	now, err := in.store.allowLong(ctx, tx)
	if err != nil {
		return err
	}
	if err := in.begin(ctx, tx, stamps); err != nil {
		return err
	}
	if err := in.add(ctx, tx, records); err != nil {
		return err
	}
	if err := in.finish(ctx, tx, now); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return nil
}

// begin fails if the store is not empty, and writes the stamps.
func (in *importing) begin(ctx context.Context, tx *sql.Tx, stamps map[string]string) error {
	st, err := in.store.lock(ctx, tx, nil)
	if err != nil {
		return err
	}
	if st.revision != 0 {
		return fmt.Errorf("import into %s: %w", in.store.where(), storage.ErrNotEmpty)
	}
	for name, value := range stamps {
		if _, err := tx.ExecContext(ctx, `INSERT INTO stamps VALUES ($1, $2) ON CONFLICT DO NOTHING`, name, value); err != nil {
			return err
		}
		var there string
		if err := tx.QueryRowContext(ctx, `SELECT value FROM stamps WHERE name = $1`, name).Scan(&there); err != nil {
			return err
		}
		if there != value {
			return fmt.Errorf("import into %s: %w: its stamp %q is %q, not %q", in.store.where(), storage.ErrNotEmpty, name, there, value)
		}
	}
	return nil
}

// add inserts the records in batches.
func (in *importing) add(ctx context.Context, tx *sql.Tx, records iter.Seq2[storage.Record, error]) error {
	var some []storage.Record
	bytes := 0
	for rec, err := range records {
		if err == nil {
			err = checkImported(rec)
		}
		if err != nil {
			in.ended = err
			return err
		}
		in.newest = max(in.newest, rec.Revision)
		some, bytes = append(some, rec), bytes+len(rec.Key)+len(rec.Value)
		if len(some) == longestPage || bytes >= pageBytes {
			if err := in.store.add(ctx, tx, some); err != nil {
				return err
			}
			some, bytes = some[:0], 0
		}
	}
	return in.store.add(ctx, tx, some)
}

func checkImported(rec storage.Record) error {
	switch {
	case len(rec.Key) > maxKey || len(rec.Key)+len(rec.Value) > maxBytes:
		return fmt.Errorf("import %.80q with %d bytes: %w", rec.Key, len(rec.Value), storage.ErrTooLarge)
	case rec.Revision <= 0 || rec.Revision == math.MaxInt64:
		return fmt.Errorf("import %.80q: revision %d is out of range", rec.Key, rec.Revision)
	}
	return nil
}

// finish removes the history before oldest and inserts the commits. All commits get the current time.
func (in *importing) finish(ctx context.Context, tx *sql.Tx, now int64) error {
	for _, statement := range compactStatements() {
		if _, err := tx.ExecContext(ctx, statement, int64(0), int64(in.oldest)); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO commits SELECT revision, CAST($1 AS BIGINT), CAST($2 AS BIGINT) FROM records WHERE revision > $3
		UNION SELECT CAST($4 AS BIGINT), CAST($1 AS BIGINT), CAST($2 AS BIGINT)`, now, in.id, int64(in.oldest), int64(in.newest))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE state SET revision = $1, floor = $2`, int64(in.newest), int64(in.oldest))
	return err
}

// outcome returns nil if the transaction was committed although the database did not answer, and
// unknown otherwise. The outcome of an import without records stays unknown.
func (in *importing) outcome(ctx context.Context, unknown error) error {
	var st state
	err := in.store.retry(ctx, func(ctx context.Context) (err error) {
		st, err = stateOf(ctx, in.store.dialect, in.store.reads, nil)
		return err
	})
	if err != nil || in.newest == 0 || st.revision != in.newest || st.floor != in.oldest {
		return unknown
	}
	return nil
}
