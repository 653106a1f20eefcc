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

// Limits of a batch of several commits. By default, etcd accepts 128 operations and 128 comparisons in
// a transaction; the store needs one of each for the head and the fence.
const (
	batchOps   = 127
	batchBytes = 128 << 10
)

// batch is a group of commits that one transaction applies, all or none. If comparisons fail, the
// commits to which they belong are refused, and the others are sent again. No commit of a batch writes
// a key that another commit of the batch writes or compares, because etcd evaluates all comparisons
// before it writes. A commit that deletes keys is in a batch of its own, because a deletion has no
// value that could hold the position of the commit.
//
// A batch is not safe for concurrent use: before it is sent it is guarded by queue.mu, then it belongs
// to the goroutine that calls run.
type batch struct {
	store    *Store
	commits  []*commit       // in the order of their positions
	keys     map[string]bool // of all commits; true if the key is written, false if it is only guarded
	compares int             // of all commits that were added, also those refused since; so are ops and size
	ops      int
	size     int

	name          string
	fenceRevision int64 // the etcd revision of the fence that the transaction compares
	sentAfter     int64 // an etcd revision that is older than the transaction; 0 if it was not sent
}

func (s *Store) newBatch(commits ...*commit) *batch {
	b := &batch{store: s, name: s.fence.name(), keys: map[string]bool{}}
	for _, c := range commits {
		b.add(c)
	}
	return b
}

func (b *batch) add(c *commit) {
	b.commits, b.compares, b.ops, b.size = append(b.commits, c), b.compares+len(c.compares)+len(c.positions), b.ops+len(c.ws), b.size+c.size
	for _, w := range c.ws {
		b.keys[w.Key] = b.keys[w.Key] || !w.Guard
	}
}

// hasRoom reports whether the batch stays within its limits with c.
func (b *batch) hasRoom(c *commit) bool {
	return len(b.commits) < positions && b.compares+len(c.compares)+len(c.positions) <= batchOps && b.ops+len(c.ws) <= batchOps && b.size+c.size <= batchBytes
}

// overlaps reports whether c writes a key that the batch writes or compares, or compares a key that the
// batch writes.
func (b *batch) overlaps(c *commit) bool {
	return slices.ContainsFunc(c.ws, func(w storage.Write) bool {
		written, ok := b.keys[w.Key]
		return ok && (written || !w.Guard)
	})
}

// run executes the batch and answers its commits. If etcd rejects a batch as too large or not
// permitted, run tries each commit alone.
func (b *batch) run(ctx context.Context) {
	revision, err := b.execute(ctx)
	refused := tooLarge(err) || errors.Is(err, rpctypes.ErrPermissionDenied)
	if refused && !errors.Is(err, errUnknown) && len(b.commits) > 1 {
		for _, c := range b.commits {
			b.store.newBatch(c).run(ctx)
		}
		return
	}
	for position, c := range b.commits {
		c.answer(revisionOf(revision, position), err)
	}
}

// execute applies the commits of the batch, without those that it refuses, and returns their etcd
// revision.
func (b *batch) execute(ctx context.Context) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	ctx, back := b.store.preferLeader(ctx)
	defer back()
	if revision, err = b.sendUntilResolved(ctx); errors.Is(err, rpctypes.ErrNoSpace) {
		return b.executeWithoutSpace(ctx, err)
	}
	return revision, err
}

// sendUntilResolved sends the batch until its outcome is known. It sends the batch again only if the
// previous transaction will never be applied, and without the commits that their callers have given up.
func (b *batch) sendUntilResolved(ctx context.Context) (revision int64, err error) {
	for pause, most := pauseTime, firstCommit; ; {
		b.dropCanceled()
		if len(b.commits) == 0 {
			return 0, nil
		}
		if b.fenceRevision, err = b.store.ensureFence(ctx); err != nil {
			return 0, err
		}
		resp, err := b.send(ctx, most)
		switch {
		case err == nil && resp.Succeeded:
			return resp.Header.Revision, nil
		case err == nil:
			if !b.store.fence.observe(b.fenceRevision, resp.Responses[len(resp.Responses)-1].GetResponseRange().Kvs) {
				b.refuse(resp)
			}
			continue
		case b.store.notExecuted(err):
		case ctx.Err() != nil:
			return 0, unknown(err)
		case !b.store.retryable(err):
			return 0, err
		case b.allCanceled():
			return 0, unknown(err)
		default:
			b.store.logger.Debug("etcd did not answer a commit; finding out its outcome", "error", err)
			if revision, err = b.resolve(ctx); revision != 0 || err != nil {
				return revision, err
			}
		}
		if !wait(ctx, pause) {
			return 0, ctx.Err()
		}
		pause, most = min(2*pause, longPauseTime), min(2*most, attemptTime)
	}
}

// dropCanceled removes the commits that their callers have given up.
func (b *batch) dropCanceled() {
	b.commits = slices.DeleteFunc(b.commits, func(c *commit) bool {
		canceled := c.ctx.Err() != nil
		if canceled {
			c.answer(0, c.ctx.Err())
		}
		return canceled
	})
}

// allCanceled reports whether the callers of all commits have given up.
func (b *batch) allCanceled() bool {
	return !slices.ContainsFunc(b.commits, func(c *commit) bool { return c.ctx.Err() == nil })
}

// send sends the transaction of the batch. If all comparisons hold, including that of the fence, it
// applies the writes and puts the name of the batch and the position of its last commit into the head.
// If one fails, it returns the current state of the keys and the fence.
func (b *batch) send(ctx context.Context, most time.Duration) (*clientv3.TxnResponse, error) {
	s := b.store
	compares, now, gets, err := b.transaction(ctx)
	if err != nil {
		return nil, err
	}
	name := marked(len(b.commits)-1, []byte(b.name))
	return b.sendTxn(ctx, most, append(compares, s.fence.unchanged(b.fenceRevision)), append(now, clientv3.OpPut(s.head, name)), append(gets, clientv3.OpGet(s.fence.key)))
}

// transaction returns the comparisons and operations of the commits, and the reads that find out which
// comparison failed. The reads return the record if the batch has one key, and only revisions
// otherwise, because all the values together could exceed the size of an answer.
func (b *batch) transaction(ctx context.Context) (compares []clientv3.Cmp, now, gets []clientv3.Op, err error) {
	compares, now, gets = make([]clientv3.Cmp, 0, b.compares+1), make([]clientv3.Op, 0, b.ops+1), make([]clientv3.Op, 0, b.ops+1)
	var options []clientv3.OpOption
	if b.ops > 1 {
		options = append(options, clientv3.WithKeysOnly())
	}
	for position, c := range b.commits {
		compares = append(append(compares, c.compares...), c.positions...)
		for _, w := range c.ws {
			key := b.store.data + w.Key
			switch {
			case deletes(w):
				now = append(now, clientv3.OpDelete(key))
			case !w.Guard:
				now = append(now, clientv3.OpPut(key, marked(position, w.Value)))
			}
			gets = append(gets, clientv3.OpGet(key, options...))
		}
	}
	if c := b.commits[0]; len(compares) > batchOps { // such a commit is alone in its batch
		hold, err := b.store.positionsHold(ctx, c.ws)
		if err != nil {
			return nil, nil, nil, err
		}
		if compares = slices.Clone(c.compares); !hold {
			compares = []clientv3.Cmp{neverHolds(b.store.head)}
		}
	}
	return compares, now, gets, nil
}

// sendTxn sends a transaction and sets b.sentAfter.
func (b *batch) sendTxn(ctx context.Context, most time.Duration, compares []clientv3.Cmp, now, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	s := b.store
	attempt, cancel := attemptContext(ctx, most)
	defer cancel()
	b.sentAfter = max(s.seen.Load(), b.fenceRevision)
	resp, err := s.client.Txn(attempt).If(compares...).Then(now...).Else(otherwise...).Commit()
	if err != nil && ctx.Err() == nil {
		_, route := routed(ctx)
		s.noteFailure(route, err)
	}
	return resp, err
}

// refuse answers the commits that expect other etcd revisions than resp shows, and keeps the others in
// the batch. If all etcd revisions are as expected, the position of a commit is not; then it refuses
// all commits that compare positions. If the batch has several commits, it answers them with
// errOtherRefused, so that each is retried alone.
func (b *batch) refuse(resp *clientv3.TxnResponse) {
	found, rest := map[*commit][]*pb.ResponseOp{}, resp.Responses
	for _, c := range b.commits {
		found[c], rest = rest[:len(c.ws)], rest[len(c.ws):]
	}
	failed := func(c *commit) bool {
		for i, w := range c.ws {
			if mismatches(w, found[c][i].GetResponseRange().Kvs) {
				return true
			}
		}
		return false
	}
	shared := false
	if !slices.ContainsFunc(b.commits, failed) {
		failed, shared = func(c *commit) bool { return len(c.positions) > 0 }, len(b.commits) > 1
	}
	b.commits = slices.DeleteFunc(b.commits, func(c *commit) bool {
		fails := failed(c)
		switch {
		case fails && shared:
			c.answer(0, errOtherRefused)
		case fails:
			c.answer(0, &refusal{resp.Header.Revision, found[c]})
		}
		return fails
	})
}

// executeWithoutSpace applies a commit that only deletes keys while etcd is out of space. etcd then
// accepts no put, so the transaction deletes the head instead of writing it. It leaves no name in the
// history, so it is sent only once. Because etcd applies the batch with which it runs out of space but
// answers with an error, executeWithoutSpace first looks whether the batch was applied.
func (b *batch) executeWithoutSpace(ctx context.Context, refused error) (revision int64, err error) {
	if b.sentAfter != 0 {
		if revision, err = b.lookUp(ctx); revision != 0 || err != nil {
			return revision, err
		}
	}
	if slices.ContainsFunc(b.commits[0].ws, func(w storage.Write) bool { return w.Value != nil }) { // true for each commit of a shared batch
		return 0, refused
	}
	for len(b.commits) > 0 {
		compares, now, gets, err := b.transaction(ctx)
		if err != nil {
			return 0, err
		}
		resp, err := b.sendTxn(ctx, callTime, compares, append(now, clientv3.OpDelete(b.store.head)), gets)
		switch {
		case err == nil && resp.Succeeded:
			return resp.Header.Revision, nil
		case err == nil:
			b.refuse(resp)
		case !b.store.notExecuted(err):
			return 0, unknown(err)
		case !wait(ctx, pauseTime):
			return 0, ctx.Err()
		}
	}
	return 0, nil
}
