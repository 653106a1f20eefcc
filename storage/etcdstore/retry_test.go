package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// interceptedKV passes each call to a function, which may make it, drop it or make it later.
// Transactions have no deadline, so that they can be made late.
type interceptedKV struct {
	clientv3.KV
	call func(make func() error) error
}

func (b *interceptedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	err = b.call(func() (err error) { resp, err = b.KV.Get(ctx, key, opts...); return err })
	return resp, err
}

func (b *interceptedKV) Compact(ctx context.Context, at int64, opts ...clientv3.CompactOption) (resp *clientv3.CompactResponse, err error) {
	err = b.call(func() (err error) { resp, err = b.KV.Compact(ctx, at, opts...); return err })
	return resp, err
}

func (b *interceptedKV) Txn(ctx context.Context) clientv3.Txn {
	return &interceptedTxn{b.KV.Txn(context.WithoutCancel(ctx)), b.call}
}

type interceptedTxn struct {
	clientv3.Txn
	call func(make func() error) error
}

func (t *interceptedTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(cs...); return t }

func (t *interceptedTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }

func (t *interceptedTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *interceptedTxn) Commit() (resp *clientv3.TxnResponse, err error) {
	err = t.call(func() (err error) { resp, err = t.Txn.Commit(); return err })
	return resp, err
}

// failingCalls makes the next calls fail.
type failingCalls struct {
	mu   sync.Mutex
	next []error // errors of the next calls; nil for a call that succeeds
	made bool    // whether etcd executes the failing calls
}

func (u *failingCalls) fail(made bool, errs ...error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next, u.made = errs, made
}

func (u *failingCalls) call(make func() error) error {
	u.mu.Lock()
	var err error
	if len(u.next) > 0 {
		err, u.next = u.next[0], u.next[1:]
	}
	made := u.made
	u.mu.Unlock()
	if err == nil || made {
		if failed := make(); failed != nil {
			return failed
		}
	}
	return err
}

// TestTransientErrorsAreRetried: a call is retried after a transient error, and a commit is applied
// once whether or not it was applied before the error.
func TestTransientErrorsAreRetried(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	way := &failingCalls{}
	s.client.KV = &interceptedKV{s.client.KV, way.call}
	transient := map[string]error{
		"no leader":         rpctypes.ErrNoLeader,
		"leader changed":    rpctypes.ErrLeaderChanged,
		"too many requests": rpctypes.Error(rpctypes.ErrTooManyRequests),
		"dropped":           status.Error(codes.Unknown, "raft proposal dropped"),
		"no connection":     status.Error(codes.Unavailable, "connection refused"),
		"stopped":           status.Error(codes.Unknown, "raft: stopped"),
		"time":              context.DeadlineExceeded,
		"internal":          status.Error(codes.Internal, "stream terminated by RST_STREAM"),
		"token":             rpctypes.ErrInvalidAuthToken,
		"rights changed":    rpctypes.ErrAuthOldRevision,
	}
	var last storage.Revision
	for name, err := range transient {
		for _, made := range []bool{false, true} {
			if made && s.notExecuted(err) {
				continue // etcd never executes a call that it answers with this error
			}
			for lost := range 4 { // number of lost answers: of the commit, of the search for its outcome, of the next attempt
				t.Log(name, made, lost)
				var errs []error
				for range lost {
					errs = append(errs, fmt.Errorf("asked: %w", err))
				}
				way.fail(made, errs...)
				at, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte(name), Expect: last})
				require.NoError(t, err)
				way.fail(made, errs...)
				rec, err := s.Get(t.Context(), "k", 0)
				require.NoError(t, err)
				require.Equal(t, at, rec.Revision)
				last = at
			}
		}
	}
	way.fail(false, errors.New("for good"))
	_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v"), Expect: last})
	require.ErrorContains(t, err, "for good")
}

// TestLateFenceWriteKeepsOutcome: the first write of the fence gets no answer, and reaches etcd only after the
// first commit was applied, which gets no answer either. The store still finds out that the commit was
// applied.
func TestLateFenceWriteKeepsOutcome(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	etcd, calls := s.client.KV, 0
	var late func() error
	s.client.KV = &interceptedKV{etcd, func(make func() error) error {
		lost := status.Error(codes.Unavailable, "connection lost")
		switch calls++; calls {
		case 1:
			late = make
			return lost
		case 3:
			return errors.Join(make(), late(), lost)
		}
		return make()
	}}
	at, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v")})
	require.NoError(t, err)
	s.client.KV = etcd
	rec, err := s.Get(t.Context(), "k", 0)
	require.NoError(t, err)
	require.Equal(t, at, rec.Revision)
}

// TestCommitsOnSlowEtcd: all commits are applied exactly once although etcd needs longer for each than
// the first attempt lasts.
func TestCommitsOnSlowEtcd(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	etcd := s.client.KV
	s.client.KV = &slowKV{etcd, firstCommit + firstCommit/2}
	const committers, each = 16, 3
	var all sync.WaitGroup
	for i := range committers {
		all.Go(func() {
			var at storage.Revision
			for range each {
				var err error
				at, err = s.Commit(t.Context(), storage.Write{Key: fmt.Sprint(i), Value: []byte("v"), Expect: at})
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	s.client.KV = etcd
	for i := range committers {
		resp, err := etcd.Get(t.Context(), s.data+fmt.Sprint(i))
		require.NoError(t, err)
		require.EqualValues(t, each, resp.Kvs[0].Version)
	}
}

// slowKV executes transactions at once and answers after a delay.
type slowKV struct {
	clientv3.KV
	time time.Duration
}

func (s *slowKV) Txn(ctx context.Context) clientv3.Txn {
	return &interceptedTxn{s.KV.Txn(context.WithoutCancel(ctx)), func(make func() error) error {
		err := make()
		if !wait(ctx, s.time) {
			return ctx.Err()
		}
		return err
	}}
}

// TestCommitAfterRestoreToOlderState: etcd was restored to a state with an older revision, and the next
// commit of a store that has not noticed gets no answer.
func TestCommitAfterRestoreToOlderState(t *testing.T) {
	t.Parallel()
	for _, expect := range []storage.Revision{0, storage.AnyRevision} {
		s := openStore(t, etcdtest.Start(t))
		way := &failingCalls{}
		s.client.KV = &interceptedKV{s.client.KV, way.call}
		_, err := s.Commit(t.Context(), storage.Write{Key: "first", Value: []byte("v")})
		require.NoError(t, err)
		raise(&s.seen, 1000)
		way.fail(true, status.Error(codes.Unavailable, "connection lost"))
		at, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v"), Expect: expect})
		require.NoError(t, err)
		require.Less(t, s.seen.Load(), int64(1000))
		resp, err := s.client.Get(t.Context(), s.data+"k")
		require.NoError(t, err)
		require.EqualValues(t, 1, resp.Kvs[0].Version)
		require.Equal(t, at, revisionOf(resp.Kvs[0].ModRevision, 0))
	}
}

// TestRefusedCommitIsNotAppliedLater: a commit that was refused is not applied later by an earlier
// attempt without an answer, when its comparisons would hold again.
func TestRefusedCommitIsNotAppliedLater(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("theirs")})
	require.NoError(t, err)
	etcd := s.client.KV
	var late func() error
	s.client.KV = &interceptedKV{etcd, func(make func() error) error {
		if late == nil {
			late = make
			return status.Error(codes.Unavailable, "connection lost")
		}
		return make()
	}}
	_, err = s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("ours")})
	require.IsType(t, &storage.ConflictError{}, err)
	s.client.KV = etcd
	_, err = s.client.Delete(t.Context(), s.data+"k")
	require.NoError(t, err)
	require.NoError(t, late())
	_, err = s.Get(t.Context(), "k", 0)
	require.ErrorIs(t, err, storage.ErrNotFound)
}
