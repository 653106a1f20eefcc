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

// openTwo opens two stores with the same options, as two servers would.
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

// TestCommitsSucceedWhileMemberFails: under load, each member in turn is killed, isolated from the other members, cut
// off from the stores, and paused. Two members work at any time, so all commits succeed.
func TestCommitsSucceedWhileMemberFails(t *testing.T) {
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
			requireNoAnswer(t, c, i)
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

// requireNoAnswer checks that a member that is isolated from the others answers no read, because its
// state may be old.
func requireNoAnswer(t testing.TB, c *etcdtest.Cluster, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := etcdstore.Open(ctx, etcdstore.Options{Endpoints: c.Endpoints[i : i+1], Prefix: "/faults", Retain: -1})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// setClocks restarts the members, each with its clock set ahead by the given time.
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

// TestMemberClocksDiffer: the clocks of the members differ by days and go backwards. The store does not
// depend on them.
func TestMemberClocksDiffer(t *testing.T) {
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

// TestCallsEndWithContextWithoutMembers: while no member runs, watches wait, and reads and commits end with an error when
// their context ends. Everything continues when the member is back.
func TestCallsEndWithContextWithoutMembers(t *testing.T) {
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

// TestReadsWithIsolatedMember: a member that is isolated from the others does not answer for seconds;
// reads are retried on another member early enough. The test is not parallel because it measures time.
func TestReadsWithIsolatedMember(t *testing.T) {
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
		_, err := s.Revision(t.Context()) // waits until the other members have a leader
		require.NoError(t, err)
		for range 12 {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // the store gives up after 20
			_, err := s.Get(ctx, "a", 0)
			cancel()
			require.NoError(t, err)
		}
		c.Rejoin(i)
		c.Members[i].Ready()
	}
}

// TestStoreUsesMemberWithLeader: a store with two endpoints works through the member that has a leader,
// whichever it tries first. This also holds for watches, which need several calls, and for
// authentication.
func TestStoreUsesMemberWithLeader(t *testing.T) {
	t.Parallel()
	for name, opened := range map[string]func(c *etcdtest.Cluster) etcdstore.Options{
		"no user": func(*etcdtest.Cluster) etcdstore.Options { return etcdstore.Options{Prefix: "/ours", Retain: -1} },
		"user":    func(c *etcdtest.Cluster) etcdstore.Options { return optionsWithUser(t, c.Members[0]) },
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

// TestCommitsWithUnresponsiveMember: if a member does not answer, a commit gets its answer from another
// member soon, and is applied once. The test is not parallel because it measures time.
func TestCommitsWithUnresponsiveMember(t *testing.T) {
	c := etcdtest.StartCluster(t)
	s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/away", Retain: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	newest := put(t, s, "a", "1")
	some := func() {
		_, err := s.Revision(t.Context()) // waits until the other members have a leader
		require.NoError(t, err)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // the store gives up after 20
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
