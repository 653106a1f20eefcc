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

// fenceTime is how long a fence has stayed the same that may be removed.
const fenceTime = time.Hour

// fence is a key of one store by which it finds out what became of a commit that etcd has not answered.
// Commits depend on the revision of its last change, and only who has a commit without an answer changes
// it: what depends on the fence as it was is made by then, or never will be. A fence that is removed has
// changed, too.
type fence struct {
	key   string
	at    atomic.Int64  // the revision of its last change, as far as the store knows; 0: it may not be there
	turn  chan struct{} // holds one value while the fence is changed; no commit begins to be sent meanwhile
	owner string        // the first part of the names of its batches
	names atomic.Int64  // that were given
}

func (f *fence) begin(prefix string) {
	f.owner, f.turn = rand.Text(), make(chan struct{}, 1)
	f.key = prefix + f.owner
}

// name is one that no batch had before. It is left in the head.
func (f *fence) name() string {
	return f.owner + "-" + strconv.FormatInt(f.names.Add(1), 10)
}

// unchanged is what a commit depends on.
func (f *fence) unchanged(at int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(f.key), "=", at)
}

// moved takes note of what is there where the fence was expected to be as it was at a revision, and
// reports whether it has changed.
func (f *fence) moved(at int64, now []*mvccpb.KeyValue) bool {
	revision := changed(now)
	f.at.CompareAndSwap(at, revision)
	return revision != at
}

// changed is when a key that was read was last changed, or 0 if it is not there.
func changed(found []*mvccpb.KeyValue) int64 {
	if len(found) == 0 {
		return 0
	}
	return found[0].ModRevision
}

// raise sets a revision to one that is later, if it is.
func raise(to *atomic.Int64, revision int64) {
	for {
		have := to.Load()
		if have >= revision || to.CompareAndSwap(have, revision) {
			return
		}
	}
}

// take waits until the fence is changed by nobody else.
func (f *fence) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case f.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fence) give() { <-f.turn }

// fenced returns the revision that a commit depends on, once the fence is there and nobody changes it.
func (s *Store) fenced(ctx context.Context) (at int64, err error) {
	f := &s.fence
	for at = f.at.Load(); at == 0 && err == nil; at = f.at.Load() {
		if err = f.take(ctx); err != nil {
			break
		}
		if f.at.Load() == 0 {
			_, err = s.change(ctx, 0, clientv3.OpPut(f.key, ""))
		}
		f.give()
	}
	return at, err
}

// change changes the fence if it is as it was at a revision. What depends on that is made at the revision
// that it returns at the latest. It is the caller's turn.
func (s *Store) change(ctx context.Context, at int64, how clientv3.Op) (until int64, err error) {
	f := &s.fence
	err = s.again(ctx, func(ctx context.Context) error {
		resp, err := s.client.Txn(ctx).If(f.unchanged(at)).Then(how).Else(clientv3.OpGet(f.key)).Commit()
		if err != nil {
			return err
		}
		switch until = resp.Header.Revision; {
		case !resp.Succeeded:
			f.at.Store(changed(resp.Responses[0].GetResponseRange().Kvs))
		case how.IsPut():
			f.at.Store(until)
		}
		return nil
	})
	return until, err
}

// pass returns a revision at which whatever depends on the fence as it was at another one is made, if it
// ever is. Where etcd has no room the fence cannot be put, but goes.
func (s *Store) pass(ctx context.Context, at int64) (until int64, err error) {
	f := &s.fence
	if err = f.take(ctx); err != nil {
		return 0, err
	}
	defer f.give()
	if until = f.at.Load(); until > at {
		return until, nil // for another commit
	}
	f.at.Store(0)
	until, err = s.change(ctx, at, clientv3.OpPut(f.key, ""))
	if errors.Is(err, rpctypes.ErrNoSpace) {
		until, err = s.change(ctx, at, clientv3.OpDelete(f.key))
	}
	return until, err
}

// settle finds out what became of a batch that etcd has not answered: it returns its revision, or 0 if it
// will never be made.
func (b *batch) settle(ctx context.Context) (made int64, err error) {
	until, err := b.store.pass(ctx, b.at)
	if err != nil {
		return 0, unknown(err)
	}
	return b.made(ctx, until)
}

// look finds out whether a batch that etcd has refused was made all the same.
func (b *batch) look(ctx context.Context) (made int64, err error) {
	at, err := b.store.readHead(ctx)
	if err != nil {
		return 0, unknown(err)
	}
	if at.etcd == b.after {
		return 0, nil
	}
	return b.made(ctx, at.etcd)
}

// made returns the revision of the batch if it was made up to a revision, or 0. It would miss one only if
// etcd was put back to what it had before, the store's first call after that was the batch, and others made
// up for what was lost before it was settled.
func (b *batch) made(ctx context.Context, until int64) (revision int64, err error) {
	after := b.after
	if after >= until { // etcd was put back to what it had before; that the fence was there holds all the same
		after = b.at
	}
	if after >= until {
		return 0, nil
	}
	names, err := b.store.named.ask(ctx, b.store, func(h *history) { h.widen(after, until) })
	if errors.Is(err, storage.ErrCompacted) { // it may be what others have asked for
		names, err = b.store.readNames(ctx, history{after, until})
	}
	if err != nil {
		return 0, unknown(err)
	}
	return names[b.name], nil
}

// history is what came after a revision, up to another one.
type history struct{ after, until int64 }

func (h *history) widen(after, until int64) {
	if h.until == 0 || after < h.after {
		h.after = after
	}
	h.until = max(h.until, until)
}

// readNames returns the revisions of the batches of the store in a part of the history, by their names.
func (s *Store) readNames(ctx context.Context, h history) (made map[string]int64, err error) {
	made = map[string]int64{}
	w := &watch{store: s, key: s.head, seen: revisionOf(h.after, lastPlace), deliver: func(c []storage.Event) bool {
		at := etcdOf(c[0].Revision)
		if name := string(c[0].Value); strings.HasPrefix(name, s.fence.owner) {
			made[name] = at
		}
		return at < h.until
	}}
	err = s.again(ctx, func(ctx context.Context) error { return w.until(ctx, h.until) })
	if err == errEnough {
		err = nil
	}
	return made, compacted(err)
}

// sweep removes fences that have stayed the same since the look before, as those of stores that
// are gone do, and returns those that it has seen now. That of an open store goes, too, if all its commits
// were answered: the next one makes it again.
func (s *Store) sweep(ctx context.Context, before map[string]int64) (map[string]int64, error) {
	now := map[string]int64{}
	err := s.again(ctx, func(ctx context.Context) error {
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
		err := s.again(ctx, func(ctx context.Context) error {
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

// clean sweeps as long as the store is open. The time between two looks is by its own clock.
func (s *Store) clean() {
	var seen map[string]int64
	for wait(s.life, fenceTime) {
		var err error
		if seen, err = s.sweep(s.life, seen); err != nil && s.life.Err() == nil {
			s.logger.Warn("fences of commits were not removed from etcd", "error", err)
		}
	}
}
