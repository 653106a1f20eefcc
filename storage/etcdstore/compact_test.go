package etcdstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// TestPausedCompactorDoesNotCompactTooMuch: of three stores, the store that compacts is paused during
// its turn. The others continue without it, and when it resumes it does not compact history that they
// keep.
func TestPausedCompactorDoesNotCompactTooMuch(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	var all []*compactor
	for range 3 {
		all = append(all, &compactor{store: openStore(t, m)})
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
	paused.store.client.KV = &interceptedKV{etcd, func(make func() error) error {
		if calls++; calls == 4 { // the call that compacts, after two reads and the claim
			close(stands)
			<-goes
		}
		return make()
	}}
	go func() { woken <- paused.compactBefore(t.Context(), etcdOf(at[1])) }()
	<-stands
	kept(0)
	require.NoError(t, second.compactBefore(t.Context(), etcdOf(at[1])))
	kept(0) // it skipped a turn
	require.NoError(t, second.compactBefore(t.Context(), etcdOf(at[1])))
	kept(1)
	require.NoError(t, third.compactBefore(t.Context(), etcdOf(at[1])), "already compacted")
	require.NoError(t, second.compactBefore(t.Context(), etcdOf(at[2])))
	kept(2)
	close(goes)
	require.NoError(t, <-woken)
	kept(2)
	require.NoError(t, paused.compactBefore(t.Context(), etcdOf(at[3])))
	kept(2) // another store compacts now
	require.NoError(t, second.compactBefore(t.Context(), etcdOf(at[3])))
	kept(3)
}
