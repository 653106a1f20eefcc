package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
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
	at    atomic.Int64 // the revision of its last change, as far as the store knows; 0: it may not be there
	owner string       // the first part of the names of its commits
	names atomic.Int64 // that were given
}

func (f *fence) begin(prefix string) {
	f.owner = rand.Text()
	f.key = prefix + f.owner
}

// name is one that no commit had before. A commit leaves it in the head.
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
	var revision int64
	if len(now) > 0 {
		revision = now[0].ModRevision
	}
	f.at.CompareAndSwap(at, revision)
	return revision != at
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

// fenced returns the revision that a commit depends on, once the fence is there.
func (s *Store) fenced(ctx context.Context) (at int64, err error) {
	for at = s.fence.at.Load(); at == 0 && err == nil; at = s.fence.at.Load() {
		_, err = s.change(ctx, 0, clientv3.OpPut(s.fence.key, ""))
	}
	return at, err
}

// change changes the fence if it is as it was at a revision. What depends on that is made at the revision
// that it returns at the latest.
func (s *Store) change(ctx context.Context, at int64, how clientv3.Op) (until int64, err error) {
	f := &s.fence
	err = s.again(ctx, func(ctx context.Context) error {
		resp, err := s.client.Txn(ctx).If(f.unchanged(at)).Then(how).Else(clientv3.OpGet(f.key)).Commit()
		if err != nil {
			return err
		}
		switch until = resp.Header.Revision; {
		case !resp.Succeeded:
			f.moved(at, resp.Responses[0].GetResponseRange().Kvs)
		case how.IsPut():
			f.at.CompareAndSwap(at, until)
		default:
			f.at.CompareAndSwap(at, 0)
		}
		return nil
	})
	return until, err
}

// settle finds out what became of a commit that etcd has not answered and that depends on the fence as it
// was at a revision: it returns the revision of the commit, or 0 if it will never be made. Where etcd has
// no room the fence cannot be put, but goes.
func (c *commit) settle(ctx context.Context, at int64) (made int64, err error) {
	s := c.store
	until := s.fence.at.Load()
	if until == at || until == 0 { // or else another commit has changed it
		until, err = s.change(ctx, at, clientv3.OpPut(s.fence.key, ""))
	}
	if errors.Is(err, rpctypes.ErrNoSpace) {
		until, err = s.change(ctx, at, clientv3.OpDelete(s.fence.key))
	}
	if err != nil {
		return 0, unknown(err)
	}
	return c.made(ctx, until)
}

// look finds out whether a commit that etcd has refused was made all the same.
func (c *commit) look(ctx context.Context) (made int64, err error) {
	at, err := c.store.readHead(ctx)
	if err != nil {
		return 0, unknown(err)
	}
	return c.made(ctx, int64(at.etcd))
}

// made returns the revision of the commit if it was made up to a revision, or 0.
func (c *commit) made(ctx context.Context, until int64) (revision int64, err error) {
	if c.after >= until {
		return 0, nil
	}
	w := &watch{store: c.store, key: c.store.head, seen: storage.Revision(c.after), deliver: func(made []storage.Event) bool {
		if string(made[0].Value) == c.name {
			revision = int64(made[0].Revision)
		}
		return revision == 0
	}}
	err = c.store.again(ctx, func(ctx context.Context) error { return w.until(ctx, storage.Revision(until)) })
	if err != nil && err != errEnough {
		return 0, unknown(err)
	}
	return revision, nil
}

// sweep removes fences that have stayed the same since the look before, as those of stores that
// are gone do, and returns those that it has seen now. A store whose fence is removed makes it again
// for its next commit.
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
