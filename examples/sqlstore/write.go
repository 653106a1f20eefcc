package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"orch.io/controlplane/storage"
)

// Bounds of what one transaction makes, and of one key and one value.
const (
	maxTogether = 128
	maxKey      = 4 << 10
	maxValue    = 64 << 20
)

// commit is one that waits to be made. Who sends it waits for done, or leaves; it is
// made all the same then.
type commit struct {
	writes []storage.Write

	done     chan struct{}
	revision storage.Revision
	err      error
}

// Commit implements storage.Backend.
func (s *Store) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	ws, err := storage.Together(ws)
	if err != nil {
		return 0, err
	}
	if err := small(ws); err != nil {
		return 0, err
	}
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	c := &commit{writes: ws, done: make(chan struct{})}
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

func small(ws []storage.Write) error {
	if len(ws) > storage.CommitLength {
		return fmt.Errorf("%w: %d writes", storage.ErrTooLarge, len(ws))
	}
	for _, w := range ws {
		if len(w.Key) > maxKey || len(w.Value) > maxValue {
			return fmt.Errorf("%w: a key of %d and a value of %d bytes", storage.ErrTooLarge, len(w.Key), len(w.Value))
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
	for len(all) < maxTogether {
		select {
		case c := <-s.queue:
			all = append(all, c)
		default:
			return all
		}
	}
	return all
}

// together makes commits in one transaction. What is wrong with one of them leaves the
// others alone; if the transaction fails, they all did.
func (s *Store) together(all []*commit) {
	err := s.transact(all)
	for _, c := range all {
		if err != nil {
			c.revision, c.err = 0, err
		}
		close(c.done)
	}
	if err == nil {
		s.announce()
	}
}

func (s *Store) transact(all []*commit) error {
	tx, err := s.writes.BeginTx(s.life, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	st, err := stateOf(s.life, tx)
	if err != nil {
		return err
	}
	now := time.Now().UnixNano()
	for _, c := range all {
		if c.err = c.check(s.life, tx, st.revision); c.err != nil {
			var conflict *storage.ConflictError
			if errors.As(c.err, &conflict) || errors.Is(c.err, storage.ErrNotFound) {
				continue
			}
			return c.err
		}
		st.revision++
		c.revision = st.revision
		if err := c.insert(s.life, tx, now); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(s.life, `UPDATE state SET revision = ?`, st.revision); err != nil {
		return err
	}
	return tx.Commit()
}

// check compares what the writes expect with what is there.
func (c *commit) check(ctx context.Context, tx *sql.Tx, newest storage.Revision) error {
	for _, w := range c.writes {
		current, err := recordOf(ctx, tx, w.Key, newest)
		if err != nil {
			return err
		}
		if err := w.Check(current); err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) insert(ctx context.Context, tx *sql.Tx, now int64) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO commits VALUES (?, ?)`, c.revision, now); err != nil {
		return err
	}
	for _, w := range c.writes {
		if w.Guard {
			continue
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO records VALUES (?, ?, ?, ?)`, []byte(w.Key), c.revision, w.Value == nil, w.Value)
		if err != nil {
			return err
		}
	}
	return nil
}
