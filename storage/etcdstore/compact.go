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
	oldest, err := s.oldestNeeded(inner, before)
	if err == nil {
		err = s.compact(inner, oldest)
	}
	return s.storageError(ctx, err)
}

// oldestNeeded returns the oldest etcd revision that is needed to read at state. If state is not the
// last commit of its transaction, that is the revision before the transaction, which rewind reads.
func (s *Store) oldestNeeded(ctx context.Context, state storage.Revision) (oldest int64, err error) {
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

// compact compacts etcd up to an etcd revision.
func (s *Store) compact(ctx context.Context, before int64) error {
	err := s.retry(ctx, func(ctx context.Context) error {
		_, err := s.client.Compact(ctx, before)
		return err
	})
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil // compacted already
	}
	return err
}

// retainFraction determines the interval between two runs of compactLoop: Retain divided by it.
const retainFraction = 64

// compactLoop compacts the history that was replaced more than keep ago, until the store is closed.
// Every store of the cluster does this, and measures the age of revisions by its own clock.
func (s *Store) compactLoop(keep time.Duration) {
	tick := time.NewTicker(max(keep/retainFraction, pauseTime))
	defer tick.Stop()
	known := storage.Retention{Keep: keep}
	c := compactor{store: s}
	for {
		if at, err := s.Revision(s.lifetime); err == nil {
			now := time.Now()
			known.Committed(now, at)
			if oldest := etcdOf(known.Oldest(now)); oldest > 0 { // Revision returns only the last revision of a transaction
				c.warn(oldest, c.compactBefore(s.lifetime, oldest))
			}
		}
		select {
		case <-tick.C:
		case <-s.lifetime.Done():
			return
		}
	}
}

// compactor elects, among the stores of a cluster, the store that compacts. The store that compacted
// last compacts again. Each other store skips a turn whenever it sees a new value of the compactor key,
// so it takes over only if the key stays unchanged for a whole turn.
type compactor struct {
	store        *Store
	seenRevision int64 // the etcd revision of the compactor key when it was last read
	lastError    string
}

// warn logs err unless it is the same as in the previous turn.
func (c *compactor) warn(before int64, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != c.lastError && c.store.lifetime.Err() == nil {
		c.store.logger.Warn("failed to compact etcd", "before", before, "error", err)
	}
	c.lastError = text
}

// compactBefore compacts the history before an etcd revision, unless another store does. It may leave
// the work to a later turn.
func (c *compactor) compactBefore(ctx context.Context, before int64) error {
	s := c.store
	var resp *clientv3.GetResponse
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		_, err = s.client.Get(ctx, s.compactorKey, clientv3.WithRev(before-1), clientv3.WithCountOnly())
		if err == nil {
			resp, err = s.client.Get(ctx, s.compactorKey)
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
	if set != c.seenRevision {
		c.seenRevision = set
		return nil
	}
	won, err := c.claim(ctx, before)
	if !won || err != nil {
		return err
	}
	return s.compact(ctx, before)
}

// claim reports whether this compactor may compact now. It writes the compactor key if the key is
// unchanged since the compactor read it, so at most one store succeeds.
func (c *compactor) claim(ctx context.Context, before int64) (bool, error) {
	floor := c.store.compactorKey
	var resp *clientv3.TxnResponse
	err := c.store.retry(ctx, func(ctx context.Context) (err error) { // if the answer to the first attempt is lost, the retry fails and no store compacts in this turn
		resp, err = c.store.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(floor), "=", c.seenRevision)).
			Then(clientv3.OpPut(floor, strconv.FormatInt(before, 10))).Commit()
		return err
	})
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return true, nil // all stores may compact, because compaction makes room
	}
	if err != nil {
		return false, err
	}
	if resp.Succeeded {
		c.seenRevision = resp.Header.Revision
	}
	return resp.Succeeded, nil
}
