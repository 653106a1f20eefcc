package etcdstore

import (
	"context"
	"errors"
	"iter"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// queueBytes is how much a watch has waiting for its consumer, and one answer of etcd more.
const queueBytes = 8 << 20

// Watch implements storage.Backend. It is a watch of etcd, and another one from where that
// has come to whenever it ends. A consumer that is too slow for the queue has none while it
// empties the queue.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		if ctx.Err() != nil {
			return
		}
		w := &watch{store: s, asked: ctx, prefix: prefix, seen: after, yield: yield}
		inner, cancel := s.living(ctx)
		defer cancel()
		for pause := pauseTime; ; {
			before := w.seen
			if !w.stretch(inner) {
				return
			}
			if w.seen > before {
				pause = pauseTime
				continue
			}
			if !wait(inner, pause) {
				w.fail(inner.Err())
				return
			}
			pause = min(2*pause, longPauseTime)
		}
	}
}

// watch is where a watch has come to.
type watch struct {
	store  *Store
	asked  context.Context // the caller's own
	prefix string
	seen   storage.Revision // up to which everything was delivered
	yield  func([]storage.Event, error) bool
}

// fail tells the consumer why the watch ends; that its own context has ended it knows.
func (w *watch) fail(err error) {
	if w.asked.Err() == nil {
		w.yield(nil, w.store.told(w.asked, err))
	}
}

// stretch delivers what one watch of etcd yields, and reports false if that was the last.
func (w *watch) stretch(ctx context.Context) bool {
	q := &queue{news: make(chan struct{}, 1)}
	stop, err := w.begin(ctx, q)
	if err != nil {
		if passing(err) && ctx.Err() == nil {
			w.store.logger.Warn("a watch waits for etcd", "prefix", w.prefix, "after", w.seen, "error", err)
			return true
		}
		w.fail(err)
		return false
	}
	defer stop()
	for {
		got := q.take()
		for _, c := range got.commits {
			w.seen = c[0].Revision
			if !w.yield(c, nil) || w.asked.Err() != nil {
				return false
			}
		}
		w.seen = max(w.seen, got.seen)
		switch {
		case got.err != nil:
			w.fail(got.err)
			return false
		case got.ended:
			return true
		}
		select {
		case <-q.news:
		case <-ctx.Done():
			w.fail(ctx.Err())
			return false
		}
	}
}

// begin starts a watch of etcd that fills the queue until it is stopped.
func (w *watch) begin(ctx context.Context, q *queue) (stop func(), err error) {
	inner, leave, err := w.store.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if w.seen, err = w.store.resume(inner, w.seen); err != nil {
		return nil, err
	}
	ctx, cancel := w.store.living(ctx)
	from := w.seen
	w.store.done.Go(func() { w.store.fill(ctx, cancel, q, w.prefix, from) })
	return cancel, nil
}

// resume returns the revision after which a watch of etcd yields what one of the store has
// to yield. etcd itself takes also the revision just before its history. Where another
// program has compacted what the watch has not seen, it has missed nothing if nothing was
// committed since.
func (s *Store) resume(ctx context.Context, after storage.Revision) (storage.Revision, error) {
	err := s.again(ctx, func(ctx context.Context) error {
		_, err := s.client.Get(ctx, s.head, clientv3.WithRev(max(1, int64(after))), clientv3.WithCountOnly())
		return err
	})
	if !errors.Is(err, rpctypes.ErrCompacted) {
		if errors.Is(err, rpctypes.ErrFutureRev) {
			err = nil
		}
		return after, err
	}
	return s.missed(ctx, after)
}

// missed returns the revision that etcd is compacted to if nothing was committed after a
// revision up to there; else there is a gap.
func (s *Store) missed(ctx context.Context, after storage.Revision) (storage.Revision, error) {
	for {
		floor, err := s.floorOf(ctx, after)
		if err != nil {
			return after, err
		}
		var resp *clientv3.GetResponse
		err = s.again(ctx, func(ctx context.Context) (err error) {
			resp, err = s.client.Get(ctx, s.head, clientv3.WithRev(floor))
			return err
		})
		switch {
		case errors.Is(err, rpctypes.ErrCompacted):
			continue // since
		case err != nil:
			return after, err
		case len(resp.Kvs) == 0 || resp.Kvs[0].ModRevision > int64(after):
			return after, storage.ErrCompacted
		}
		return storage.Revision(floor), nil
	}
}

// floorOf returns the revision that etcd is compacted to, which is after a given one. etcd does
// not tell it, only of each revision whether it can be read.
func (s *Store) floorOf(ctx context.Context, after storage.Revision) (int64, error) {
	at, err := s.readHead(ctx)
	if err != nil {
		return 0, err
	}
	first, last := int64(after)+1, int64(at.etcd)
	for first < last {
		middle := first + (last-first)/2
		err := s.again(ctx, func(ctx context.Context) error {
			_, err := s.client.Get(ctx, s.head, clientv3.WithRev(middle), clientv3.WithCountOnly())
			return err
		})
		switch {
		case err == nil:
			last = middle
		case errors.Is(err, rpctypes.ErrCompacted):
			first = middle + 1
		default:
			return 0, err
		}
	}
	return first, nil
}

// fill puts what etcd yields into the queue until it is full or the watch ends.
func (s *Store) fill(ctx context.Context, cancel func(), q *queue, prefix string, after storage.Revision) {
	defer q.end(nil)
	defer cancel()
	changes := s.client.Watch(clientv3.WithRequireLeader(ctx), s.data+prefix, clientv3.WithPrefix(),
		clientv3.WithRev(int64(after)+1), clientv3.WithPrevKV(), clientv3.WithFragment(), clientv3.WithProgressNotify())
	for resp := range changes {
		if err := resp.Err(); err != nil {
			s.logger.Debug("a watch of etcd ended", "prefix", prefix, "error", err)
			return
		}
		commits, size, err := s.commits(resp.Events)
		if !q.put(commits, size) {
			return
		}
		if err != nil {
			q.end(err)
			return
		}
		if resp.IsProgressNotify() {
			q.progress(storage.Revision(resp.Header.Revision))
		}
	}
}

// commits makes of events those of whole commits, and tells about how many bytes they hold.
// What an event replaced etcd leaves out if it is compacted; then there is a gap, and the
// commits before it are returned.
func (s *Store) commits(events []*clientv3.Event) (commits [][]storage.Event, size int, err error) {
	for _, e := range events {
		event := storage.Event{Record: s.record(e.Kv)}
		if e.Type == clientv3.EventTypeDelete {
			event.Value = nil
		}
		switch {
		case e.PrevKv != nil:
			event.Prev = s.record(e.PrevKv)
		case !e.IsCreate():
			for n := len(commits); n > 0 && commits[n-1][0].Revision == event.Revision; n = len(commits) {
				commits = commits[:n-1]
			}
			return commits, size, storage.ErrCompacted
		}
		size += len(event.Key) + len(event.Value) + len(event.Prev.Value)
		if n := len(commits); n > 0 && commits[n-1][0].Revision == event.Revision {
			commits[n-1] = append(commits[n-1], event)
		} else {
			commits = append(commits, []storage.Event{event})
		}
	}
	return commits, size, nil
}

// queue is what a watch of etcd has yielded and the consumer has not taken.
type queue struct {
	news chan struct{} // holds something if there may be something to take

	mu   sync.Mutex
	have batch
	size int
}

// batch is what a queue had, up to a revision if that is known.
type batch struct {
	commits [][]storage.Event
	seen    storage.Revision
	ended   bool  // nothing comes any more
	err     error // why, if the watch cannot go on
}

// put reports false if there is no room.
func (q *queue) put(commits [][]storage.Event, size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.have.commits) > 0 && q.size+size > queueBytes {
		return false
	}
	q.have.commits, q.size = append(q.have.commits, commits...), q.size+size
	q.wake()
	return true
}

func (q *queue) progress(seen storage.Revision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.have.seen = seen
	q.wake()
}

func (q *queue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.have.ended {
		q.have.ended, q.have.err = true, err
		q.wake()
	}
}

// wake is called with mu held.
func (q *queue) wake() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

func (q *queue) take() batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.have
	q.have.commits, q.size = nil, 0
	return b
}
