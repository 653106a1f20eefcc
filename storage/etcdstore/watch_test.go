package etcdstore_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestWatchFarBehindUsesLittleMemory: a watch that begins far behind buffers little, and yields
// complete commits although etcd sends them in pieces. The test is not parallel because it measures the
// heap.
func TestWatchFarBehindUsesLittleMemory(t *testing.T) {
	s := open(t, etcdtest.Start(t), "/behind")
	defer func() { require.NoError(t, s.Close()) }()
	base := put(t, s, "begin", "")
	const n, size = 150, 1 << 20
	value := make([]byte, size)
	for i := range n {
		value[0] = byte(i)
		_, err := s.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("small"), Expect: storage.AnyRevision},
			storage.Write{Key: "b", Value: value[:size/4], Expect: storage.AnyRevision}, storage.Write{Key: "c", Value: value, Expect: storage.AnyRevision})
		require.NoError(t, err)
	}
	before, most, seen := heap(), uint64(0), 0
	for commit, err := range s.Watch(t.Context(), "", base) {
		require.NoError(t, err)
		require.Len(t, commit, 3)
		for _, event := range commit[1:] {
			require.Equal(t, byte(seen), event.Value[0])
		}
		if seen++; seen == n {
			break
		}
		if seen%10 == 1 {
			most = max(most, heap())
		}
	}
	require.Equal(t, n, seen)
	t.Logf("%d MiB are kept", (most-before)>>20)
	require.Less(t, most, before+64<<20)
}
