package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// unreliable is the way to an etcd on which the next transactions or reads fail.
type unreliable struct {
	clientv3.KV

	mu   sync.Mutex
	next []error // of the calls to come, nil for one that gets its answer
	made bool    // etcd makes those that fail, too
}

func (u *unreliable) fail(made bool, errs ...error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next, u.made = errs, made
}

// call makes a call, or not.
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

func (u *unreliable) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	err = u.call(func() (err error) { resp, err = u.KV.Get(ctx, key, opts...); return err })
	return resp, err
}

func (u *unreliable) Txn(ctx context.Context) clientv3.Txn { return &unreliableTxn{u.KV.Txn(ctx), u} }

type unreliableTxn struct {
	clientv3.Txn
	way *unreliable
}

func (t *unreliableTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(cs...); return t }

func (t *unreliableTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }

func (t *unreliableTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *unreliableTxn) Commit() (resp *clientv3.TxnResponse, err error) {
	err = t.way.call(func() (err error) { resp, err = t.Txn.Commit(); return err })
	return resp, err
}

// TestTriedAgain: what fails for a reason that passes is tried again, and a commit is made once
// whether it was made before it failed or not.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))
	way := &unreliable{KV: s.client.KV}
	s.client.KV = way
	passing := map[string]error{
		"no leader":         rpctypes.ErrNoLeader,
		"leader changed":    rpctypes.ErrLeaderChanged,
		"too many requests": rpctypes.Error(rpctypes.ErrTooManyRequests),
		"dropped":           status.Error(codes.Unknown, "raft proposal dropped"),
		"no connection":     status.Error(codes.Unavailable, "connection refused"),
		"time":              context.DeadlineExceeded,
		"internal":          status.Error(codes.Internal, "stream terminated by RST_STREAM"),
		"token":             rpctypes.ErrInvalidAuthToken,
		"rights changed":    rpctypes.ErrAuthOldRevision,
	}
	var last storage.Revision
	for name, err := range passing {
		for _, made := range []bool{false, true} {
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
