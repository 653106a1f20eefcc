package etcdstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// TestMembersComeAndGo: members join and others leave under load, until none is left that the
// stores were opened with.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t)
	var stores []*etcdstore.Store
	for range 2 {
		s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: c.Endpoints[:1], SyncEndpoints: 50 * time.Millisecond, Prefix: "/members", Retain: -1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		stores = append(stores, s)
	}
	l := startLoad(t, stores, 4)
	running := l.watch()
	const some = 20
	for i := range 3 {
		c.Join()
		l.progress(some)
		c.Promote(len(c.Members) - 1)
		l.progress(some)
		c.Leave(i)
		l.progress(some)
		if testing.Short() {
			break
		}
	}
	l.check(running)
}

// TestLearner: a store may be told of a member that does not answer it yet.
func TestLearner(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t)
	c.Join()
	s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: []string{c.Endpoints[3], c.Endpoints[0]}, Prefix: "/learner", Retain: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for range 10 {
		at := put(t, s, "a", "1")
		require.NoError(t, firstOf(t, s, at-1))
		require.Equal(t, []string{"a"}, keys(t, s, at))
		_, err := s.Stamp(t.Context(), "a", "b")
		require.NoError(t, err)
		require.NoError(t, s.Writable(t.Context()))
		require.NoError(t, s.Check(t.Context()))
	}
}
