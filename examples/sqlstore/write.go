package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"orch.io/controlplane/storage"
)

// Limits of a key, of a commit, and of the commits of one transaction.
const (
	maxKey        = 2 << 10 // PostgreSQL limits the size of an index entry
	maxBytes      = 64 << 20
	maxTogether   = 128
	togetherBytes = 8 << 20
)

// errUnknown is the error of a transaction that may or may not have been committed.
var errUnknown = errors.New("the commit may or may not have happened")

// commit is a commit in the queue. Its sender may stop waiting for done; the commit is applied
// nevertheless.
type commit struct {
	writes []storage.Write
	bytes  int

	done     chan struct{}
	revision storage.Revision
	err      error
}

// Commit implements storage.Backend.
func (s *Store) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	ws, err := storage.NormalizeCommit(ws)
	if err != nil {
		return 0, err
	}
	c := &commit{writes: ws, done: make(chan struct{})}
	if err := c.measure(); err != nil {
		return 0, err
	}
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	select {
	case s.queue <- c:
	case <-inner.Done():
		return 0, s.callerError(ctx, inner.Err())
	}
	select {
	case <-c.done:
		return c.revision, s.callerError(ctx, c.err)
	case <-inner.Done():
		return 0, s.callerError(ctx, inner.Err())
	}
}

// measure sets c.bytes, and fails if the commit is too large.
func (c *commit) measure() error {
	if len(c.writes) > storage.CommitLength {
		return fmt.Errorf("%w: %d writes", storage.ErrTooLarge, len(c.writes))
	}
	for _, w := range c.writes {
		if len(w.Key) > maxKey {
			return fmt.Errorf("%w: a key of %d bytes", storage.ErrTooLarge, len(w.Key))
		}
		if c.bytes += len(w.Key) + len(w.Value); c.bytes > maxBytes {
			return fmt.Errorf("%w: more than %d bytes", storage.ErrTooLarge, maxBytes)
		}
	}
	return nil
}

// write applies the commits of the queue until the store is closed.
func (s *Store) write() {
	for {
		select {
		case c := <-s.queue:
			s.commitTogether(s.withWaiting(c))
		case <-s.lifetime.Done():
			return
		}
	}
}

// withWaiting returns c and the commits that wait behind it, up to the limits of a transaction.
func (s *Store) withWaiting(c *commit) []*commit {
	all := []*commit{c}
	for bytes := c.bytes; len(all) < maxTogether && bytes < togetherBytes; {
		select {
		case c := <-s.queue:
			all, bytes = append(all, c), bytes+c.bytes
		default:
			return all
		}
	}
	return all
}

// commitTogether applies commits in one transaction. An invalid commit or a conflict does not affect
// the others; if the transaction fails, all fail. The transaction is retried only if it certainly was
// not committed.
func (s *Store) commitTogether(all []*commit) {
	err := s.retry(s.lifetime, func(ctx context.Context) error { return s.transact(ctx, all) })
	for _, c := range all {
		if err != nil {
			c.revision, c.err = 0, err
		}
		close(c.done)
	}
}

// transact applies the commits in one transaction, and shows the newest revision after them.
func (s *Store) transact(ctx context.Context, all []*commit) error {
	tx, err := s.commits.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	seen := s.seen()
	before, err := s.lock(ctx, tx, seen)
	if err != nil {
		return err
	}
	if err := s.checkCommit(ctx, tx, seen, before); err != nil {
		return err
	}
	now, err := s.current(ctx, tx, all)
	if err != nil {
		return err
	}
	made := batch{first: before.revision + 1, last: before.revision, id: newID()}
	for _, c := range all {
		c.revision = 0 // a previous attempt may have set it
		if c.err = c.check(now); c.err != nil {
			if err := c.addConflictValue(ctx, s.dialect, tx, before.revision); err != nil {
				return err
			}
			continue
		}
		made.last++
		c.revision = made.last
		made.records = c.apply(now, made.records)
	}
	if made.last == before.revision {
		s.show(seen, mark{before.revision, before.id})
		return nil
	}
	if err := s.insert(ctx, tx, made); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	s.show(seen, mark{made.last, made.id})
	return nil
}

// current returns the current records of the keys that the commits write, without their values.
func (s *Store) current(ctx context.Context, tx *sql.Tx, all []*commit) (map[string]storage.Record, error) {
	now := make(map[string]storage.Record)
	var keys []string
	for _, c := range all {
		for _, w := range c.writes {
			if _, ok := now[w.Key]; !ok {
				now[w.Key] = storage.Record{}
				keys = append(keys, w.Key)
			}
		}
	}
	revisions, err := s.newest(ctx, tx, keys)
	for key, revision := range revisions {
		now[key] = storage.Record{Key: key, Revision: revision}
	}
	return now, err
}

// check compares the expected revisions with the current records.
func (c *commit) check(now map[string]storage.Record) error {
	for _, w := range c.writes {
		if err := w.Check(now[w.Key]); err != nil {
			return err
		}
	}
	return nil
}

// addConflictValue reads the value of the current record into a conflict error, unless a commit of the
// same transaction wrote the record.
func (c *commit) addConflictValue(ctx context.Context, d dialect, tx *sql.Tx, newest storage.Revision) error {
	var conflict *storage.ConflictError
	if !errors.As(c.err, &conflict) || conflict.Current.Revision == 0 || conflict.Current.Revision > newest {
		return nil
	}
	_, rec, err := recordOf(ctx, d, tx, nil, conflict.Key, newest)
	conflict.Current = rec
	return err
}

// apply updates now with the writes of the commit, and returns made with the written records appended.
func (c *commit) apply(now map[string]storage.Record, made []storage.Record) []storage.Record {
	for _, w := range c.writes {
		if w.Guard {
			continue
		}
		rec := storage.Record{Key: w.Key, Value: w.Value, Revision: c.revision}
		made = append(made, rec)
		if w.Value == nil {
			rec = storage.Record{}
		}
		now[w.Key] = rec
	}
	return made
}
