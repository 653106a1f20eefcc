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
	c := &commit{store: s, ws: ws, name: s.fence.name()}
	acked := s.acked.Load()
	revision, err := c.make(inner)
	if err != nil {
		return 0, s.told(ctx, err)
	}
	s.compare(acked, revision)
	raise(&s.acked, revision)
	raise(&s.shown, revision)
	return storage.Revision(revision), nil
}

func bytesOf(ws []storage.Write) (size int) {
	for _, w := range ws {
		size += len(w.Key) + len(w.Value)
	}
	return size
}

// compare notices that what was there before is gone, by a revision that should be no older.
func (s *Store) compare(before, revision int64) {
	if revision < before {
		s.lost.CompareAndSwap(0, before)
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

// commit is one that is under way.
type commit struct {
	store *Store
	ws    []storage.Write
	name  string
	at    int64 // that of the fence on which it depends
	after int64 // the revision of etcd before it was sent; 0: it was not
}

// make makes the commit, and returns its revision.
func (c *commit) make(ctx context.Context) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	ctx, back := c.store.toLeader(ctx)
	defer back()
	if revision, err = c.repeat(ctx); errors.Is(err, rpctypes.ErrNoSpace) {
		return c.full(ctx, err)
	}
	return revision, err
}

// repeat sends the commit until it is known what became of it. It is sent again only when what was sent
// before will never be made.
func (c *commit) repeat(ctx context.Context) (revision int64, err error) {
	for pause, most := pauseTime, firstCommit; ; pause, most = min(2*pause, longPauseTime), min(2*most, attemptTime) {
		if c.at, err = c.store.fenced(ctx); err != nil {
			return 0, err
		}
		resp, err := c.send(ctx, most)
		switch {
		case err == nil && resp.Succeeded:
			return resp.Header.Revision, nil
		case err == nil:
			if c.store.fence.moved(c.at, resp.Responses[len(c.ws)].GetResponseRange().Kvs) {
				continue
			}
			err = c.conflict(ctx, resp)
		case c.store.turnedAway(err):
			err = nil
		case ctx.Err() != nil:
			return 0, unknown(err)
		case c.store.passing(err):
			c.store.logger.Debug("etcd did not answer a commit, finding out what became of it", "error", err)
			revision, err = c.settle(ctx)
		}
		if revision != 0 || err != nil {
			return revision, err
		}
		if !wait(ctx, pause) {
			return 0, ctx.Err()
		}
	}
}

func unknown(err error) error {
	return fmt.Errorf("the commit may or may not have happened: %w", err)
}

// send makes the writes if the fence is as it was, too, and leaves the name of the commit
// in the head; or it gets the records of their keys and the fence if a comparison fails.
func (c *commit) send(ctx context.Context, most time.Duration) (*clientv3.TxnResponse, error) {
	s := c.store
	compares, now, gets := s.transaction(c.ws)
	compares, now, gets = append(compares, s.fence.unchanged(c.at)), append(now, clientv3.OpPut(s.head, c.name)), append(gets, clientv3.OpGet(s.fence.key))
	return c.do(ctx, most, compares, now, gets)
}

// full makes a commit for which etcd has no room, if it only deletes; etcd takes no put then, and so
// the head goes, too, and as there is no name the commit is sent once. The one commit by which etcd
// gets full it has made, and refused all the same.
func (c *commit) full(ctx context.Context, refused error) (revision int64, err error) {
	if c.after != 0 {
		if revision, err = c.look(ctx); revision != 0 || err != nil {
			return revision, err
		}
	}
	if !deletes(c.ws) {
		return 0, refused
	}
	for {
		compares, now, gets := c.store.transaction(c.ws)
		resp, err := c.do(ctx, callTime, compares, append(now, clientv3.OpDelete(c.store.head)), gets)
		switch {
		case err == nil && resp.Succeeded:
			return resp.Header.Revision, nil
		case err == nil:
			err = c.conflict(ctx, resp)
		case c.store.turnedAway(err):
			err = nil
		default:
			err = unknown(err)
		}
		if err != nil {
			return 0, err
		}
		if !wait(ctx, pauseTime) {
			return 0, ctx.Err()
		}
	}
}

// do sends a transaction.
func (c *commit) do(ctx context.Context, most time.Duration, compares []clientv3.Cmp, now, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	attempt, cancel := bounded(ctx, most)
	defer cancel()
	c.after = max(c.store.seen.Load(), c.at)
	resp, err := c.store.client.Txn(attempt).If(compares...).Then(now...).Else(otherwise...).Commit()
	if err != nil && ctx.Err() == nil {
		_, route := routed(ctx)
		c.store.unanswered(route, err)
	}
	return resp, err
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
