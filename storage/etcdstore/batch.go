package etcdstore

import (
	"context"
	"errors"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// Bounds of a batch of several commits. etcd takes 128 operations, and as many comparisons, unless it is set
// otherwise; one of each is the store's own.
const (
	batchOps   = 127
	batchBytes = 128 << 10
)

// batch is commits that are made by one transaction, all or none: those whose comparisons fail are refused, and
// the others sent again. What one of them writes no other one writes or compares, since etcd compares before it
// writes. One that deletes is alone, since what is deleted has no value that could have a mark.
type batch struct {
	store    *Store
	commits  []*commit       // by their places
	keys     map[string]bool // of all of them; true: written
	compares int             // of all that were added, as the other numbers
	ops      int
	size     int

	name  string
	at    int64 // that of the fence on which it depends
	after int64 // the revision of etcd before it was sent; 0: it was not
}

func (s *Store) newBatch(commits ...*commit) *batch {
	b := &batch{store: s, name: s.fence.name(), keys: map[string]bool{}}
	for _, c := range commits {
		b.add(c)
	}
	return b
}

func (b *batch) add(c *commit) {
	b.commits, b.compares, b.ops, b.size = append(b.commits, c), b.compares+len(c.compares)+len(c.places), b.ops+len(c.ws), b.size+c.size
	for _, w := range c.ws {
		b.keys[w.Key] = b.keys[w.Key] || !w.Guard
	}
}

// hasRoom reports whether a commit is not too much beside the others.
func (b *batch) hasRoom(c *commit) bool {
	return len(b.commits) < places && b.compares+len(c.compares)+len(c.places) <= batchOps && b.ops+len(c.ws) <= batchOps && b.size+c.size <= batchBytes
}

// meets reports whether a commit writes what another one writes or compares, or compares what another one writes.
func (b *batch) meets(c *commit) bool {
	return slices.ContainsFunc(c.ws, func(w storage.Write) bool {
		written, ok := b.keys[w.Key]
		return ok && (written || !w.Guard)
	})
}

// run makes the commits and answers them. What etcd does not take of several it may take of each.
func (b *batch) run(ctx context.Context) {
	revision, err := b.make(ctx)
	refused := tooLarge(err) || errors.Is(err, rpctypes.ErrPermissionDenied)
	if refused && !errors.Is(err, errUnknown) && len(b.commits) > 1 {
		for _, c := range b.commits {
			b.store.newBatch(c).run(ctx)
		}
		return
	}
	for place, c := range b.commits {
		c.answer(revisionOf(revision, place), err)
	}
}

// make makes the commits that are not refused, and returns their revision of etcd.
func (b *batch) make(ctx context.Context) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	ctx, back := b.store.toLeader(ctx)
	defer back()
	if revision, err = b.repeat(ctx); errors.Is(err, rpctypes.ErrNoSpace) {
		return b.full(ctx, err)
	}
	return revision, err
}

// repeat sends the batch until it is known what became of it. It is sent again only when what was sent
// before will never be made, and without the commits that nobody waits for.
func (b *batch) repeat(ctx context.Context) (revision int64, err error) {
	for pause, most := pauseTime, firstCommit; ; {
		b.leave()
		if len(b.commits) == 0 {
			return 0, nil
		}
		if b.at, err = b.store.fenced(ctx); err != nil {
			return 0, err
		}
		resp, err := b.send(ctx, most)
		switch {
		case err == nil && resp.Succeeded:
			return resp.Header.Revision, nil
		case err == nil:
			if !b.store.fence.moved(b.at, resp.Responses[len(resp.Responses)-1].GetResponseRange().Kvs) {
				b.refuse(resp)
			}
			continue
		case b.store.turnedAway(err):
		case ctx.Err() != nil:
			return 0, unknown(err)
		case !b.store.passing(err):
			return 0, err
		case b.left():
			return 0, unknown(err)
		default:
			b.store.logger.Debug("etcd did not answer a commit, finding out what became of it", "error", err)
			if revision, err = b.settle(ctx); revision != 0 || err != nil {
				return revision, err
			}
		}
		if !wait(ctx, pause) {
			return 0, ctx.Err()
		}
		pause, most = min(2*pause, longPauseTime), min(2*most, attemptTime)
	}
}

// leave drops the commits that nobody waits for any more.
func (b *batch) leave() {
	b.commits = slices.DeleteFunc(b.commits, func(c *commit) bool {
		gone := c.ctx.Err() != nil
		if gone {
			c.answer(0, c.ctx.Err())
		}
		return gone
	})
}

// left reports whether nobody waits for any of the commits.
func (b *batch) left() bool {
	return !slices.ContainsFunc(b.commits, func(c *commit) bool { return c.ctx.Err() == nil })
}

// send makes the writes if the fence is as it was, too, and leaves the name of the batch in the head, at the place
// of its last commit; or it gets what is there of the keys and the fence if a comparison fails.
func (b *batch) send(ctx context.Context, most time.Duration) (*clientv3.TxnResponse, error) {
	s := b.store
	compares, now, gets, err := b.transaction(ctx)
	if err != nil {
		return nil, err
	}
	name := marked(len(b.commits)-1, []byte(b.name))
	return b.do(ctx, most, append(compares, s.fence.unchanged(b.at)), append(now, clientv3.OpPut(s.head, name)), append(gets, clientv3.OpGet(s.fence.key)))
}

// transaction is what the commits are to etcd: what they depend on, what they do, and what is to be known of their
// keys if a comparison fails: the record of one key, or else the revisions alone, since all the values may be more
// than an answer holds.
func (b *batch) transaction(ctx context.Context) (compares []clientv3.Cmp, now, gets []clientv3.Op, err error) {
	compares, now, gets = make([]clientv3.Cmp, 0, b.compares+1), make([]clientv3.Op, 0, b.ops+1), make([]clientv3.Op, 0, b.ops+1)
	var what []clientv3.OpOption
	if b.ops > 1 {
		what = append(what, clientv3.WithKeysOnly())
	}
	for place, c := range b.commits {
		compares = append(append(compares, c.compares...), c.places...)
		for _, w := range c.ws {
			key := b.store.data + w.Key
			switch {
			case deletes(w):
				now = append(now, clientv3.OpDelete(key))
			case !w.Guard:
				now = append(now, clientv3.OpPut(key, marked(place, w.Value)))
			}
			gets = append(gets, clientv3.OpGet(key, what...))
		}
	}
	if c := b.commits[0]; len(compares) > batchOps { // it is alone
		hold, err := b.store.placesHold(ctx, c.ws)
		if err != nil {
			return nil, nil, nil, err
		}
		if compares = slices.Clone(c.compares); !hold {
			compares = []clientv3.Cmp{never(b.store.head)}
		}
	}
	return compares, now, gets, nil
}

// do sends a transaction.
func (b *batch) do(ctx context.Context, most time.Duration, compares []clientv3.Cmp, now, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	s := b.store
	attempt, cancel := bounded(ctx, most)
	defer cancel()
	b.after = max(s.seen.Load(), b.at)
	resp, err := s.client.Txn(attempt).If(compares...).Then(now...).Else(otherwise...).Commit()
	if err != nil && ctx.Err() == nil {
		_, route := routed(ctx)
		s.unanswered(route, err)
	}
	return resp, err
}

// refuse answers the commits whose keys have other revisions of etcd than they expect, and keeps the others. If there
// are none then a place is not as one of them expects.
func (b *batch) refuse(resp *clientv3.TxnResponse) {
	found, rest := map[*commit][]*pb.ResponseOp{}, resp.Responses
	for _, c := range b.commits {
		found[c], rest = rest[:len(c.ws)], rest[len(c.ws):]
	}
	failed := func(c *commit) bool {
		for i, w := range c.ws {
			if differs(w, found[c][i].GetResponseRange().Kvs) {
				return true
			}
		}
		return false
	}
	another := false
	if !slices.ContainsFunc(b.commits, failed) {
		failed, another = func(c *commit) bool { return len(c.places) > 0 }, len(b.commits) > 1
	}
	b.commits = slices.DeleteFunc(b.commits, func(c *commit) bool {
		fails := failed(c)
		switch {
		case fails && another:
			c.answer(0, errAnother)
		case fails:
			c.answer(0, &refusal{resp.Header.Revision, found[c]})
		}
		return fails
	})
}

// full makes a commit for which etcd has no room, if it only deletes; etcd takes no put then, and so
// the head goes, too, and as there is no name the commit is sent once. The batch by which etcd gets full
// it makes, but answers that there is no room.
func (b *batch) full(ctx context.Context, refused error) (revision int64, err error) {
	if b.after != 0 {
		if revision, err = b.look(ctx); revision != 0 || err != nil {
			return revision, err
		}
	}
	if slices.ContainsFunc(b.commits[0].ws, func(w storage.Write) bool { return w.Value != nil }) { // as each of several has
		return 0, refused
	}
	for len(b.commits) > 0 {
		compares, now, gets, err := b.transaction(ctx)
		if err != nil {
			return 0, err
		}
		resp, err := b.do(ctx, callTime, compares, append(now, clientv3.OpDelete(b.store.head)), gets)
		switch {
		case err == nil && resp.Succeeded:
			return resp.Header.Revision, nil
		case err == nil:
			b.refuse(resp)
		case !b.store.turnedAway(err):
			return 0, unknown(err)
		case !wait(ctx, pauseTime):
			return 0, ctx.Err()
		}
	}
	return 0, nil
}
