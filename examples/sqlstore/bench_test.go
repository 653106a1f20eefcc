package sqlstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// BenchmarkCommit measures durable commits of 64 writers, each with its own keys.
func BenchmarkCommit(b *testing.B) {
	s := open(b, b.TempDir(), forever)
	value, n := make([]byte, 1<<10), atomic.Int64{}
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := s.Commit(b.Context(), storage.Write{Key: fmt.Sprintf("k/%09d", n.Add(1)), Value: value})
			if err != nil {
				b.Error(err)
			}
		}
	})
	require.NoError(b, s.Close())
}
