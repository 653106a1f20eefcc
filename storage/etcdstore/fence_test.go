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

func openStore(t *testing.T, m *etcdtest.Member) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Endpoints: []string{m.Endpoint}, Prefix: "/own", Retain: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// newRunningBatch returns a batch with one commit, ready to be sent.
func newRunningBatch(t *testing.T, s *Store, key string) *batch {
	t.Helper()
	b := s.newBatch(s.newCommit(t.Context(), []storage.Write{{Key: key, Value: []byte("v"), Expect: storage.AnyRevision}}))
	var err error
	b.fenceRevision, err = s.ensureFence(t.Context())
	require.NoError(t, err)
	b.sentAfter = s.seen.Load()
	return b
}

// mustSend sends a copy of the batch.
func (b *batch) mustSend(t *testing.T) *clientv3.TxnResponse {
	t.Helper()
	late := *b
	resp, err := late.send(t.Context(), callTime)
	require.NoError(t, err)
	return resp
}

func mustResolve(t *testing.T, b *batch) (made int64) {
	t.Helper()
	made, err := b.resolve(t.Context())
	require.NoError(t, err)
	return made
}

// TestResolveDeterminesOutcome: the outcome of an unanswered commit is either that it was applied, or that it never will
// be.
func TestResolveDeterminesOutcome(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))

	made, not := newRunningBatch(t, s, "made"), newRunningBatch(t, s, "not")
	require.Equal(t, made.fenceRevision, not.fenceRevision)
	revision := made.mustSend(t).Header.Revision
	for i := range 10 { // other commits follow
		_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte{byte(i)}, Expect: storage.AnyRevision})
		require.NoError(t, err)
	}
	require.Equal(t, revision, mustResolve(t, made))
	require.Greater(t, s.fence.revision.Load(), made.fenceRevision)
	moved := s.fence.revision.Load()
	require.Zero(t, mustResolve(t, not))
	require.Equal(t, moved, s.fence.revision.Load(), "one move resolves all commits that compared the old fence")
	require.False(t, not.mustSend(t).Succeeded)

	gone, late := newRunningBatch(t, s, "gone"), newRunningBatch(t, s, "late")
	revision = gone.mustSend(t).Header.Revision
	_, err := s.client.Delete(t.Context(), s.fence.key)
	require.NoError(t, err)
	require.Equal(t, revision, mustResolve(t, gone))
	require.Zero(t, mustResolve(t, late))
	_, err = s.ensureFence(t.Context())
	require.NoError(t, err)
	require.False(t, late.mustSend(t).Succeeded)
	for _, key := range []string{"not", "late"} {
		_, err = s.Get(t.Context(), key, 0)
		require.ErrorIs(t, err, storage.ErrNotFound)
	}
}

// TestCommitWhileAnotherMovesTheFence: a commit succeeds although another commit, which got no answer,
// changes the fence meanwhile.
func TestCommitWhileAnotherMovesTheFence(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	etcd, calls := s.client.KV, 0
	s.client.KV = &interceptedKV{etcd, func(make func() error) error {
		if calls++; calls == 2 { // after the fence was created
			_, err := s.moveFence(t.Context(), s.fence.revision.Load())
			assert.NoError(t, err)
		}
		return make()
	}}
	_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v")})
	require.NoError(t, err)
}

// TestCompactionMakesOutcomeUnknown: if the history since an unanswered commit is compacted, its
// outcome is unknown.
func TestCompactionMakesOutcomeUnknown(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	first, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v")})
	require.NoError(t, err)
	etcd, calls := s.client.KV, 0
	s.client.KV = &interceptedKV{etcd, func(make func() error) error {
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

// TestCompactionAffectsOnlyOlderCommits: if the history since one unanswered commit is compacted, the
// outcome of a later commit can still be found.
func TestCompactionAffectsOnlyOlderCommits(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	old := newRunningBatch(t, s, "old")
	for range 3 {
		_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v"), Expect: storage.AnyRevision})
		require.NoError(t, err)
	}
	made := newRunningBatch(t, s, "made")
	revision := made.mustSend(t).Header.Revision
	_, err := s.client.Compact(t.Context(), made.sentAfter)
	require.NoError(t, err)
	until, err := s.moveFence(t.Context(), made.fenceRevision)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := old.findInHistory(t.Context(), until)
			assert.ErrorIs(t, err, storage.ErrCompacted)
		})
		all.Go(func() {
			found, err := made.findInHistory(t.Context(), until)
			assert.NoError(t, err)
			assert.Equal(t, revision, found)
		})
	}
	all.Wait()
}

// TestCanceledCommitLeavesTheFence: a commit whose context ended without an answer does not move the
// fence.
func TestCanceledCommitLeavesTheFence(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v")})
	require.NoError(t, err)
	at := s.fence.revision.Load()
	etcd := s.client.KV
	s.client.KV = &slowKV{etcd, time.Minute}
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := s.Commit(ctx, storage.Write{Key: fmt.Sprint("k", i%4), Value: []byte("v"), Expect: storage.AnyRevision})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
	time.Sleep(2 * firstCommit)
	require.Equal(t, at, s.fence.revision.Load())
}

// TestSweepRemovesUnusedFences: each store has one fence. A fence that does not change is removed, and
// created again when its store commits.
func TestSweepRemovesUnusedFences(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s, gone := openStore(t, m), openStore(t, m)
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
	_, err := s.moveFence(t.Context(), s.fence.revision.Load())
	require.NoError(t, err)
	seen = looked(seen)
	require.Equal(t, map[string]int64{s.fence.key: s.fence.revision.Load()}, seen)
	require.Empty(t, looked(seen))
	commit(s, "again")
	require.Equal(t, map[string]int64{s.fence.key: s.fence.revision.Load()}, looked(nil))
}
