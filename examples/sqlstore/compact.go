package sqlstore

import (
	"context"
	"time"

	"orch.io/controlplane/storage"
)

const (
	// compactStep is the number of revisions that one transaction compacts. Small steps keep the waits
	// of other transactions short.
	compactStep = 2_000
	// retainFraction determines the interval between two compactions: Retain divided by it.
	retainFraction = 64
)

// compactLoop compacts the history that is older than the retention, until the store is closed. If it
// fails, for example because the disk is full, it tries again at the next tick.
func (s *Store) compactLoop() {
	for wait(s.lifetime, max(s.retain/retainFraction, time.Millisecond)) {
		if err := s.compactOld(s.lifetime); err != nil && s.lifetime.Err() == nil {
			s.logger.Warn("failed to compact the history", "error", err)
		}
	}
}

func (s *Store) compactOld(ctx context.Context) error {
	var oldest storage.Revision
	err := s.call(ctx, func(ctx context.Context) (err error) {
		oldest, err = s.oldest(ctx, s.reads, s.retain)
		return err
	})
	if err != nil {
		return err
	}
	return s.Compact(ctx, oldest)
}

// oldestQuery returns a query for the oldest revision to retain if everything replaced since a time is
// retained: the revision before the first commit at or after that time. The query reads only the
// commits that are compacted then, unless the clock goes backwards.
func oldestQuery(since string) string {
	return `SELECT coalesce((SELECT revision - 1 FROM commits WHERE at >= ` + since + ` ORDER BY revision LIMIT 1),
		(SELECT revision FROM state))`
}

// Compact implements storage.Backend. It moves the floor in steps.
func (s *Store) Compact(ctx context.Context, before storage.Revision) error {
	for {
		var st state
		err := s.call(ctx, func(ctx context.Context) (err error) {
			st, err = stateOf(ctx, s.dialect, s.reads, nil)
			return err
		})
		switch {
		case err != nil:
			return err
		case before > st.revision:
			return storage.ErrFuture
		case before <= st.floor:
			return nil
		}
		err = s.call(ctx, func(ctx context.Context) error {
			return s.compactTo(ctx, min(before, st.floor+compactStep))
		})
		if err != nil {
			return err
		}
	}
}

// compactTo moves the floor to a revision, unless another process already has. Only records that
// commits up to the new floor replaced can be deleted, so it reads no others.
func (s *Store) compactTo(ctx context.Context, floor storage.Revision) error {
	tx, err := s.upkeep.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	if err := s.lockCompaction(ctx, tx); err != nil {
		return err
	}
	st, err := stateOf(ctx, s.dialect, tx, nil)
	if err != nil || floor <= st.floor {
		return err
	}
	for _, statement := range append(compactStatements(),
		`UPDATE state SET floor = $2 WHERE floor = $1`, // last, because it locks the row that commits need
	) {
		if _, err := tx.ExecContext(ctx, statement, int64(st.floor), int64(floor)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// compactStatements returns the statements that delete the rows that are no longer readable when the
// floor moves from $1 to $2.
func compactStatements() []string {
	return []string{
		`DELETE FROM records WHERE (key, revision) IN (
			SELECT o.key, o.revision FROM records AS n JOIN records AS o ON o.key = n.key AND o.revision < n.revision
			WHERE n.revision > $1 AND n.revision <= $2)`,
		`DELETE FROM records WHERE revision > $1 AND revision <= $2 AND deleted`,
		`DELETE FROM commits WHERE revision >= $1 AND revision < $2`,
	}
}
