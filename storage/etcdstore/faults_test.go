package etcdstore_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
	"orch.io/controlplane/storage/storagetest"
)

// openTwo opens two stores that are the same but for their process.
func openTwo(t testing.TB, o etcdstore.Options) (stores []storage.Backend) {
	t.Helper()
	for range 2 {
		s, err := etcdstore.Open(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		stores = append(stores, s)
	}
	return stores
}

// TestFaults: members die, are cut off from each other and from the stores, and stand still,
// one after the other, while there is load. Two are there at any time, so it goes on.
func TestFaults(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t)
	stores := openTwo(t, etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/faults", Retain: -1})
	failed := storagetest.RunFaults(t, stores, func(progress func(commits int)) {
		const some = 100
		progress(some)
		for i, m := range c.Members {
			m.Kill()
			progress(some)
			m.Restart()
			progress(some)

			c.Isolate(i)
			progress(some)
			alone(t, c, i)
			c.Rejoin(i)
			m.Ready()
			progress(some)

			c.CutClients(i)
			progress(some)
			c.JoinClients(i)
			progress(some)

			if testing.Short() {
				break
			}
			m.Pause()
			progress(some)
			m.Resume()
			m.Ready()
			progress(some)
		}
	})
	require.Empty(t, failed, "it is found out what became of each commit")
}

// alone checks that a member which is cut off from the others tells nothing: it may be old.
func alone(t testing.TB, c *etcdtest.Cluster, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := etcdstore.Open(ctx, etcdstore.Options{Endpoints: c.Endpoints[i : i+1], Prefix: "/faults", Retain: -1})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// setClocks restarts the members one after the other with their clocks so far ahead.
func setClocks(t testing.TB, c *etcdtest.Cluster, ahead ...time.Duration) {
	t.Helper()
	for i, m := range c.Members {
		m.Kill()
		m.Clock(ahead[i])
		m.Restart()
		res, err := http.Get("http://" + m.Endpoint + "/health")
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		at, err := http.ParseTime(res.Header.Get("Date"))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(ahead[i]), at, time.Minute)
	}
}

// TestClocksApart: the clocks of the members are hours apart, and each of them goes back once. Nothing
// depends on them.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t)
	stores := openTwo(t, etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/clocks", Retain: time.Minute})
	const day = 24 * time.Hour
	failed := storagetest.RunFaults(t, stores, func(progress func(commits int)) {
		for _, ahead := range [][]time.Duration{{day, 0, -day}, {-day, day, 0}, {0, -day, day}} {
			setClocks(t, c, ahead...)
			progress(50)
		}
	})
	require.Empty(t, failed)
}

// TestAllGone: no member is there for a while. Watches wait, reads and commits end with an
// error when their context does, and all goes on when the members are back.
func TestAllGone(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s := open(t, m, "/gone")
	defer func() { require.NoError(t, s.Close()) }()
	failed := storagetest.RunFaults(t, []storage.Backend{s}, func(progress func(commits int)) {
		progress(50)
		for range 2 {
			m.Kill()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			_, err := s.Get(ctx, "k", 0)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
			require.Error(t, s.Writable(t.Context()))
			m.Restart()
			progress(50)
		}
	})
	require.Empty(t, failed, "it is found out what became of each commit")
	require.NoError(t, s.Check(t.Context()))
	require.Positive(t, s.Size())
}

// TestReadsBesideAMemberAway: a member that is cut off from the others says nothing for seconds,
// and reads get their answer from another one long before the store gives up.
// It runs alone because time counts.
func TestReadsBesideAMemberAway(t *testing.T) {
	c := etcdtest.StartCluster(t)
	s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/away", Retain: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	put(t, s, "a", "1")
	away := len(c.Members)
	if testing.Short() {
		away = 1
	}
	for i := range away {
		c.Isolate(i)
		_, err := s.Revision(t.Context()) // it takes as long as the others need to agree on who leads
		require.NoError(t, err)
		for range 12 {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			_, err := s.Get(ctx, "a", 0)
			cancel()
			require.NoError(t, err)
		}
		c.Rejoin(i)
		c.Members[i].Ready()
	}
}

// TestTwoMembersOfWhichOneIsAway: a store that knows two members works through the one that has a leader,
// whichever it asks first, for a watch, which takes several calls, and for a token, too.
func TestTwoMembersOfWhichOneIsAway(t *testing.T) {
	t.Parallel()
	for name, opened := range map[string]func(c *etcdtest.Cluster) etcdstore.Options{
		"nobody": func(*etcdtest.Cluster) etcdstore.Options { return etcdstore.Options{Prefix: "/ours", Retain: -1} },
		"user":   func(c *etcdtest.Cluster) etcdstore.Options { return withUser(t, c.Members[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := etcdtest.StartCluster(t)
			o := opened(c)
			o.Endpoints = c.Endpoints[:2]
			c.Isolate(1)
			for i := range 4 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				s, err := etcdstore.Open(ctx, o)
				require.NoError(t, err)
				at, err := s.Revision(ctx)
				require.NoError(t, err)
				put(t, s, fmt.Sprint(i), "1")
				seen := false
				for _, err := range s.Watch(ctx, "", at) {
					require.NoError(t, err)
					seen = true
					break
				}
				require.True(t, seen)
				require.NoError(t, s.Close())
				cancel()
			}
		})
	}
}

// TestCommitsBesideAMemberAway: a commit gets its answer soon, through another member if one
// says nothing, and is made once. It runs alone because time counts.
func TestCommitsBesideAMemberAway(t *testing.T) {
	c := etcdtest.StartCluster(t)
	s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/away", Retain: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	newest := put(t, s, "a", "1")
	some := func() {
		_, err := s.Revision(t.Context()) // it takes as long as the others need to agree on who leads
		require.NoError(t, err)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			at, err := s.Commit(ctx, storage.Write{Key: "a", Value: []byte("2"), Expect: newest})
			cancel()
			require.NoError(t, err)
			newest = at
		}
	}
	for i, m := range c.Members {
		c.Isolate(i)
		some()
		c.Rejoin(i)
		m.Ready()
		m.Pause()
		some()
		m.Resume()
		m.Ready()
		if testing.Short() {
			return
		}
	}
}
