package etcdstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
	"orch.io/controlplane/storage/storagetest"
)

// TestMembersComeAndGo: members join and others leave under load, until none is left that the
// stores were opened with.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t)
	stores := openTwo(t, etcdstore.Options{Endpoints: c.Endpoints[:1], SyncEndpoints: 50 * time.Millisecond, Prefix: "/members", Retain: -1})
	failed := storagetest.RunFaults(t, stores, func(progress func(commits int)) {
		const some = 20
		for i := range 3 {
			c.Join()
			progress(some)
			c.Promote(len(c.Members) - 1)
			progress(some)
			c.Leave(i)
			progress(some)
			if testing.Short() {
				break
			}
		}
	})
	require.Empty(t, failed)
}
