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

// between is what is between a store and its etcd: it makes the calls, or not, or later. Transactions
// have no bound in time, so that they can be late.
type between struct {
	clientv3.KV
	call func(make func() error) error
}

func (b *between) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	err = b.call(func() (err error) { resp, err = b.KV.Get(ctx, key, opts...); return err })
	return resp, err
}

func (b *between) Compact(ctx context.Context, at int64, opts ...clientv3.CompactOption) (resp *clientv3.CompactResponse, err error) {
	err = b.call(func() (err error) { resp, err = b.KV.Compact(ctx, at, opts...); return err })
	return resp, err
}

func (b *between) Txn(ctx context.Context) clientv3.Txn {
	return &betweenTxn{b.KV.Txn(context.WithoutCancel(ctx)), b.call}
}

type betweenTxn struct {
	clientv3.Txn
	call func(make func() error) error
}

func (t *betweenTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(cs...); return t }

func (t *betweenTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }

func (t *betweenTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *betweenTxn) Commit() (resp *clientv3.TxnResponse, err error) {
	err = t.call(func() (err error) { resp, err = t.Txn.Commit(); return err })
	return resp, err
}

// unreliable is the way to an etcd on which the next calls fail.
type unreliable struct {
	mu   sync.Mutex
	next []error // of the calls to come, nil for one that gets its answer
	made bool    // etcd makes those that fail, too
}

func (u *unreliable) fail(made bool, errs ...error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next, u.made = errs, made
}

func (u *unreliable) call(make func() error) error {
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

// TestTriedAgain: what fails for a reason that passes is tried again, and a commit is made once
// whether it was made before it failed or not.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))
	way := &unreliable{}
	s.client.KV = &between{s.client.KV, way.call}
	passing := map[string]error{
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
	for name, err := range passing {
		for _, made := range []bool{false, true} {
			if made && s.turnedAway(err) {
				continue // etcd makes no such call
			}
			for lost := range 4 { // so many answers: of the commit, of finding out, of the next attempt
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

// TestLatePut: the fence is made by a call that has no answer, and gets to etcd when the first commit has
// been made and has no answer either. That it was made is known all the same.
func TestLatePut(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))
	etcd, calls := s.client.KV, 0
	var late func() error
	s.client.KV = &between{etcd, func(make func() error) error {
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

// TestSlowEtcd: etcd takes longer for each commit than its first attempt lasts, and all are made, once.
func TestSlowEtcd(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))
	etcd := s.client.KV
	s.client.KV = &slow{etcd, firstCommit + firstCommit/2}
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

// slow is an etcd that gets transactions at once, and answers them after a time.
type slow struct {
	clientv3.KV
	time time.Duration
}

func (s *slow) Txn(ctx context.Context) clientv3.Txn {
	return &betweenTxn{s.KV.Txn(context.WithoutCancel(ctx)), func(make func() error) error {
		err := make()
		if !wait(ctx, s.time) {
			return ctx.Err()
		}
		return err
	}}
}

// TestPutBack: etcd was put back to what it had when its revision was an older one, and the next commit,
// by a store that has not noticed, has no answer.
func TestPutBack(t *testing.T) {
	t.Parallel()
	for _, expect := range []storage.Revision{0, storage.AnyRevision} {
		s := opened(t, etcdtest.Start(t))
		way := &unreliable{}
		s.client.KV = &between{s.client.KV, way.call}
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

// TestConflictIsFinal: a commit whose comparisons fail is not made later by an attempt that had no
// answer, when they would hold again.
func TestConflictIsFinal(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))
	_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("theirs")})
	require.NoError(t, err)
	etcd := s.client.KV
	var late func() error
	s.client.KV = &between{etcd, func(make func() error) error {
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
