package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"orch.io/controlplane/storage"
)

// Watch implements storage.Backend. It watches etcd, and whenever that watch ends, starts another watch
// at the revision that it has reached. It buffers only the commit that is being received: etcd waits
// for a slow consumer and sends the events in pieces.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		if ctx.Err() != nil {
			return
		}
		inner, cancel := s.withLifetime(ctx)
		defer cancel()
		w := &watch{store: s, key: s.data + prefix, end: clientv3.GetPrefixRangeEnd(s.data + prefix), seen: after, deliver: func(c []storage.Event) bool {
			return yield(c, nil) && ctx.Err() == nil
		}}
		err := w.follow(inner)
		if err != nil && ctx.Err() == nil {
			yield(nil, s.storageError(ctx, err))
		}
	}
}

// watch is the state of a Watch. It is used by one goroutine, except lag.
type watch struct {
	store   *Store
	key     string           // the first watched key of etcd
	end     string           // the end of the watched range; "" watches only key
	seen    storage.Revision // all commits up to this revision were delivered
	from    int64            // the etcd revision at which the next watch of etcd starts
	commit  []storage.Event  // the events of the next commit that have arrived
	lag     lag
	deliver func([]storage.Event) bool
}

// errStopped is returned when the consumer stops.
var errStopped = errors.New("the consumer has ended the watch")

// follow delivers the commits of successive watches of etcd. It returns nil if the consumer stops.
func (w *watch) follow(ctx context.Context) error {
	ctx, route := routed(ctx)
	for pause := pauseTime; ; {
		before := w.seen
		err := w.watchOnce(ctx)
		switch {
		case err == errStopped:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !w.store.resumable(err):
			return err
		case w.seen > before:
			pause = pauseTime
		}
		route.fail()
		w.store.logger.Debug("watch of etcd ended; starting another", "key", w.key, "after", w.seen, "error", err)
		if !wait(ctx, pause) {
			return ctx.Err()
		}
		pause = min(2*pause, longPauseTime)
	}
}

// resumable reports whether another watch of etcd can continue after err. It may continue after a
// compaction, because the watch may have missed no commit.
func (s *Store) resumable(err error) bool {
	return s.retryable(err) || tooLarge(err) || errors.Is(err, io.EOF) || errors.Is(err, rpctypes.ErrCompacted)
}

// watchOnce delivers the commits of one watch of etcd, and returns the reason why it ended.
func (w *watch) watchOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel()
	begun := make(chan pb.Watch_WatchClient, 1)
	w.lag.reached.Store(int64(w.seen))
	looking.Go(func() {
		if w.lags(ctx, begun) {
			cancel()
		}
	})
	changes, err := w.begin(ctx)
	begun <- changes
	for err == nil {
		err = w.next(changes)
	}
	return err
}

// next receives the next answer and delivers its commits.
func (w *watch) next(changes pb.Watch_WatchClient) error {
	w.lag.waiting.Store(true)
	resp, err := changes.Recv()
	w.lag.waiting.Store(false)
	if err != nil {
		return rpctypes.Error(err)
	}
	err = w.handle(resp)
	w.lag.reached.Store(int64(w.seen))
	return err
}

// lag detects that the member of a watch no longer receives commits. A member that is partly cut off
// may keep its connection and believe that it has a leader, but send no events.
type lag struct {
	waiting atomic.Bool   // whether the watch waits for an answer
	reached atomic.Int64  // the value of watch.seen after the latest answer
	silence time.Duration // the limit for the next watch; 0 means lagTime
}

// A watch is restarted if it waits for its member for lagTime and does not reach a revision that the
// store has seen in other answers. The limit doubles after each restart that did not help, up to
// longLagTime, because etcd may need long to start a watch in the past. lagEvery is the interval
// between two checks.
const (
	lagTime     = 5 * time.Second
	longLagTime = time.Minute
	lagEvery    = time.Second
)

// lags returns true when the member lags behind, and false when the context ends.
func (w *watch) lags(ctx context.Context, begun <-chan pb.Watch_WatchClient) bool {
	l := &w.lag
	longest := max(l.silence, lagTime)
	var changes pb.Watch_WatchClient
	behind, since := int64(0), time.Now()
	for wait(ctx, lagEvery) {
		if changes == nil {
			select {
			case changes = <-begun:
			default:
			}
		}
		switch reached := l.reached.Load(); {
		case reached >= behind || !l.waiting.Load():
			if reached >= behind && behind > 0 {
				l.silence = 0
			}
			behind, since = w.store.shown.Load(), time.Now()
		case time.Since(since) >= longest:
			l.silence = min(2*longest, longLagTime)
			return true
		case changes != nil: // the watch may have reached the revision without an event
			_ = changes.Send(progress)
		}
	}
	return false
}

var progress = &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}

// begin starts a watch of etcd and handles its first answer.
func (w *watch) begin(ctx context.Context) (pb.Watch_WatchClient, error) {
	if err := w.resume(ctx); err != nil {
		return nil, err
	}
	changes, err := w.open(ctx)
	if err == nil {
		err = w.next(changes)
	}
	return changes, err
}

// resume sets the revision at which the next watch of etcd starts.
func (w *watch) resume(ctx context.Context) error {
	inner, leave, err := w.store.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	w.seen, w.from, err = w.store.resume(inner, w.seen)
	return err
}

// open starts a watch on a member. It does not use the watch of the etcd client, which assembles the
// pieces that etcd sends in memory, without a limit.
func (w *watch) open(ctx context.Context) (pb.Watch_WatchClient, error) {
	w.commit = nil
	changes, err := pb.NewWatchClient(w.store.client.ActiveConnection()).Watch(ctx, grpc.MaxCallRecvMsgSize(maxReceive), grpc.WaitForReady(true))
	if err != nil {
		return nil, rpctypes.Error(err)
	}
	_ = changes.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(w.key), RangeEnd: []byte(w.end), StartRevision: w.from,
		PrevKv: true, Fragment: true, ProgressNotify: true,
	}}}) // if Send fails, the first Recv returns the cause
	return changes, nil
}

// handle delivers the complete commits of an answer. If the answer is a fragment, its last commit may
// continue in the next answer.
func (w *watch) handle(resp *pb.WatchResponse) error {
	if resp.Canceled {
		return canceledError(resp)
	}
	for _, e := range resp.Events {
		position, _ := unmarked(e.Kv.Value)
		at := revisionOf(e.Kv.ModRevision, position)
		if at <= w.seen {
			continue
		}
		if len(w.commit) > 0 && w.commit[0].Revision != at {
			if err := w.deliverCommit(); err != nil {
				return err
			}
		}
		event, err := w.store.event(e)
		if err != nil {
			return err
		}
		w.commit = append(w.commit, event)
	}
	switch {
	case resp.Fragment:
	case len(w.commit) > 0:
		return w.deliverCommit()
	case !resp.Created && resp.Header != nil: // all events up to this revision were sent
		w.seen = max(w.seen, revisionOf(resp.Header.Revision, lastPosition))
	}
	return nil
}

// deliverCommit delivers w.commit.
func (w *watch) deliverCommit() error {
	c := w.commit
	w.commit, w.seen = nil, c[0].Revision
	raise(&w.store.seen, etcdOf(w.seen))
	if !w.deliver(c) {
		return errStopped
	}
	return nil
}

// canceledError returns the reason why etcd ended a watch.
func canceledError(resp *pb.WatchResponse) error {
	if resp.CompactRevision != 0 {
		return rpctypes.ErrCompacted
	}
	for _, known := range []error{rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrGRPCAuthOldRevision, rpctypes.ErrGRPCUserEmpty, rpctypes.ErrGRPCPermissionDenied} {
		if resp.CancelReason == known.Error() {
			return rpctypes.Error(known)
		}
	}
	return status.Error(codes.Aborted, fmt.Sprintf("etcd ended a watch: %s", resp.CancelReason))
}

// event converts an event of etcd. etcd omits the replaced record if it is compacted; then event
// returns ErrCompacted.
func (s *Store) event(e *mvccpb.Event) (storage.Event, error) {
	event := storage.Event{Record: s.record(e.Kv)}
	created := e.Type == mvccpb.Event_PUT && e.Kv.CreateRevision == e.Kv.ModRevision
	if e.Type == mvccpb.Event_DELETE {
		event.Value = nil
	}
	switch {
	case e.PrevKv != nil:
		event.Prev = s.record(e.PrevKv)
	case !created:
		return event, storage.ErrCompacted
	}
	return event, nil
}

// resume returns the etcd revision at which a watch that has seen all commits up to after must start,
// and the revision up to which it has missed no commit. If another program has compacted the history
// behind after, the watch can continue only if no commit was made in the compacted part.
func (s *Store) resume(ctx context.Context, after storage.Revision) (seen storage.Revision, from int64, err error) {
	etcd := etcdOf(after)
	at, err := s.headAt(ctx, etcd)
	inside := err == nil && !at.absent && at.revision > after // some commits of this transaction are later than after
	if inside && etcd > 1 {
		_, err = s.headAt(ctx, etcd-1) // the events need the records that the transaction replaced
	}
	switch {
	case inside && errors.Is(err, rpctypes.ErrCompacted):
		return after, etcd, storage.ErrCompacted
	case errors.Is(err, rpctypes.ErrCompacted):
		seen, err = s.skipCompacted(ctx, after)
		return seen, etcdOf(seen) + 1, err
	case inside, errors.Is(err, rpctypes.ErrFutureRev):
		return after, max(1, etcd), nil
	}
	return after, etcd + 1, err
}

// skipCompacted returns the last revision at the compaction revision of etcd if no commit was made
// between after and it. Otherwise the watch has missed commits, and skipCompacted returns ErrCompacted.
func (s *Store) skipCompacted(ctx context.Context, after storage.Revision) (storage.Revision, error) {
	for {
		floor, err := s.compactRevision(ctx, etcdOf(after))
		if err != nil {
			return after, err
		}
		at, err := s.headAt(ctx, floor)
		switch {
		case errors.Is(err, rpctypes.ErrCompacted):
			continue // compacted again meanwhile
		case err != nil:
			return after, err
		case at.absent || at.revision > after:
			return after, storage.ErrCompacted
		}
		return revisionOf(floor, lastPosition), nil
	}
}

// compactRevision returns the revision that etcd is compacted to, which must be larger than after. etcd
// does not report it, so compactRevision finds it by binary search.
func (s *Store) compactRevision(ctx context.Context, after int64) (int64, error) {
	at, err := s.readHead(ctx)
	if err != nil {
		return 0, err
	}
	first, last := after+1, at.etcd
	for first < last {
		middle := first + (last-first)/2
		err := s.retry(ctx, func(ctx context.Context) error {
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
