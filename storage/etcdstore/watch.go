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

// Watch implements storage.Backend. It is a watch of etcd, and another one from where that
// has come to whenever it ends. Nothing is kept for a consumer but what is on its way: etcd
// waits for it, and answers piece by piece.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		if ctx.Err() != nil {
			return
		}
		inner, cancel := s.living(ctx)
		defer cancel()
		w := &watch{store: s, key: s.data + prefix, end: clientv3.GetPrefixRangeEnd(s.data + prefix), seen: after, deliver: func(c []storage.Event) bool {
			return yield(c, nil) && ctx.Err() == nil
		}}
		err := w.follow(inner)
		if err != nil && ctx.Err() == nil {
			yield(nil, s.told(ctx, err))
		}
	}
}

// watch is where a watch has come to.
type watch struct {
	store   *Store
	key     string           // of etcd
	end     string           // before which all keys from that one on are watched; "": that one alone
	seen    storage.Revision // up to which everything was delivered
	from    int64            // the revision of etcd from which on it is asked for
	commit  []storage.Event  // the next one, as far as it has come
	lag     lag
	deliver func([]storage.Event) bool
}

// errEnough says that the consumer wants no more.
var errEnough = errors.New("the consumer has ended the watch")

// follow delivers what one watch of etcd after the other yields; nil is that the consumer wants
// no more.
func (w *watch) follow(ctx context.Context) error {
	ctx, route := routed(ctx)
	for pause := pauseTime; ; {
		before := w.seen
		err := w.stretch(ctx)
		switch {
		case err == errEnough:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !w.store.interrupted(err):
			return err
		case w.seen > before:
			pause = pauseTime
		}
		route.fail()
		w.store.logger.Debug("a watch of etcd ended", "key", w.key, "after", w.seen, "error", err)
		if !wait(ctx, pause) {
			return ctx.Err()
		}
		pause = min(2*pause, longPauseTime)
	}
}

// interrupted says that another watch of etcd may go on where one ended. What was compacted
// meanwhile may be nothing that the watch has missed.
func (s *Store) interrupted(err error) bool {
	return s.passing(err) || tooLarge(err) || errors.Is(err, io.EOF) || errors.Is(err, rpctypes.ErrCompacted)
}

// stretch delivers what one watch of etcd yields, and returns why it ended.
func (w *watch) stretch(ctx context.Context) error {
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

// next delivers the next answer.
func (w *watch) next(changes pb.Watch_WatchClient) error {
	w.lag.waits.Store(true)
	resp, err := changes.Recv()
	w.lag.waits.Store(false)
	if err != nil {
		return rpctypes.Error(err)
	}
	err = w.take(resp)
	w.lag.reached.Store(int64(w.seen))
	return err
}

// lag is how a watch notices that its member does not hear of commits: one that is half cut off may believe in a
// leader all the time, and say nothing.
type lag struct {
	waits   atomic.Bool   // for an answer
	reached atomic.Int64  // what seen is, between two answers
	silence time.Duration // that is too long; 0: lagTime
}

// How long a member may be silent to a watch that has not come to a revision that another one has told. It is
// longer after each time in vain, since etcd may need long to begin in the past.
const (
	lagTime     = 5 * time.Second
	longLagTime = time.Minute
	lagEvery    = time.Second
)

// lags returns true when the member lags, or false when the context ends.
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
		case reached >= behind || !l.waits.Load():
			if reached >= behind && behind > 0 {
				l.silence = 0
			}
			behind, since = w.store.shown.Load(), time.Now()
		case time.Since(since) >= longest:
			l.silence = min(2*longest, longLagTime)
			return true
		case changes != nil: // it may have come there without an event for the watch
			_ = changes.Send(progress)
		}
	}
	return false
}

var progress = &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}

// begin starts a watch of etcd and takes its first answer.
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

// resume finds out where a watch of etcd goes on.
func (w *watch) resume(ctx context.Context) error {
	inner, leave, err := w.store.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	w.seen, w.from, err = w.store.resume(inner, w.seen)
	return err
}

// open asks a member for a watch. The client's own puts together what etcd sends in pieces, however
// much it is.
func (w *watch) open(ctx context.Context) (pb.Watch_WatchClient, error) {
	w.commit = nil
	changes, err := pb.NewWatchClient(w.store.client.ActiveConnection()).Watch(ctx, grpc.MaxCallRecvMsgSize(maxReceive), grpc.WaitForReady(true))
	if err != nil {
		return nil, rpctypes.Error(err)
	}
	_ = changes.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(w.key), RangeEnd: []byte(w.end), StartRevision: w.from,
		PrevKv: true, Fragment: true, ProgressNotify: true,
	}}}) // the first answer says why it failed
	return changes, nil
}

// take delivers the commits of an answer that are complete. An answer that others follow may end
// within a commit.
func (w *watch) take(resp *pb.WatchResponse) error {
	if resp.Canceled {
		return canceled(resp)
	}
	for _, e := range resp.Events {
		place, _ := unmarked(e.Kv.Value)
		at := revisionOf(e.Kv.ModRevision, place)
		if at <= w.seen {
			continue
		}
		if len(w.commit) > 0 && w.commit[0].Revision != at {
			if err := w.complete(); err != nil {
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
		return w.complete()
	case !resp.Created && resp.Header != nil: // everything until then was sent
		w.seen = max(w.seen, revisionOf(resp.Header.Revision, lastPlace))
	}
	return nil
}

// complete delivers the commit that has come.
func (w *watch) complete() error {
	c := w.commit
	w.commit, w.seen = nil, c[0].Revision
	raise(&w.store.seen, etcdOf(w.seen))
	if !w.deliver(c) {
		return errEnough
	}
	return nil
}

// canceled is why etcd has ended a watch.
func canceled(resp *pb.WatchResponse) error {
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

// event is what etcd says of a key. What the commit replaced it leaves out if that is compacted;
// then there is a gap.
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

// resume returns from which revision of etcd a watch goes on that has seen everything up to a revision, and up to
// which one it has missed nothing. Where another program has compacted what it has not seen, that is nothing if
// nothing was committed since.
func (s *Store) resume(ctx context.Context, after storage.Revision) (seen storage.Revision, from int64, err error) {
	etcd := etcdOf(after)
	at, err := s.headAt(ctx, etcd)
	within := err == nil && !at.absent && at.revision > after // a part of what etcd has there is to come
	if within && etcd > 1 {
		_, err = s.headAt(ctx, etcd-1) // for what that part replaced
	}
	switch {
	case within && errors.Is(err, rpctypes.ErrCompacted):
		return after, etcd, storage.ErrCompacted
	case errors.Is(err, rpctypes.ErrCompacted):
		seen, err = s.missed(ctx, after)
		return seen, etcdOf(seen) + 1, err
	case within, errors.Is(err, rpctypes.ErrFutureRev):
		return after, max(1, etcd), nil
	}
	return after, etcd + 1, err
}

// missed returns the last revision that etcd is compacted to if nothing was committed after a
// revision up to there; else there is a gap.
func (s *Store) missed(ctx context.Context, after storage.Revision) (storage.Revision, error) {
	for {
		floor, err := s.floorOf(ctx, etcdOf(after))
		if err != nil {
			return after, err
		}
		at, err := s.headAt(ctx, floor)
		switch {
		case errors.Is(err, rpctypes.ErrCompacted):
			continue // since
		case err != nil:
			return after, err
		case at.absent || at.revision > after:
			return after, storage.ErrCompacted
		}
		return revisionOf(floor, lastPlace), nil
	}
}

// floorOf returns the revision that etcd is compacted to, which is after a given one of etcd. etcd does
// not tell it, only of each revision whether it can be read.
func (s *Store) floorOf(ctx context.Context, after int64) (int64, error) {
	at, err := s.readHead(ctx)
	if err != nil {
		return 0, err
	}
	first, last := after+1, at.etcd
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
