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

// progressEvery is the interval between progress requests on a watch.
const progressEvery = 20 * time.Millisecond

// readNewest returns the newest revision of the store. It is linearizable. It is called by s.heads
// only, one call at a time.
//
// If the head does not exist, the newest revision is that of the last commit in the history of etcd
// since the previous call. The newest revision of etcd is no substitute, because other programs
// increase it: a caller that waits for a watch to reach it would wait until the next commit of the
// store.
func (s *Store) readNewest(ctx context.Context, _ struct{}) (head, error) {
	acked := storage.Revision(s.acked.Load())
	at, err := s.readHead(ctx)
	if err != nil {
		return at, err
	}
	s.detectLoss(acked, at.revision)
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

// lastCommit returns the revision of the last commit up to the etcd revision last. It returns the last
// possible revision there if the commit cannot be determined, because the history since known is
// compacted or lost.
func (s *Store) lastCommit(ctx context.Context, known head, last int64) (newest storage.Revision, err error) {
	switch newest = known.revision; {
	case known.etcd == 0 || known.etcd > last:
		return revisionOf(last, lastPosition), nil
	case known.etcd == last:
		return newest, nil
	}
	w := &watch{store: s, key: s.data, end: clientv3.GetPrefixRangeEnd(s.data), seen: revisionOf(known.etcd, lastPosition), deliver: func(c []storage.Event) bool {
		newest = c[0].Revision
		return true
	}}
	err = s.retry(ctx, func(ctx context.Context) error { return w.until(ctx, last) })
	if errors.Is(err, storage.ErrCompacted) || errors.Is(err, rpctypes.ErrCompacted) {
		return revisionOf(last, lastPosition), nil
	}
	return newest, err
}

// until delivers the commits up to the etcd revision last.
func (w *watch) until(ctx context.Context, last int64) error {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	// etcd may answer a progress request before it confirms the watch and sends the events in between,
	// so the requests begin after the confirmation.
	changes, err := w.begin(ctx)
	if err != nil {
		return err
	}
	asking.Go(func() {
		for changes.Send(progress) == nil && wait(ctx, progressEvery) { // etcd answers when the watch has reached the newest revision
		}
	})
	for w.seen < revisionOf(last, lastPosition) {
		if err := w.next(changes); err != nil {
			return err
		}
	}
	return nil
}
