package etcdstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
	"orch.io/controlplane/storage/storagetest"
)

// TestLeaderMovesAndDefragmentation: the leader changes and members are defragmented under load, while
// many readers read the newest revision. The disks are synced.
func TestLeaderMovesAndDefragmentation(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t, "--unsafe-no-fsync=false")
	stores := openTwo(t, etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/upkeep", Retain: -1})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 16 {
		readers.Go(func() { readRevisions(t, stores[i%len(stores)], stop) })
	}
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	failed := storagetest.RunFaults(t, stores, func(progress func(commits int)) {
		for range rounds {
			progress(20)
			moveLeader(t, c)
			progress(20)
			for _, m := range c.Members {
				_, err := newClient(t, m).Defragment(t.Context(), m.Endpoint)
				require.NoError(t, err)
			}
		}
		progress(20)
		close(stop)
		readers.Wait()
	})
	require.Empty(t, failed)
}

// readRevisions reads the newest revision repeatedly, and checks that it never decreases.
func readRevisions(t *testing.T, s storage.Backend, stop <-chan struct{}) {
	var last storage.Revision
	for {
		select {
		case <-stop:
			return
		default:
		}
		at, err := s.Revision(t.Context())
		if !assert.NoError(t, err) || !assert.GreaterOrEqual(t, at, last) {
			return
		}
		last = at
	}
}

// moveLeader moves the leadership to another member.
func moveLeader(t *testing.T, c *etcdtest.Cluster) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	var clients []*clientv3.Client
	for _, m := range c.Members {
		clients = append(clients, newClient(t, m))
	}
	for i := 0; ; i++ {
		if i > 0 && i%len(c.Members) == 0 {
			time.Sleep(50 * time.Millisecond) // the members have no leader yet
		}
		m, next := c.Members[i%len(c.Members)], c.Members[(i+1)%len(c.Members)]
		client := clients[i%len(clients)]
		at, err := client.Status(t.Context(), m.Endpoint)
		require.NoError(t, err)
		require.True(t, time.Now().Before(deadline))
		if at.Leader != at.Header.MemberId {
			continue
		}
		to, err := client.Status(t.Context(), next.Endpoint)
		require.NoError(t, err)
		if _, err = client.MoveLeader(t.Context(), to.Header.MemberId); err == nil {
			return
		}
	}
}

// TestCorruptAlarmStopsWrites: if a member raises the CORRUPT alarm, Writable and commits fail; reads
// still work.
func TestCorruptAlarmStopsWrites(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s, other := open(t, m, "/corrupt"), newClient(t, m)
	defer func() { require.NoError(t, s.Close()) }()
	first := put(t, s, "a", "1")
	status, err := other.Status(t.Context(), m.Endpoint)
	require.NoError(t, err)
	_, err = pb.NewMaintenanceClient(other.ActiveConnection()).Alarm(t.Context(), &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: pb.AlarmType_CORRUPT,
	})
	require.NoError(t, err)
	require.ErrorContains(t, s.Writable(t.Context()), "corrupt")
	require.ErrorContains(t, s.Check(t.Context()), "corrupt")
	_, err = s.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("2"), Expect: first})
	require.ErrorContains(t, err, "corrupt")
	require.NotErrorIs(t, err, storage.ErrFull)
	rec, err := s.Get(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, first, rec.Revision)
	require.NoError(t, firstOf(t, s, first-1))

	_, err = other.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	require.NoError(t, err)
	require.NoError(t, s.Check(t.Context()))
	require.Eventually(t, func() bool { return s.Writable(t.Context()) == nil }, time.Minute, 50*time.Millisecond)
	put(t, s, "a", "2")
}
