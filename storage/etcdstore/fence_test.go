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
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

func opened(t *testing.T, m *etcdtest.Member) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Endpoints: []string{m.Endpoint}, Prefix: "/own", Retain: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// begun is a batch of one commit that is under way.
func begun(t *testing.T, s *Store, key string) *batch {
	t.Helper()
	b := s.newBatch(s.newCommit(t.Context(), []storage.Write{{Key: key, Value: []byte("v"), Expect: storage.AnyRevision}}))
	var err error
	b.at, err = s.fenced(t.Context())
	require.NoError(t, err)
	b.after = s.seen.Load()
	return b
}

// sent gets the batch to etcd, now or later.
func (b *batch) sent(t *testing.T) *clientv3.TxnResponse {
	t.Helper()
	late := *b
	resp, err := late.send(t.Context(), callTime)
	require.NoError(t, err)
	return resp
}

func settled(t *testing.T, b *batch) (made int64) {
	t.Helper()
	made, err := b.settle(t.Context())
	require.NoError(t, err)
	return made
}

// TestSettle: of a commit without an answer it is found out that it was made, or it never is.
func TestSettle(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))

	made, not := begun(t, s, "made"), begun(t, s, "not")
	require.Equal(t, made.at, not.at)
	revision := made.sent(t).Header.Revision
	for i := range 10 { // others are made since
		_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte{byte(i)}, Expect: storage.AnyRevision})
		require.NoError(t, err)
	}
	require.Equal(t, revision, settled(t, made))
	require.Greater(t, s.fence.at.Load(), made.at)
	moved := s.fence.at.Load()
	require.Zero(t, settled(t, not))
	require.Equal(t, moved, s.fence.at.Load(), "one change is for all commits that depended on what was there")
	require.False(t, not.sent(t).Succeeded)

	gone, late := begun(t, s, "gone"), begun(t, s, "late")
	revision = gone.sent(t).Header.Revision
	_, err := s.client.Delete(t.Context(), s.fence.key)
	require.NoError(t, err)
	require.Equal(t, revision, settled(t, gone))
	require.Zero(t, settled(t, late))
	_, err = s.fenced(t.Context())
	require.NoError(t, err)
	require.False(t, late.sent(t).Succeeded)
	for _, key := range []string{"not", "late"} {
		_, err = s.Get(t.Context(), key, 0)
		require.ErrorIs(t, err, storage.ErrNotFound)
	}
}

// TestSettleBesideOthers: a commit is made where another one, which has no answer, changes the fence.
func TestSettleBesideOthers(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))
	etcd, calls := s.client.KV, 0
	s.client.KV = &between{etcd, func(make func() error) error {
		if calls++; calls == 2 { // after the fence was made
			_, err := s.pass(t.Context(), s.fence.at.Load())
			assert.NoError(t, err)
		}
		return make()
	}}
	_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v")})
	require.NoError(t, err)
}

// TestCompactedBesideACommit: where the history of a commit without an answer is gone nobody can tell
// whether it was made.
func TestCompactedBesideACommit(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))
	first, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v")})
	require.NoError(t, err)
	etcd, calls := s.client.KV, 0
	s.client.KV = &between{etcd, func(make func() error) error {
		if calls++; calls > 1 {
			return make()
		}
		failed := errors.Join(make(), status.Error(codes.Unavailable, "connection lost"))
		resp, err := etcd.Put(t.Context(), "others", "")
		assert.NoError(t, err)
		_, err = etcd.Compact(t.Context(), resp.Header.Revision)
		assert.NoError(t, err)
		return failed
	}}
	_, err = s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("w"), Expect: first})
	require.ErrorContains(t, err, "may or may not have happened")
	require.ErrorIs(t, err, storage.ErrCompacted)
}

// TestCompactedBesideCommits: what is gone of the history of one commit without an answer is nothing to another.
func TestCompactedBesideCommits(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))
	old := begun(t, s, "old")
	for range 3 {
		_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v"), Expect: storage.AnyRevision})
		require.NoError(t, err)
	}
	made := begun(t, s, "made")
	revision := made.sent(t).Header.Revision
	_, err := s.client.Compact(t.Context(), made.after)
	require.NoError(t, err)
	until, err := s.pass(t.Context(), made.at)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := old.made(t.Context(), until)
			assert.ErrorIs(t, err, storage.ErrCompacted)
		})
		all.Go(func() {
			found, err := made.made(t.Context(), until)
			assert.NoError(t, err)
			assert.Equal(t, revision, found)
		})
	}
	all.Wait()
}

// TestEndedCommit: a commit whose time has ended without an answer stands in nobody's way.
func TestEndedCommit(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))
	_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v")})
	require.NoError(t, err)
	at := s.fence.at.Load()
	etcd := s.client.KV
	s.client.KV = &slow{etcd, time.Minute}
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := s.Commit(ctx, storage.Write{Key: fmt.Sprint("k", i%4), Value: []byte("v"), Expect: storage.AnyRevision})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
	time.Sleep(2 * firstCommit)
	require.Equal(t, at, s.fence.at.Load())
}

// TestSweep: a store has one fence. Those that nobody changes are removed, and made again by a store that
// needs them.
func TestSweep(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s, gone := opened(t, m), opened(t, m)
	commit := func(s *Store, value string) {
		_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte(value), Expect: storage.AnyRevision})
		require.NoError(t, err)
	}
	for i := range 20 {
		commit(s, string(rune('a'+i)))
		commit(gone, string(rune('A'+i)))
	}
	require.NoError(t, gone.Close())
	looked := func(before map[string]int64) map[string]int64 {
		seen, err := s.sweep(t.Context(), before)
		require.NoError(t, err)
		return seen
	}
	seen := looked(nil)
	require.Len(t, seen, 2)
	_, err := s.pass(t.Context(), s.fence.at.Load())
	require.NoError(t, err)
	seen = looked(seen)
	require.Equal(t, map[string]int64{s.fence.key: s.fence.at.Load()}, seen)
	require.Empty(t, looked(seen))
	commit(s, "again")
	require.Equal(t, map[string]int64{s.fence.key: s.fence.at.Load()}, looked(nil))
}
