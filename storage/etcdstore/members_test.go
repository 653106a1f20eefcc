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
