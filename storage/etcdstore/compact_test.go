package etcdstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// TestPausedCompactor: the one of three stores that compacts stands still when it is its turn. The
// others go on without it, and when it wakes it forgets nothing that they keep.
func TestPausedCompactor(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	var all []*compactor
	for range 3 {
		all = append(all, &compactor{store: opened(t, m)})
	}
	paused, second, third := all[0], all[1], all[2]
	var at []storage.Revision
	for range 5 {
		revision, err := second.store.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("v"), Expect: storage.AnyRevision})
		require.NoError(t, err)
		at = append(at, revision)
	}
	kept := func(from int) {
		t.Helper()
		for i, revision := range at {
			_, err := third.store.Get(t.Context(), "k", revision)
			if i < from {
				require.ErrorIs(t, err, storage.ErrCompacted)
			} else {
				require.NoError(t, err)
			}
		}
	}
	etcd := paused.store.client.KV
	stands, goes, woken := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	calls := 0
	paused.store.client.KV = &between{etcd, func(make func() error) error {
		if calls++; calls == 4 { // it looked twice and has won
			close(stands)
			<-goes
		}
		return make()
	}}
	go func() { woken <- paused.reach(t.Context(), etcdOf(at[1])) }()
	<-stands
	kept(0)
	require.NoError(t, second.reach(t.Context(), etcdOf(at[1])))
	kept(0) // it stood aside for a turn
	require.NoError(t, second.reach(t.Context(), etcdOf(at[1])))
	kept(1)
	require.NoError(t, third.reach(t.Context(), etcdOf(at[1])), "that is done")
	require.NoError(t, second.reach(t.Context(), etcdOf(at[2])))
	kept(2)
	close(goes)
	require.NoError(t, <-woken)
	kept(2)
	require.NoError(t, paused.reach(t.Context(), etcdOf(at[3])))
	kept(2) // it is no more the one that compacts
	require.NoError(t, second.reach(t.Context(), etcdOf(at[3])))
	kept(3)
}
