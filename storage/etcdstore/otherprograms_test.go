package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// newClient returns a client of etcd, as another program uses it.
func newClient(t testing.TB, m *etcdtest.Member) *clientv3.Client {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func put(t testing.TB, s storage.Backend, key, value string) storage.Revision {
	t.Helper()
	revision, err := s.Commit(t.Context(), storage.Write{Key: key, Value: []byte(value), Expect: storage.AnyRevision})
	require.NoError(t, err)
	return revision
}

func keys(t testing.TB, s storage.Backend, at storage.Revision) (keys []string) {
	t.Helper()
	shown, records, err := s.Scan(t.Context(), "", "", at)
	require.NoError(t, err)
	if at != 0 {
		require.Equal(t, at, shown)
	}
	for rec, err := range records {
		require.NoError(t, err)
		keys = append(keys, rec.Key)
	}
	return keys
}

// TestOtherProgramsInTheCluster: writes and compactions by other programs in the cluster change neither
// the newest revision nor the newest state, and do not end watches that have missed no commit.
func TestOtherProgramsInTheCluster(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s, other := open(t, m, "/ours"), newClient(t, m)
	defer func() { require.NoError(t, s.Close()) }()
	first := put(t, s, "a", "1")
	newest := put(t, s, "b", "2")
	var theirs int64
	for range 20 {
		resp, err := other.Put(t.Context(), "/ours-not/data/x", "y")
		require.NoError(t, err)
		theirs = resp.Header.Revision
	}
	check := func() {
		at, err := s.Revision(t.Context())
		require.NoError(t, err)
		require.Equal(t, newest, at)
		for _, at := range []storage.Revision{0, newest} {
			require.Equal(t, []string{"a", "b"}, keys(t, s, at))
			rec, err := s.Get(t.Context(), "a", at)
			require.NoError(t, err)
			require.Equal(t, first, rec.Revision)
		}
		for _, at := range []storage.Revision{newest + 1, max(newest+1, storage.Revision(theirs)<<5)} {
			_, err = s.Get(t.Context(), "a", at)
			require.ErrorIs(t, err, storage.ErrFuture)
			_, _, err = s.Scan(t.Context(), "", "", at)
			require.ErrorIs(t, err, storage.ErrFuture)
		}
		require.ErrorIs(t, s.Compact(t.Context(), newest+1), storage.ErrFuture)
	}
	check()
	_, err := other.Compact(t.Context(), theirs)
	require.NoError(t, err)
	check()
	_, err = s.Get(t.Context(), "a", first)
	require.ErrorIs(t, err, storage.ErrCompacted)
	require.ErrorIs(t, firstOf(t, s, first), storage.ErrCompacted)
	after := newest
	newest = put(t, s, "b", "3")
	require.NoError(t, firstOf(t, s, after))
	check()
}

// firstOf returns the error of the first element of a watch; nil if it is a commit.
func firstOf(t testing.TB, s storage.Backend, after storage.Revision) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, err := range s.Watch(ctx, "", after) {
		return err
	}
	return errors.New("the watch ended")
}

// TestDeletionsSucceedWithoutSpace: when etcd has no space, commits fail with ErrFull, except commits
// that only delete. All commits succeed when there is space again.
func TestDeletionsSucceedWithoutSpace(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t, "--quota-backend-bytes=4194304")
	s, other := open(t, m, "/full"), newClient(t, m)
	defer func() { require.NoError(t, s.Close()) }()
	newest := put(t, s, "b", "2")
	var err error
	n := 0
	for ; err == nil; n++ {
		require.Less(t, n, 1000)
		var at storage.Revision
		if at, err = s.Commit(t.Context(), storage.Write{Key: fmt.Sprint("k/", n), Value: make([]byte, 1<<16)}); err == nil {
			newest = at
		}
	}
	require.ErrorIs(t, err, storage.ErrFull)
	require.NoError(t, s.Writable(t.Context()))
	again, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: []string{m.Endpoint}, Prefix: "/new", Retain: -1})
	require.NoError(t, err, "a store can be opened without space")
	require.NoError(t, again.Close())
	require.Len(t, keys(t, s, 0), n, "exactly the acknowledged commits are there")
	deleted := newest
	for some := range slices.Chunk(keys(t, s, 0)[1:], storage.CommitLength) {
		var ws []storage.Write
		for _, key := range some {
			ws = append(ws, storage.Write{Key: key, Expect: storage.AnyRevision})
		}
		at, err := s.Commit(t.Context(), ws...)
		require.NoError(t, err)
		require.Greater(t, at, deleted)
		deleted = at
	}
	require.NoError(t, s.Check(t.Context()))
	require.Equal(t, []string{"b"}, keys(t, s, 0))
	require.Equal(t, []string{"b"}, keys(t, s, deleted))
	at, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, at, deleted)
	_, err = s.Commit(t.Context(), storage.Write{Key: "b", Expect: newest})
	require.IsType(t, &storage.ConflictError{}, err)
	_, err = s.Commit(t.Context(), storage.Write{Key: "b", Value: []byte("3"), Expect: storage.AnyRevision})
	require.ErrorIs(t, err, storage.ErrFull)

	require.NoError(t, s.Compact(t.Context(), deleted))
	_, err = other.Defragment(t.Context(), m.Endpoint)
	require.NoError(t, err)
	_, err = other.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	require.NoError(t, err)
	last := put(t, s, "b", "3")
	require.Greater(t, last, deleted)
	at, err = s.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, last, at)
	require.NoError(t, firstOf(t, s, deleted))
}

// TestRevisionWithoutHead: the revision of a deletion without space is the newest revision until the
// next commit, whatever other programs do meanwhile. A store that is opened then returns a revision
// that is no older.
func TestRevisionWithoutHead(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t, "--quota-backend-bytes=4194304")
	s, other := open(t, m, "/full"), newClient(t, m)
	defer func() { require.NoError(t, s.Close()) }()
	put(t, s, "a", "1")
	put(t, s, "b", "1")
	foreign := 0
	for err := error(nil); err == nil; foreign++ {
		require.Less(t, foreign, 1000)
		_, err = other.Put(t.Context(), fmt.Sprint("foreign/", foreign), string(make([]byte, 1<<16)))
	}
	others := func() {
		_, err := other.Delete(t.Context(), fmt.Sprint("foreign/", foreign-2))
		require.NoError(t, err)
		foreign--
	}
	newest := func(s storage.Backend) storage.Revision {
		at, err := s.Revision(t.Context())
		require.NoError(t, err)
		return at
	}
	deleted, err := s.Commit(t.Context(), storage.Write{Key: "a", Expect: storage.AnyRevision})
	require.NoError(t, err)
	others()
	for range 2 {
		require.Equal(t, deleted, newest(s))
	}
	late := open(t, m, "/full")
	defer func() { require.NoError(t, late.Close()) }()
	shown := newest(late)
	require.GreaterOrEqual(t, shown, deleted)
	others()
	require.Equal(t, shown, newest(late))

	_, err = other.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	require.NoError(t, err)
	_, err = other.Defragment(t.Context(), m.Endpoint)
	require.NoError(t, err)
	for range 3 {
		others()
		require.Equal(t, deleted, newest(s))
		require.Equal(t, shown, newest(late))
	}
	deleted, err = late.Commit(t.Context(), storage.Write{Key: "b", Expect: storage.AnyRevision})
	require.NoError(t, err)
	others()
	require.Equal(t, deleted, newest(s))
	require.Equal(t, deleted, newest(late))
}

// TestCommitBeyondLimitsIsErrTooLarge: a commit that etcd or the store rejects because of its size
// fails with ErrTooLarge, and writes nothing.
func TestCommitBeyondLimitsIsErrTooLarge(t *testing.T) {
	t.Parallel()
	s := open(t, etcdtest.Start(t), "/large")
	defer func() { require.NoError(t, s.Close()) }()
	newest := put(t, s, "a", "1")
	for _, size := range []int{3 << 19, 3 << 20, 300 << 20} {
		_, err := s.Commit(t.Context(), storage.Write{Key: "a", Value: make([]byte, size), Expect: storage.AnyRevision})
		require.ErrorIs(t, err, storage.ErrTooLarge, "%d bytes", size)
	}
	var ws []storage.Write
	for i := range storage.CommitLength + 1 {
		ws = append(ws, storage.Write{Key: fmt.Sprint(i), Value: []byte("x")})
	}
	_, err := s.Commit(t.Context(), ws...)
	require.ErrorIs(t, err, storage.ErrTooLarge)
	at, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, newest, at)
}

// TestStoresCompactTogether: several stores compact old history together, but never the newest state.
// If the store that compacts is closed, another store continues.
func TestStoresCompactTogether(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	const keep = time.Second
	var stores []*etcdstore.Store
	for range 3 {
		s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: []string{m.Endpoint}, Prefix: "/retains", Retain: keep})
		require.NoError(t, err)
		stores = append(stores, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for n, s := range stores {
		old := put(t, s, "a", "old")
		replaced := time.Now()
		newest := put(t, s, "a", "new")
		for {
			_, err := s.Get(ctx, "a", old)
			if errors.Is(err, storage.ErrCompacted) {
				break
			}
			require.NoError(t, err)
		}
		require.Greater(t, time.Since(replaced), keep)
		rec, err := s.Get(ctx, "a", newest)
		require.NoError(t, err)
		require.Equal(t, "new", string(rec.Value))
		if n < len(stores)-1 {
			require.NoError(t, s.Close())
		}
	}
	require.NoError(t, stores[2].Close())
}

// TestSlowConsumerGetsEveryCommit: the events that a slow consumer has not received are not buffered
// without limit, and the consumer gets all of them.
func TestSlowConsumerGetsEveryCommit(t *testing.T) {
	t.Parallel()
	s := open(t, etcdtest.Start(t), "/slow")
	defer func() { require.NoError(t, s.Close()) }()
	base := put(t, s, "begin", "")
	put(t, s, "a", "first")
	const n, size = 60, 1 << 20
	seen, last := 0, base
	for commit, err := range s.Watch(t.Context(), "a", base) {
		require.NoError(t, err)
		require.Greater(t, commit[0].Revision, last)
		if last = commit[0].Revision; seen == 0 {
			for i := range n {
				value := make([]byte, size)
				value[0] = byte(i)
				put(t, s, "a", string(value))
			}
		} else {
			require.Equal(t, byte(seen-1), commit[0].Value[0])
		}
		if seen++; seen > n {
			break
		}
	}
	require.Equal(t, n+1, seen)
}

// TestLostCommitsAreReported: Check and Missing report that a cluster has lost commits.
func TestLostCommitsAreReported(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s := open(t, m, "/loss")
	defer func() { require.NoError(t, s.Close()) }()
	for range 10 {
		put(t, s, "a", "1")
	}
	require.NoError(t, s.Check(t.Context()))
	early := open(t, m, "/loss")
	defer func() { require.NoError(t, early.Close()) }()
	last := put(t, early, "a", "2")
	reader, watcher := open(t, m, "/loss"), open(t, m, "/loss")
	at, err := reader.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, last, at)
	for _, err := range watcher.Watch(t.Context(), "", last-1) {
		require.NoError(t, err)
		break
	}
	all := []*etcdstore.Store{s, early, reader, watcher}
	for _, s := range all[2:] {
		defer func() { require.NoError(t, s.Close()) }()
	}
	m.Kill()
	m.Erase()
	m.Restart()
	for _, s := range all {
		if s != early { // it detects the loss at its next commit
			require.ErrorContains(t, s.Check(t.Context()), "lost commits")
		}
	}
	put(t, early, "b", "1")
	for range 30 {
		put(t, s, "b", "2")
	}
	for _, s := range all {
		require.ErrorContains(t, s.Check(t.Context()), "lost commits", "later commits do not clear the error")
		_, losses := s.Missing()
		require.Equal(t, 1, losses)
	}
}

// TestLossIsReportedDespiteHigherRevisions: the loss of commits is detected even if other programs have
// increased the revision of etcd since. A record written with etcdctl is not a loss.
func TestLossIsReportedDespiteHigherRevisions(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s, bare := open(t, m, "/loss"), newClient(t, m)
	defer func() { require.NoError(t, s.Close()) }()
	at := put(t, s, "a", "1")
	changes, stop := iter.Pull2(s.Watch(t.Context(), "", at))
	defer stop()
	_, err := bare.Put(t.Context(), "/loss/data/b", "x")
	require.NoError(t, err)
	change, err, _ := changes()
	require.NoError(t, err)
	require.Greater(t, change[0].Revision, at)
	require.NoError(t, s.Check(t.Context()))

	reader := open(t, m, "/loss")
	defer func() { require.NoError(t, reader.Close()) }()
	for range 5 {
		at = put(t, s, "a", "1")
	}
	got, err := reader.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, at, got)
	m.Kill()
	m.Erase()
	m.Restart()
	for _, key := range append([]string{"/loss/head"}, slices.Repeat([]string{"/other"}, 30)...) {
		_, err := bare.Put(t.Context(), key, "")
		require.NoError(t, err)
	}
	require.ErrorContains(t, reader.Check(t.Context()), "lost commits")
}

// TestWatchFromLostRevisionIsCompacted: after a restore that raises revisions, once the head is written
// again and etcd is compacted there, a watch from a lost revision fails with ErrCompacted.
func TestWatchFromLostRevisionIsCompacted(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s, bare := open(t, m, "/back"), newClient(t, m)
	last := put(t, s, "a", "1")
	require.NoError(t, s.Close())
	for range 20 { // etcd's restore can raise revisions
		_, err := bare.Put(t.Context(), "/other", "x")
		require.NoError(t, err)
	}
	head, err := bare.Put(t.Context(), "/back/head", "")
	require.NoError(t, err)
	_, err = bare.Compact(t.Context(), head.Header.Revision)
	require.NoError(t, err)
	s = open(t, m, "/back")
	defer func() { require.NoError(t, s.Close()) }()
	for _, err := range s.Watch(t.Context(), "", last+10<<5) {
		require.ErrorIs(t, err, storage.ErrCompacted)
	}
	rec, err := s.Get(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, last, rec.Revision)
	require.NoError(t, s.Check(t.Context()))
}

// TestConflictInLargeCommit: the conflict of a large commit contains the current record, however large
// the records are. This also holds for a commit with the maximal number of deletions.
func TestConflictInLargeCommit(t *testing.T) {
	t.Parallel()
	s := open(t, etcdtest.Start(t), "/large")
	defer func() { require.NoError(t, s.Close()) }()
	value := make([]byte, 1<<20)
	var ws []storage.Write
	var newest []storage.Revision
	for i := range storage.CommitLength - 1 {
		ws = append(ws, storage.Write{Key: fmt.Sprintf("k/%03d", i), Value: []byte("small")})
		newest = append(newest, put(t, s, ws[i].Key, string(value)))
	}
	ws[0].Expect = newest[0]
	_, err := s.Commit(t.Context(), ws...)
	var conflict *storage.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, "k/001", conflict.Key)
	require.Equal(t, newest[1], conflict.Current.Revision)
	require.Len(t, conflict.Current.Value, len(value))

	ws = nil
	for i := range storage.CommitLength {
		ws = append(ws, storage.Write{Key: fmt.Sprintf("z/%03d", i)})
	}
	_, err = s.Commit(t.Context(), ws...)
	require.ErrorIs(t, err, storage.ErrNotFound)
	ws[0].Key = "k/000"
	_, err = s.Commit(t.Context(), ws...)
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, newest[0], conflict.Current.Revision)
}
