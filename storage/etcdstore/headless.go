package etcdstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// progressEvery is how often a watch is asked how far it has come.
const progressEvery = 20 * time.Millisecond

// newest is linearizable. Only one call is under way at a time.
//
// Without a head the newest revision is that of the last commit in etcd's history since the store
// knew it last. It could not be that of etcd, which other programs raise: who waits for a watch to
// come to it would wait until the next commit.
func (s *Store) newest(ctx context.Context, _ struct{}) (head, error) {
	acked := storage.Revision(s.acked.Load())
	at, err := s.readHead(ctx)
	if err != nil {
		return at, err
	}
	s.compare(acked, at.revision)
	if at.absent {
		if etcdOf(acked) > s.known.etcd {
			s.known = head{revision: acked, etcd: etcdOf(acked)}
		}
		if at.revision, err = s.lastCommit(ctx, s.known, at.etcd); err != nil {
			return at, err
		}
	} else {
		raise(&s.acked, int64(at.revision))
	}
	s.known = at
	s.shown.Store(int64(at.revision))
	return at, nil
}

// lastCommit returns the revision of the last commit up to a revision of etcd, or that one if
// nobody can know it: the history since the store knew the last commit is compacted, or etcd has lost it.
func (s *Store) lastCommit(ctx context.Context, known head, last int64) (newest storage.Revision, err error) {
	switch newest = known.revision; {
	case known.etcd == 0 || known.etcd > last:
		return revisionOf(last, lastPlace), nil
	case known.etcd == last:
		return newest, nil
	}
	w := &watch{store: s, key: s.data, end: clientv3.GetPrefixRangeEnd(s.data), seen: revisionOf(known.etcd, lastPlace), deliver: func(c []storage.Event) bool {
		newest = c[0].Revision
		return true
	}}
	err = s.again(ctx, func(ctx context.Context) error { return w.until(ctx, last) })
	if errors.Is(err, storage.ErrCompacted) || errors.Is(err, rpctypes.ErrCompacted) {
		return revisionOf(last, lastPlace), nil
	}
	return newest, err
}

// until delivers what there is up to a revision of etcd.
func (w *watch) until(ctx context.Context, last int64) error {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	// etcd may answer how far it has come before it says that the watch has begun, and what is between,
	// so that is asked only then.
	changes, err := w.begin(ctx)
	if err != nil {
		return err
	}
	asking.Go(func() {
		for changes.Send(progress) == nil && wait(ctx, progressEvery) { // it answers when it has come to the end
		}
	})
	for w.seen < revisionOf(last, lastPlace) {
		if err := w.next(changes); err != nil {
			return err
		}
	}
	return nil
}
