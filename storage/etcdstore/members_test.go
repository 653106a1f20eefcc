package etcdstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
	"orch.io/controlplane/storage/storagetest"
)

// TestMembersJoinAndLeave: members join and leave under load, until none of the members with which the
// stores were opened is left.
func TestMembersJoinAndLeave(t *testing.T) {
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

// TestCommitsGoToTheLeader: commits and reads of the newest revision are sent to the leader, also after
// the leader changed.
func TestCommitsGoToTheLeader(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t)
	s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/leader", Retain: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	var at storage.Revision
	some := func() {
		for range 20 {
			at, err = s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v"), Expect: at})
			require.NoError(t, err)
			_, err := s.Revision(t.Context())
			require.NoError(t, err)
		}
	}
	for range c.Members {
		require.Eventually(t, func() bool { // the store learns the leader from answers of all members
			led := leaderOf(t, c)
			before := make([]int, len(c.Members))
			for i, m := range c.Members {
				before[i] = calls(t, m, "Txn") + calls(t, m, "Range")
			}
			some()
			for i, m := range c.Members {
				if made := calls(t, m, "Txn") + calls(t, m, "Range") - before[i]; i != led && made > 0 {
					return false
				}
			}
			return true
		}, time.Minute, 50*time.Millisecond)
		moveLeader(t, c)
	}
}

func status(t testing.TB, c *etcdtest.Cluster, i int) *clientv3.StatusResponse {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	resp, err := newClient(t, c.Members[i]).Status(ctx, c.Members[i].Endpoint)
	require.NoError(t, err)
	return resp
}

// leaderOf returns the index of the leader.
func leaderOf(t testing.TB, c *etcdtest.Cluster) (led int) {
	require.Eventually(t, func() bool {
		for i := range c.Members {
			if s := status(t, c, i); s.Leader == s.Header.MemberId {
				led = i
				return true
			}
		}
		return false
	}, time.Minute, 50*time.Millisecond)
	return led
}
