package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"orch.io/controlplane/storage"
)

// A database can lose commits: a standby that lacks the newest commits takes over, or an older copy of the
// database is restored. Revisions alone do not show that, because the next commits get the lost revisions
// again. Therefore each commit has a random id, and a store compares the ids of the commits that it has made
// or shown (Store.shown) with those in the database, in the same statement by which it reads or commits.
//
// A store that misses a commit writes the newest revision that it knows to state.lost. From then on every
// store refuses commits, including stores that are opened later. The store that missed a commit also refuses
// reads, because its server has the lost state in its caches. Accept ends this.
//
// Ids are deleted with the history. A store that reads nothing until its newest revision is compacted cannot
// compare it any more; its watches end with ErrCompacted, and its server lists again.

// mark identifies a commit. Its ID is 0 if an earlier version of this package made the commit.
type mark struct {
	revision storage.Revision
	id       int64
}

// marks are the newest commits that a store has made or shown. There are several if statements ran
// concurrently, because none of them saw the results of the others.
type marks []mark

func (m marks) newest() (newest storage.Revision) {
	for _, k := range m {
		newest = max(newest, k.revision)
	}
	return newest
}

// text returns the marks that have an id as a JSON array of [revision, id].
func (m marks) text() string {
	pairs := make([][2]int64, 0, len(m))
	for _, k := range m {
		if k.id != 0 {
			pairs = append(pairs, [2]int64{int64(k.revision), k.id})
		}
	}
	text, _ := json.Marshal(pairs) // integers cannot fail
	return string(text)
}

// newID returns a random id for a commit or a history.
func newID() int64 { return 1 + rand.Int64N(math.MaxInt64-1) }

// begin reads the ID of the history that the store belongs to.
func (s *Store) begin(ctx context.Context) error {
	st, err := stateOf(ctx, s.dialect, s.reads, nil)
	s.history = st.history
	return err
}

// seen returns the marks that the next statement must find in the database. The caller does not change them.
func (s *Store) seen() marks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// show records that a caller gets a state that contains the marks in seen, and wakes the watches.
func (s *Store) show(seen marks, newest mark) {
	s.mu.Lock()
	rest := slices.DeleteFunc(slices.Clone(s.shown), func(k mark) bool { return k == newest || slices.Contains(seen, k) })
	s.shown = append(rest, newest)
	s.mu.Unlock()
	s.announce(newest.revision)
}

// loss is the reason for which a store refuses all calls until it is closed.
type loss struct {
	revision storage.Revision // of a commit that the store made or showed and that is missing; 0: Accept was called
	err      error
}

func (s *Store) lossError(lost storage.Revision) error {
	return &storage.UnavailableError{Kind: "the database has lost commits", Err: fmt.Errorf(
		"%s lost commits: the commit at revision %d is missing; stop all servers, and start them with a database that has the commit "+
			"or after sqlstore.Accept", s.where(), lost)}
}

func (s *Store) replacedError() error {
	return &storage.UnavailableError{Kind: "the database has lost commits", Err: fmt.Errorf(
		"%s: sqlstore.Accept was called while this server was running; restart it", s.where())}
}

// missed returns an error if the state lacks a commit that this store has made or shown. note is the
// revision to write to state.lost, or 0 if state.lost is up to date.
func (s *Store) missed(seen marks, st state) (note storage.Revision, err error) {
	s.marked.Store(int64(st.lost))
	newest := seen.newest()
	if st.history != s.history {
		replaced := &loss{err: s.replacedError()}
		s.loss.Store(replaced)
		return 0, replaced.err
	}
	lost := st.gone
	if lost == 0 && st.revision < newest {
		lost = newest
	}
	if lost != 0 {
		s.loss.CompareAndSwap(nil, &loss{lost, s.lossError(lost)})
	}
	l := s.loss.Load()
	if l == nil {
		return 0, nil
	}
	if newest = max(l.revision, newest); l.revision != 0 && st.lost < newest {
		note = newest
	}
	return note, l.err
}

// markLost leaves the state alone if Accept has been called since the loss was found.
const markLost = `UPDATE state SET lost = $1 WHERE lost < $1 AND history = $2`

// checkRead shows a state that was read, if it contains the marks in seen. If not, checkRead records
// the loss in the database and returns an error.
func (s *Store) checkRead(ctx context.Context, seen marks, st state) error {
	note, err := s.missed(seen, st)
	if err == nil {
		s.show(seen, mark{st.revision, st.id})
		return nil
	}
	if note != 0 {
		if _, failed := s.upkeep.ExecContext(ctx, markLost, int64(note), s.history); failed != nil {
			s.logger.Warn("the loss of commits could not be written to the database", "error", failed)
		} else {
			s.marked.Store(int64(note))
		}
	}
	return err
}

// checkCommit returns an error if a transaction that has locked the state must not commit. If it finds
// a loss, it records the loss and commits tx.
func (s *Store) checkCommit(ctx context.Context, tx *sql.Tx, seen marks, st state) error {
	note, err := s.missed(seen, st)
	if note != 0 {
		_, failed := tx.ExecContext(ctx, markLost, int64(note), s.history)
		if failed = cmp.Or(failed, tx.Commit()); failed != nil {
			s.logger.Warn("the loss of commits could not be written to the database", "error", failed)
		}
	}
	if err == nil && st.lost != 0 {
		err = s.lossError(st.lost)
	}
	return err
}

// Check implements storage.Checker. It fails while the database is known to have lost commits. A store
// that missed a commit fails until it is closed.
func (s *Store) Check(ctx context.Context) error {
	if _, err := s.Revision(ctx); err != nil {
		return err
	}
	if lost := s.marked.Load(); lost != 0 {
		return s.lossError(storage.Revision(lost))
	}
	return nil
}

// acceptGap is what Accept adds to the newest known revision. A server that cannot be reached may have
// acknowledged more commits than any other server knows of, so the gap is far larger than the number of
// commits that a standby can be behind.
const acceptGap = 1_000_000_000

// Accept declares the present state of the database to be valid after the database has lost commits or
// was restored from a copy. It returns the revision at which new commits begin. That is at least
// 1,000,000,000 above the newest revision in the database and the newest lost revision, so that no revision
// that a server has acknowledged is used again. Accept deletes the history before it, so clients list
// again. Stop all servers before Accept, and start them afterwards: a server that keeps running refuses
// reads and writes. Accept fails if the database has no store.
func Accept(ctx context.Context, o Options) (_ storage.Revision, err error) {
	d, err := o.dialect()
	if err != nil {
		return 0, fmt.Errorf("accept a state: %w", err)
	}
	var p pools
	there, err := d.exists(ctx)
	switch {
	case err != nil:
	case !there:
		err = errors.New("the database has no store")
	default:
		p, err = d.open(ctx)
	}
	defer func() {
		if err = errors.Join(err, p.close()); err != nil {
			err = fmt.Errorf("accept the state of %s: %w", d.where(), err)
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
	now, err := d.allowLong(ctx, tx)
	if err != nil {
		return 0, err
	}
	if err := d.lockCompaction(ctx, tx); err != nil { // lock in the same order as a compaction, to avoid a deadlock
		return 0, err
	}
	st, err := d.lock(ctx, tx, nil)
	if err != nil {
		return 0, err
	}
	begin := max(st.revision, st.lost) + acceptGap
	for _, statement := range compactStatements() {
		if _, err := tx.ExecContext(ctx, statement, int64(st.floor), int64(begin)); err != nil {
			return 0, err
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO commits VALUES ($1, $2, $3)`, int64(begin), now, newID()); err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE state SET revision = $1, floor = $1, lost = 0, history = $2`, int64(begin), newID())
	if err != nil {
		return 0, err
	}
	return begin, tx.Commit()
}
