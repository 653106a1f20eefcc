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
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	m, name := s.marks.take()
	defer s.marks.give(m)
	c := &commit{store: s, ws: ws, mark: m, name: name}
	revision, err := c.make(inner)
	if err != nil {
		return 0, s.told(ctx, err)
	}
	s.note(revision)
	return storage.Revision(revision), nil
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
}

// make sends the commit until it is known what became of it, and returns its revision. Each
// attempt but the last one has been settled, so that it was not made and never will be.
func (c *commit) make(ctx context.Context) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for pause, most := pauseTime, firstCommit; ; pause, most = min(2*pause, longPauseTime), min(2*most, attemptTime) {
		var resp *clientv3.TxnResponse
		if err = c.store.renew(ctx, c.mark); err == nil {
			resp, err = c.send(ctx, most, clientv3.OpPut(c.store.head, ""), clientv3.OpPut(c.mark.key, c.name))
		}
		switch {
		case err == nil:
			if revision, err = c.answer(resp); revision != 0 || err != nil {
				return revision, err
			}
		case errors.Is(err, rpctypes.ErrNoSpace):
			return c.full(ctx, err)
		case c.mark.at == 0 || !passing(err):
			return 0, err
		default:
			c.store.logger.Debug("etcd did not answer, finding out what became of a commit", "error", err)
			if revision, err = c.store.settle(ctx, c.mark, c.name); err != nil {
				return 0, unknown(err)
			}
			if revision != 0 {
				return revision, nil
			}
		}
		if !wait(ctx, pause) {
			return 0, ctx.Err()
		}
	}
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
// failed. If neither is so, something that was sent long ago has changed the mark meanwhile.
func (c *commit) answer(resp *clientv3.TxnResponse) (revision int64, err error) {
	if resp.Succeeded {
		return resp.Header.Revision, nil
	}
	was := c.mark.at
	revision = c.mark.look(resp.Responses[len(c.ws)].GetResponseRange().Kvs, c.name)
	if revision != 0 || c.mark.at != was {
		return revision, nil
	}
	return 0, c.store.conflict(c.ws, resp)
}

// full makes a commit for which etcd has no room, if it only deletes; etcd takes no put then, and so
// the head and the mark go, too, and without a mark it is sent once. Without a head the revision is that of etcd, until there is room and
// the next commit. The one commit by which etcd gets full it has made, and refused all the same.
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
		if revision, err = c.answer(resp); revision != 0 || err != nil {
			return revision, err
		}
	}
}

func (s *Store) transaction(ws []storage.Write) (compares []clientv3.Cmp, now, gets []clientv3.Op) {
	now, gets = make([]clientv3.Op, 0, len(ws)+2), make([]clientv3.Op, 0, len(ws)+1)
	for _, w := range ws {
		key := s.data + w.Key
		if w.Expect != storage.AnyRevision {
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(key), "=", int64(w.Expect)))
		}
		switch {
		case w.Guard:
		case w.Value != nil:
			now = append(now, clientv3.OpPut(key, string(w.Value)))
		default:
			now = append(now, clientv3.OpDelete(key))
			if w.Expect <= 0 { // else the other comparison says that it is there
				compares = append(compares, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
			}
		}
		gets = append(gets, clientv3.OpGet(key))
	}
	return compares, now, gets
}

// conflict tells which comparison failed first, of records that were got at the same moment.
func (s *Store) conflict(ws []storage.Write, resp *clientv3.TxnResponse) error {
	for i, w := range ws {
		var current storage.Record
		if kvs := resp.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
			current = s.record(kvs[0])
		}
		if err := w.Check(current); err != nil {
			return err
		}
	}
	return errors.New("etcd refused a commit whose comparisons hold")
}
