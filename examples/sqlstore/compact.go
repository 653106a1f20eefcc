package sqlstore

import (
	"context"
	"time"

	"orch.io/controlplane/storage"
)

const (
	// compactStep is how many revisions one transaction forgets, so that others do not
	// wait long for it.
	compactStep = 2_000
	// forgetPart of Retain is how often history is forgotten.
	forgetPart = 64
)

// forget compacts, again and again, what has been replaced for longer than the store
// retains it. What fails, such as a disk that is full, is tried again at the next tick.
func (s *Store) forget() {
	for wait(s.life, max(s.retain/forgetPart, time.Millisecond)) {
		if err := s.forgetOld(s.life); err != nil && s.life.Err() == nil {
			s.logger.Warn("history was not forgotten", "error", err)
		}
	}
}

func (s *Store) forgetOld(ctx context.Context) error {
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

// oldestQuery is for the oldest revision that is retained, if that is what was replaced
// since a time: the state before the first commit after it. It looks at no more commits than
// it lets go, if time does not go back.
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
			return s.step(ctx, min(before, st.floor+compactStep))
		})
		if err != nil {
			return err
		}
	}
}

// step moves the floor to a revision, unless another process did. Only what commits up to it
// replaced can go, so nothing else is looked at.
func (s *Store) step(ctx context.Context, floor storage.Revision) error {
	tx, err := s.upkeep.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := s.turn(ctx, tx); err != nil {
		return err
	}
	st, err := stateOf(ctx, s.dialect, tx, nil)
	if err != nil || floor <= st.floor {
		return err
	}
	for _, statement := range append(forgotten(),
		`UPDATE state SET floor = $2 WHERE floor = $1`, // last, since commits wait for it
	) {
		if _, err := tx.ExecContext(ctx, statement, int64(st.floor), int64(floor)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// forgotten are the statements that delete what is not seen any more when the floor moves from
// one revision to another.
func forgotten() []string {
	return []string{
		`DELETE FROM records WHERE (key, revision) IN (
			SELECT o.key, o.revision FROM records AS n JOIN records AS o ON o.key = n.key AND o.revision < n.revision
			WHERE n.revision > $1 AND n.revision <= $2)`,
		`DELETE FROM records WHERE revision > $1 AND revision <= $2 AND deleted`,
		`DELETE FROM commits WHERE revision >= $1 AND revision < $2`,
	}
}
