package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// Commit implements storage.Backend.
func (s *Store) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	ws, err := storage.Together(ws)
	if err != nil {
		return 0, err
	}
	if len(ws) > storage.CommitLength {
		return 0, fmt.Errorf("%w: %d writes", storage.ErrTooLarge, len(ws))
	}
	if size := bytesOf(ws); size > maxSend { // to send it takes long enough for being tried again
		return 0, fmt.Errorf("%w: %d bytes", storage.ErrTooLarge, size)
	}
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	m, name := s.marks.take()
	defer s.marks.give(m)
	c := &commit{store: s, ws: ws, mark: m, name: name}
	acked := s.acked.Load()
	revision, err := c.make(inner)
	if err != nil {
		return 0, s.told(ctx, err)
	}
	s.compare(acked, revision)
	s.note(revision)
	return storage.Revision(revision), nil
}

func bytesOf(ws []storage.Write) (size int) {
	for _, w := range ws {
		size += len(w.Key) + len(w.Value)
	}
	return size
}

// note remembers a revision that was acknowledged.
func (s *Store) note(revision int64) {
	for {
		have := s.acked.Load()
		if have >= revision || s.acked.CompareAndSwap(have, revision) {
			return
		}
	}
}

// compare notices that what was acknowledged before is gone, by a revision that should be no older.
func (s *Store) compare(acked, revision int64) {
	if revision < acked {
		s.lost.CompareAndSwap(0, acked)
	}
}

func deletes(ws []storage.Write) bool {
	for _, w := range ws {
		if w.Value != nil {
			return false
		}
	}
	return true
}

// commit is one that is under way. The mark is its own meanwhile.
type commit struct {
	store *Store
	ws    []storage.Write
	mark  *mark
	name  string
	open  bool // etcd has not answered what was sent for the mark as it is
}

// make makes the commit, and returns its revision.
func (c *commit) make(ctx context.Context) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if revision, err = c.repeat(ctx); errors.Is(err, rpctypes.ErrNoSpace) {
		return c.full(ctx, err)
	}
	return revision, err
}

// repeat sends the commit until it is known what became of it. All that is sent depends on the same
// state of the mark and changes it, so that one of them is made at most.
func (c *commit) repeat(ctx context.Context) (revision int64, err error) {
	for pause, most := pauseTime, firstCommit; ; pause, most = min(2*pause, longPauseTime), min(2*most, attemptTime) {
		if !c.open {
			if err = c.store.renew(ctx, c.mark); err != nil {
				return 0, err
			}
		}
		resp, err := c.send(ctx, most, clientv3.OpPut(c.store.head, ""), clientv3.OpPut(c.mark.key, c.name))
		switch {
		case err == nil:
			if revision, err = c.answer(ctx, resp); revision != 0 || err != nil {
				return revision, err
			}
		case !c.store.passing(err):
			return 0, c.doubted(err)
		default:
			c.store.logger.Debug("etcd did not answer a commit, sending it again", "error", err)
			c.open = true
		}
		if !wait(ctx, pause) {
			return 0, c.doubted(ctx.Err())
		}
	}
}

// doubted is why there is no answer.
func (c *commit) doubted(err error) error {
	if c.open {
		return unknown(err)
	}
	return err
}

func unknown(err error) error {
	return fmt.Errorf("the commit may or may not have happened: %w", err)
}

// send makes the writes and what comes with them, or gets the records of their keys and the mark if
// a comparison fails.
func (c *commit) send(ctx context.Context, most time.Duration, with ...clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := bounded(ctx, most)
	defer cancel()
	begun := time.Now()
	compares, now, gets := c.store.transaction(c.ws)
	compares, now, gets = append(compares, c.mark.unchanged()), append(now, with...), append(gets, clientv3.OpGet(c.mark.key))
	resp, err := c.store.client.Txn(ctx).If(compares...).Then(now...).Else(gets...).Commit()
	if err == nil && resp.Succeeded {
		c.mark.at, c.mark.written = resp.Header.Revision, begun
	}
	return resp, err
}

// answer returns the revision of the commit if it was made, and the error if its comparisons
// failed. If neither is so it can be sent again: a commit that was sent long ago has changed the
// mark meanwhile, or what the comparisons failed for is compacted.
func (c *commit) answer(ctx context.Context, resp *clientv3.TxnResponse) (revision int64, err error) {
	if resp.Succeeded {
		return resp.Header.Revision, nil
	}
	was := c.mark.at
	revision = c.mark.look(resp.Responses[len(c.ws)].GetResponseRange().Kvs, c.name)
	switch {
	case revision != 0:
		return revision, nil
	case c.open && c.mark.at == 0:
		return 0, unknown(errForgotten)
	case c.mark.at != was:
		c.open = false
		return 0, nil
	case c.open: // what has no answer may still be made, when the comparisons hold again
		if revision, err = c.store.settle(ctx, c.mark, c.name); err != nil {
			return 0, unknown(err)
		}
		if c.open = false; revision != 0 {
			return revision, nil
		}
	}
	return 0, c.conflict(ctx, resp)
}

// full makes a commit for which etcd has no room, if it only deletes; etcd takes no put then, and so
// the head and the mark go, too, and without a mark it is sent once. The one commit by which etcd
// gets full it has made, and refused all the same.
func (c *commit) full(ctx context.Context, refused error) (revision int64, err error) {
	revision, err = c.store.found(ctx, c.mark, c.name)
	if revision != 0 || err != nil {
		return revision, err
	}
	if !deletes(c.ws) {
		return 0, refused
	}
	for {
		resp, err := c.send(ctx, callTime, clientv3.OpDelete(c.store.head), clientv3.OpDelete(c.mark.key))
		c.mark.written = time.Time{} // it may be gone
		if err != nil {
			return 0, unknown(err)
		}
		if revision, err = c.answer(ctx, resp); revision != 0 || err != nil {
			return revision, err
		}
	}
}

// transaction is what the writes are to etcd: what they depend on, what they do, and what is to be
// known of their keys otherwise, which is one record, or else the revisions alone: all that the keys
// have may be more than an answer holds.
func (s *Store) transaction(ws []storage.Write) (compares []clientv3.Cmp, now, gets []clientv3.Op) {
	now, gets = make([]clientv3.Op, 0, len(ws)+2), make([]clientv3.Op, 0, len(ws)+1)
	var what []clientv3.OpOption
	if len(ws) > 1 {
		what = append(what, clientv3.WithKeysOnly())
	}
	for _, w := range ws {
		key := s.data + w.Key
		deletes := w.Value == nil && !w.Guard
		switch {
		case deletes && w.Expect == 0: // what is not there cannot be deleted
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(key), "<", 0))
		case deletes && w.Expect == storage.AnyRevision:
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(key), ">", 0))
		case w.Expect != storage.AnyRevision:
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(key), "=", int64(w.Expect)))
		}
		switch {
		case deletes:
			now = append(now, clientv3.OpDelete(key))
		case !w.Guard:
			now = append(now, clientv3.OpPut(key, string(w.Value)))
		}
		gets = append(gets, clientv3.OpGet(key, what...))
	}
	return compares, now, gets
}

// conflict tells which comparison failed first, by what the keys had at the same moment. It is
// nil if the record that it should tell of is compacted.
func (c *commit) conflict(ctx context.Context, resp *clientv3.TxnResponse) error {
	for i, w := range c.ws {
		var current storage.Record
		if kvs := resp.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
			current = c.store.record(kvs[0])
		}
		err := w.Check(current)
		if err == nil {
			continue
		}
		if len(c.ws) > 1 && current.Revision != 0 {
			current, err = c.store.recordAt(ctx, w.Key, resp.Header.Revision)
			if errors.Is(err, rpctypes.ErrCompacted) {
				return nil
			}
			if err == nil {
				err = w.Check(current)
			}
		}
		return err
	}
	return errors.New("etcd refused a commit whose comparisons hold")
}

// recordAt returns the record that a key has at a revision of etcd, at which it is there.
func (s *Store) recordAt(ctx context.Context, key string, revision int64) (rec storage.Record, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.data+key, clientv3.WithRev(revision))
		if err == nil {
			rec = s.record(resp.Kvs[0])
		}
		return err
	})
	return rec, err
}
