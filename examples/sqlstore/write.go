package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"orch.io/controlplane/storage"
)

// Bounds of one key, of one commit, and of what one transaction makes.
const (
	maxKey        = 2 << 10 // PostgreSQL has a bound for what is in an index
	maxBytes      = 64 << 20
	maxTogether   = 128
	togetherBytes = 8 << 20
)

// errUnknown says that a transaction may or may not have been committed.
var errUnknown = errors.New("the commit may or may not have happened")

// commit is one that waits to be made. Who sends it waits for done, or leaves; it is
// made all the same then.
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
		return 0, s.told(ctx, inner.Err())
	}
	select {
	case <-c.done:
		return c.revision, s.told(ctx, c.err)
	case <-inner.Done():
		return 0, s.told(ctx, inner.Err())
	}
}

// measure counts the bytes of a commit, and refuses one that is too large.
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

// write makes the commits of the queue until the store is closed.
func (s *Store) write() {
	for {
		select {
		case c := <-s.queue:
			s.together(s.waiting(c))
		case <-s.life.Done():
			return
		}
	}
}

// waiting returns a commit with those that wait behind it.
func (s *Store) waiting(c *commit) []*commit {
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

// together makes commits in one transaction. What is wrong with one of them leaves the
// others alone; if the transaction fails, they all did. It is tried again only if it was
// certainly not made.
func (s *Store) together(all []*commit) {
	err := s.again(s.life, func(ctx context.Context) error { return s.transact(ctx, all) })
	for _, c := range all {
		if err != nil {
			c.revision, c.err = 0, err
		}
		close(c.done)
	}
}

// transact makes the commits in one transaction, and shows the newest revision after them.
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
	if err := s.wholeIn(ctx, tx, seen, before); err != nil {
		return err
	}
	now, err := s.current(ctx, tx, all)
	if err != nil {
		return err
	}
	made := batch{first: before.revision + 1, last: before.revision, id: newID()}
	for _, c := range all {
		c.revision = 0 // it may be another attempt
		if c.err = c.check(now); c.err != nil {
			if err := c.complete(ctx, s.dialect, tx, before.revision); err != nil {
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

// current returns the records that commits write to, without their values.
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
	there, err := s.newest(ctx, tx, keys)
	for key, revision := range there {
		now[key] = storage.Record{Key: key, Revision: revision}
	}
	return now, err
}

// check compares what the writes expect with what is there.
func (c *commit) check(now map[string]storage.Record) error {
	for _, w := range c.writes {
		if err := w.Check(now[w.Key]); err != nil {
			return err
		}
	}
	return nil
}

// complete adds the value to the record that a conflict shows, if it is one of the database.
func (c *commit) complete(ctx context.Context, d dialect, tx *sql.Tx, newest storage.Revision) error {
	var conflict *storage.ConflictError
	if !errors.As(c.err, &conflict) || conflict.Current.Revision == 0 || conflict.Current.Revision > newest {
		return nil
	}
	_, rec, err := recordOf(ctx, d, tx, nil, conflict.Key, newest)
	conflict.Current = rec
	return err
}

// apply notes what the commit makes of the records, and adds it to those that are made.
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
