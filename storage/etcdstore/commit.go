package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// commit is a commit that its caller waits for.
type commit struct {
	ctx       context.Context // ends when the caller gives up
	ws        []storage.Write
	compares  []clientv3.Cmp // of etcd revisions
	positions []clientv3.Cmp // of the positions in the expected revisions
	size      int

	done     chan struct{} // closed after revision and err are set
	revision storage.Revision
	err      error
}

// Commit implements storage.Backend.
func (s *Store) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	ws, err := storage.NormalizeCommit(ws)
	if err != nil {
		return 0, err
	}
	if len(ws) > storage.CommitLength {
		return 0, fmt.Errorf("%w: %d writes", storage.ErrTooLarge, len(ws))
	}
	if size := bytesOf(ws); size > maxSend { // larger requests would take longer than an attempt may last
		return 0, fmt.Errorf("%w: %d bytes", storage.ErrTooLarge, size)
	}
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	acked := storage.Revision(s.acked.Load())
	revision, err := s.commit(inner, ws)
	if err != nil {
		return 0, s.storageError(ctx, err)
	}
	s.detectLoss(acked, revision)
	raise(&s.acked, int64(revision))
	raise(&s.shown, int64(revision))
	return revision, nil
}

func bytesOf(ws []storage.Write) (size int) {
	for _, w := range ws {
		size += len(w.Key) + len(w.Value)
	}
	return size
}

// detectLoss records a loss of commits if revision is older than before, which was the newest revision
// at an earlier time.
func (s *Store) detectLoss(before, revision storage.Revision) {
	if revision < before {
		s.lost.CompareAndSwap(0, int64(before))
	}
}

// commit applies the writes, in a shared batch if possible. If a shared batch was refused and the
// conflict may belong to another of its commits, or the state at the refusal is compacted, commit tries
// again alone.
func (s *Store) commit(ctx context.Context, ws []storage.Write) (storage.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for alone := false; ; alone = true {
		c := s.newCommit(ctx, ws)
		err := s.await(c, alone)
		var r *refusal
		switch {
		case err == nil:
			return c.revision, nil
		case errors.Is(err, errOtherRefused):
			continue
		case errors.As(err, &r):
			err = s.conflict(ctx, ws, r)
		}
		if !errors.Is(err, rpctypes.ErrCompacted) || errors.Is(err, errUnknown) {
			return 0, err
		}
	}
}

// await submits a commit and waits for the answer.
func (s *Store) await(c *commit, alone bool) error {
	if alone || !s.queue.join(s, c) {
		s.newBatch(c).run(c.ctx)
		return c.err
	}
	select {
	case <-c.done:
		return c.err
	case <-c.ctx.Done():
		return unknown(c.ctx.Err())
	}
}

var errUnknown = errors.New("the commit may or may not have happened")

func unknown(err error) error { return fmt.Errorf("%w: %w", errUnknown, err) }

func (s *Store) newCommit(ctx context.Context, ws []storage.Write) *commit {
	c := &commit{ctx: ctx, ws: slices.Clone(ws), size: bytesOf(ws), done: make(chan struct{})}
	c.compares, c.positions = s.comparisons(ws)
	return c
}

func (c *commit) answer(revision storage.Revision, err error) {
	c.revision, c.err = revision, err
	close(c.done)
}

func deletes(w storage.Write) bool { return w.Value == nil && !w.Guard }

// neverHolds returns a comparison that always fails.
func neverHolds(key string) clientv3.Cmp { return clientv3.Compare(clientv3.ModRevision(key), "<", 0) }

// comparisons returns the comparisons of etcd revisions and of positions that the writes need.
func (s *Store) comparisons(ws []storage.Write) (revisions, places []clientv3.Cmp) {
	for _, w := range ws {
		key := s.data + w.Key
		switch {
		case deletes(w) && w.Expect == 0: // a key that does not exist cannot be deleted
			revisions = append(revisions, neverHolds(key))
		case deletes(w) && w.Expect == storage.AnyRevision:
			revisions = append(revisions, clientv3.Compare(clientv3.ModRevision(key), ">", 0))
		case w.Expect == storage.AnyRevision:
		default:
			revisions = append(revisions, clientv3.Compare(clientv3.ModRevision(key), "=", etcdOf(w.Expect)))
			if w.Expect != 0 {
				places = append(places, hasPosition(key, positionOf(w.Expect))...)
			}
		}
	}
	return revisions, places
}
