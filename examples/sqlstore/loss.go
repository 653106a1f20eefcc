package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"orch.io/controlplane/storage"
)

// A database has lost commits if its newest revision is older than one that a store has committed,
// shown or heard of, as when a standby took over that did not have everything. The store that
// notices it notes that revision in the database. From then on no store commits anything to it, since
// the revisions of what was lost would be used again, and stores that were opened later know of the
// loss, too. The store that noticed it reads nothing any more, because its program has what is lost in
// its caches. Accept ends this.

// errNothingLost says that a database has lost nothing that anybody has noticed.
var errNothingLost = errors.New("no commits are known to be lost")

func (s *Store) lossError(lost storage.Revision) error {
	return &storage.UnavailableError{Kind: "the database has lost commits", Err: fmt.Errorf(
		"%s has lost commits: revision %d was there, and later the newest revision was an older one; stop all servers, "+
			"and go on with a database that has it, or with what is left after sqlstore.Accept", s.where(), lost)}
}

// whole fails if a state that was read is older than what was seen before that, and notes it in the
// database.
func (s *Store) whole(ctx context.Context, seen storage.Revision, st state) error {
	s.marked.Store(int64(st.lost))
	if st.revision >= seen {
		if lost := s.lost.Load(); lost != 0 {
			return s.lossError(storage.Revision(lost))
		}
		return nil
	}
	s.lost.CompareAndSwap(0, int64(seen))
	if st.lost < seen {
		if _, err := s.upkeep.ExecContext(ctx, markLost, int64(seen)); err != nil {
			s.logger.Warn("that commits are lost was not noted in the database", "error", err)
		} else {
			s.marked.Store(int64(seen))
		}
	}
	return s.lossError(seen)
}

const markLost = `UPDATE state SET lost = $1 WHERE lost < $1`

// wholeIn fails if no commits may be made to a state that a transaction holds.
func (s *Store) wholeIn(ctx context.Context, tx *sql.Tx, st state) error {
	seen := s.seen()
	switch {
	case st.revision < seen:
		s.lost.CompareAndSwap(0, int64(seen))
		_, err := tx.ExecContext(ctx, markLost, int64(seen))
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			s.logger.Warn("that commits are lost was not noted in the database", "error", err)
		}
		return s.lossError(seen)
	case st.lost != 0:
		s.marked.Store(int64(st.lost))
		return s.lossError(st.lost)
	case s.lost.Load() != 0:
		return s.lossError(storage.Revision(s.lost.Load()))
	}
	return nil
}

// Check implements storage.Checker. It fails while the database is known to have lost commits, and for
// a store that noticed it until that is closed.
func (s *Store) Check(ctx context.Context) error {
	if _, err := s.Revision(ctx); err != nil {
		return err
	}
	if lost := s.marked.Load(); lost != 0 {
		return s.lossError(storage.Revision(lost))
	}
	return nil
}

// Accept makes a database that has lost commits take new ones, beginning with what is left. It returns the
// revision at which they begin. No revision that was lost is used again, and clients that saw any of them
// list anew. All servers over the database must be stopped, and are started afterwards.
func Accept(ctx context.Context, o Options) (_ storage.Revision, err error) {
	d, err := o.dialect()
	if err != nil {
		return 0, fmt.Errorf("accept a loss: %w", err)
	}
	p, err := d.open(ctx)
	defer func() {
		if err = errors.Join(err, p.close()); err != nil {
			err = fmt.Errorf("accept a loss in %s: %w", d.where(), err)
		}
	}()
	if err != nil {
		return 0, err
	}
	tx, err := p.commits.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	st, err := d.lock(ctx, tx)
	if err != nil {
		return 0, err
	}
	if st.lost == 0 {
		return 0, errNothingLost
	}
	begin := max(st.revision, st.lost) + 1
	for _, statement := range forgotten() {
		if _, err := tx.ExecContext(ctx, statement, int64(st.floor), int64(begin)); err != nil {
			return 0, err
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE state SET revision = $1, floor = $1, lost = 0`, int64(begin)); err != nil {
		return 0, err
	}
	return begin, tx.Commit()
}
