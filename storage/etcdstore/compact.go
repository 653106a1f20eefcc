package etcdstore

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// Compact implements storage.Backend. It compacts the whole cluster.
func (s *Store) Compact(ctx context.Context, before storage.Revision) error {
	at, err := s.Revision(ctx)
	switch {
	case err != nil:
		return err
	case before > at:
		return storage.ErrFuture
	case before <= 0:
		return nil
	}
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	oldest, err := s.needed(inner, before)
	if err == nil {
		err = s.compact(inner, oldest)
	}
	return s.told(ctx, err)
}

// needed returns the oldest revision of etcd that is needed for a state. In the midst of a transaction that is the
// one before it.
func (s *Store) needed(ctx context.Context, state storage.Revision) (oldest int64, err error) {
	oldest = max(1, etcdOf(state))
	at, err := s.headAt(ctx, oldest)
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return oldest, nil
	case !at.absent && at.revision > state:
		return oldest - 1, err
	}
	return oldest, err
}

// compact compacts etcd up to one of its revisions.
func (s *Store) compact(ctx context.Context, before int64) error {
	err := s.again(ctx, func(ctx context.Context) error {
		_, err := s.client.Compact(ctx, before)
		return err
	})
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil // by whomever
	}
	return err
}

// forgetPart of Retain is how often a store looks what it may forget.
const forgetPart = 64

// forget compacts what has been replaced for longer than keep. Every store of the cluster
// does it, and knows by its own clock when it saw which revision.
func (s *Store) forget(keep time.Duration) {
	tick := time.NewTicker(max(keep/forgetPart, pauseTime))
	defer tick.Stop()
	known := storage.Retention{Keep: keep}
	c := compactor{store: s}
	for {
		if at, err := s.Revision(s.life); err == nil {
			now := time.Now()
			known.Committed(now, at)
			if oldest := etcdOf(known.Oldest(now)); oldest > 0 { // Revision is never within a transaction
				c.warn(oldest, c.reach(s.life, oldest))
			}
		}
		select {
		case <-tick.C:
		case <-s.life.Done():
			return
		}
	}
}

// compactor is one of those that compact a cluster. Who has done it last does it again, and
// each other one stands aside for a turn before it takes over, so that one of them works
// as long as it lives.
type compactor struct {
	store *Store
	last  int64 // the revision in which the floor was last seen to be set
	told  string
}

// warn tells of an error once, until there is another one or none.
func (c *compactor) warn(before int64, err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != "" && said != c.told && c.store.life.Err() == nil {
		c.store.logger.Warn("etcd was not compacted", "before", before, "error", err)
	}
	c.told = said
}

// reach makes sure that the history before a revision of etcd is forgotten, now or at a later turn.
func (c *compactor) reach(ctx context.Context, before int64) error {
	s := c.store
	var resp *clientv3.GetResponse
	err := s.again(ctx, func(ctx context.Context) (err error) {
		_, err = s.client.Get(ctx, s.floor, clientv3.WithRev(before-1), clientv3.WithCountOnly())
		if err == nil {
			resp, err = s.client.Get(ctx, s.floor)
		}
		return err
	})
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil
	}
	if err != nil {
		return err
	}
	var set int64
	if len(resp.Kvs) > 0 {
		set = resp.Kvs[0].ModRevision
	}
	if set != c.last {
		c.last = set
		return nil
	}
	won, err := c.win(ctx, before)
	if !won || err != nil {
		return err
	}
	return s.compact(ctx, before)
}

// win reports whether the floor was set, by this compactor alone.
func (c *compactor) win(ctx context.Context, before int64) (bool, error) {
	floor := c.store.floor
	var resp *clientv3.TxnResponse
	err := c.store.again(ctx, func(ctx context.Context) (err error) { // if the first answer is lost nobody wins this turn
		resp, err = c.store.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(floor), "=", c.last)).
			Then(clientv3.OpPut(floor, strconv.FormatInt(before, 10))).Commit()
		return err
	})
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return true, nil // all may compact, since that makes room
	}
	if err != nil {
		return false, err
	}
	if resp.Succeeded {
		c.last = resp.Header.Revision
	}
	return resp.Succeeded, nil
}
