package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// fenceTime is how long a fence must be unchanged before it is removed.
const fenceTime = time.Hour

// fence is a key that belongs to one store and lets it find out the outcome of a commit that etcd has
// not answered. Each transaction of the store compares the etcd revision of the fence. After a
// transaction without an answer, the store writes the fence: from that revision on, a transaction that
// compared the old revision either has been applied or never will be. Removing the fence has the same
// effect.
type fence struct {
	key      string
	revision atomic.Int64  // the etcd revision of its last known change; 0 if the key may not exist
	lockChan chan struct{} // a lock, held while the fence is written; no transaction is sent for the first time meanwhile
	owner    string        // prefix of the names of all batches of the store
	names    atomic.Int64  // number of names that were given out
}

func (f *fence) begin(prefix string) {
	f.owner, f.lockChan = rand.Text(), make(chan struct{}, 1)
	f.key = prefix + f.owner
}

// name returns a unique name for a batch, which the batch writes into the head.
func (f *fence) name() string {
	return f.owner + "-" + strconv.FormatInt(f.names.Add(1), 10)
}

// unchanged returns the comparison that the fence still has an etcd revision.
func (f *fence) unchanged(at int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(f.key), "=", at)
}

// observe records the current state of the fence, which a transaction that compared the revision at has
// read, and reports whether the fence has changed.
func (f *fence) observe(at int64, now []*mvccpb.KeyValue) bool {
	revision := modRevision(now)
	f.revision.CompareAndSwap(at, revision)
	return revision != at
}

// modRevision returns the etcd revision of the last change of a key that was read, or 0 if the key does
// not exist.
func modRevision(found []*mvccpb.KeyValue) int64 {
	if len(found) == 0 {
		return 0
	}
	return found[0].ModRevision
}

// raise sets a revision to the larger of its value and the given one.
func raise(to *atomic.Int64, revision int64) {
	for {
		have := to.Load()
		if have >= revision || to.CompareAndSwap(have, revision) {
			return
		}
	}
}

// lock waits until no other goroutine writes the fence.
func (f *fence) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case f.lockChan <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fence) unlock() { <-f.lockChan }

// ensureFence returns the etcd revision of the fence, after creating the fence if it does not exist.
func (s *Store) ensureFence(ctx context.Context) (at int64, err error) {
	f := &s.fence
	for at = f.revision.Load(); at == 0 && err == nil; at = f.revision.Load() {
		if err = f.lock(ctx); err != nil {
			break
		}
		if f.revision.Load() == 0 {
			_, err = s.writeFence(ctx, 0, clientv3.OpPut(f.key, ""))
		}
		f.unlock()
	}
	return at, err
}

// writeFence applies op to the fence if its etcd revision is at. It returns an etcd revision by which
// each transaction that compared at has been applied, if it ever is. The caller must hold the lock of
// the fence.
func (s *Store) writeFence(ctx context.Context, at int64, op clientv3.Op) (until int64, err error) {
	f := &s.fence
	err = s.retry(ctx, func(ctx context.Context) error {
		resp, err := s.client.Txn(ctx).If(f.unchanged(at)).Then(op).Else(clientv3.OpGet(f.key)).Commit()
		if err != nil {
			return err
		}
		switch until = resp.Header.Revision; {
		case !resp.Succeeded:
			f.revision.Store(modRevision(resp.Responses[0].GetResponseRange().Kvs))
		case op.IsPut():
			f.revision.Store(until)
		}
		return nil
	})
	return until, err
}

// moveFence changes the fence, unless it has changed since the revision at. It returns an etcd revision
// by which each transaction that compared at has been applied, if it ever is. If etcd has no space for
// a put, it deletes the fence.
func (s *Store) moveFence(ctx context.Context, at int64) (until int64, err error) {
	f := &s.fence
	if err = f.lock(ctx); err != nil {
		return 0, err
	}
	defer f.unlock()
	if until = f.revision.Load(); until > at {
		return until, nil // changed on behalf of another commit
	}
	f.revision.Store(0)
	until, err = s.writeFence(ctx, at, clientv3.OpPut(f.key, ""))
	if errors.Is(err, rpctypes.ErrNoSpace) {
		until, err = s.writeFence(ctx, at, clientv3.OpDelete(f.key))
	}
	return until, err
}

// resolve finds out the outcome of a batch that etcd has not answered. It returns the etcd revision of
// the batch, or 0 if the batch will never be applied.
func (b *batch) resolve(ctx context.Context) (made int64, err error) {
	until, err := b.store.moveFence(ctx, b.fenceRevision)
	if err != nil {
		return 0, unknown(err)
	}
	return b.findInHistory(ctx, until)
}

// lookUp finds out whether a batch was applied although etcd returned an error that refuses it.
func (b *batch) lookUp(ctx context.Context) (made int64, err error) {
	at, err := b.store.readHead(ctx)
	if err != nil {
		return 0, unknown(err)
	}
	if at.etcd == b.sentAfter {
		return 0, nil
	}
	return b.findInHistory(ctx, at.etcd)
}

// findInHistory returns the etcd revision of the batch if it was applied before or at the revision
// until, or 0. It misses a batch only if all of the following is true: etcd was restored to an older
// state, the batch was the first call of the store after that, and other writes replaced the lost
// revisions before the outcome was searched.
func (b *batch) findInHistory(ctx context.Context, until int64) (revision int64, err error) {
	after := b.sentAfter
	if after >= until { // etcd was restored to an older state; begin at the fence, which existed then
		after = b.fenceRevision
	}
	if after >= until {
		return 0, nil
	}
	names, err := b.store.batchNames.get(ctx, b.store, func(h *history) { h.widen(after, until) })
	if errors.Is(err, storage.ErrCompacted) { // the history may be compacted only for another query of the same call
		names, err = b.store.readBatchNames(ctx, history{after, until})
	}
	if err != nil {
		return 0, unknown(err)
	}
	return names[b.name], nil
}

// history is a range of etcd revisions: larger than after, up to and including until.
type history struct{ after, until int64 }

func (h *history) widen(after, until int64) {
	if h.until == 0 || after < h.after {
		h.after = after
	}
	h.until = max(h.until, until)
}

// readBatchNames returns the etcd revisions of the batches of this store in a part of the history, by
// their names.
func (s *Store) readBatchNames(ctx context.Context, h history) (made map[string]int64, err error) {
	made = map[string]int64{}
	w := &watch{store: s, key: s.head, seen: revisionOf(h.after, lastPosition), deliver: func(c []storage.Event) bool {
		at := etcdOf(c[0].Revision)
		if name := string(c[0].Value); strings.HasPrefix(name, s.fence.owner) {
			made[name] = at
		}
		return at < h.until
	}}
	err = s.retry(ctx, func(ctx context.Context) error { return w.until(ctx, h.until) })
	if err == errStopped {
		err = nil
	}
	return made, revisionError(err)
}

// sweep removes the fences that are unchanged since the previous call, which returned before, and
// returns the revisions of the remaining fences by key. Fences of stores that are gone are removed this
// way. The fence of an open store is removed too if no commit of it went unanswered; the next commit
// creates it again.
func (s *Store) sweep(ctx context.Context, before map[string]int64) (map[string]int64, error) {
	now := map[string]int64{}
	err := s.retry(ctx, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.fences, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err == nil {
			for _, kv := range resp.Kvs {
				now[string(kv.Key)] = kv.ModRevision
			}
		}
		return err
	})
	if err != nil {
		return before, err
	}
	for key, at := range now {
		if before[key] != at {
			continue
		}
		err := s.retry(ctx, func(ctx context.Context) error {
			_, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", at)).Then(clientv3.OpDelete(key)).Commit()
			return err
		})
		if err != nil {
			return now, err
		}
		delete(now, key)
	}
	return now, nil
}

// sweepLoop calls sweep every fenceTime, by its own clock, until the store is closed.
func (s *Store) sweepLoop() {
	var seen map[string]int64
	for wait(s.lifetime, fenceTime) {
		var err error
		if seen, err = s.sweep(s.lifetime, seen); err != nil && s.lifetime.Err() == nil {
			s.logger.Warn("failed to remove unused fences from etcd", "error", err)
		}
	}
}
