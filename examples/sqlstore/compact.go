package sqlstore

import (
	"context"
	"time"

	"orch.io/controlplane/storage"
)

// compactStep is how many revisions one transaction forgets, so that commits do not
// wait long for it.
const compactStep = 2_000

// forget compacts, again and again, what has been replaced for longer than the store
// retains it. What fails, such as a disk that is full, is tried again at the next tick.
func (s *Store) forget() {
	tick := time.NewTicker(max(s.retain/forgetPart, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.forgetOld(time.Now())
		case <-s.life.Done():
			return
		}
	}
}

func (s *Store) forgetOld(now time.Time) error {
	oldest, err := s.oldest(now)
	if err != nil {
		return err
	}
	return s.compact(s.life, oldest)
}

// oldest returns the oldest revision whose state is retained: the newest one that was
// committed so long ago, since it is the state from then on.
func (s *Store) oldest(now time.Time) (oldest storage.Revision, err error) {
	err = s.reads.QueryRowContext(s.life, `
		SELECT coalesce((SELECT revision FROM commits WHERE at < ? ORDER BY revision DESC LIMIT 1), 0)`,
		now.Add(-s.retain).UnixNano()).Scan(&oldest)
	return oldest, err
}

// Compact implements storage.Backend.
func (s *Store) Compact(ctx context.Context, before storage.Revision) error {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return s.told(ctx, s.compact(inner, before))
}

// compact moves the floor in steps up to a revision.
func (s *Store) compact(ctx context.Context, before storage.Revision) error {
	for {
		st, err := stateOf(ctx, s.reads)
		switch {
		case err != nil:
			return err
		case before > st.revision:
			return storage.ErrFuture
		case before <= st.floor:
			return nil
		}
		if err := s.step(ctx, min(before, st.floor+compactStep)); err != nil {
			return err
		}
	}
}

// step moves the floor to a revision. Only what commits up to it replaced can go, so
// nothing else is looked at.
func (s *Store) step(ctx context.Context, floor storage.Revision) error {
	tx, err := s.writes.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	st, err := stateOf(ctx, tx)
	if err != nil || floor <= st.floor {
		return err
	}
	for _, statement := range []string{
		`DELETE FROM records WHERE rowid IN (
			SELECT o.rowid FROM records AS n JOIN records AS o ON o.key = n.key AND o.revision < n.revision
			WHERE n.revision > ?1 AND n.revision <= ?2)`,
		`DELETE FROM records WHERE revision > ?1 AND revision <= ?2 AND deleted`,
		`DELETE FROM commits WHERE revision >= ?1 AND revision < ?2`,
		`UPDATE state SET floor = ?2 WHERE floor = ?1`,
	} {
		if _, err := tx.ExecContext(ctx, statement, st.floor, floor); err != nil {
			return err
		}
	}
	return tx.Commit()
}
