package badgerstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestGateCostsNoTable: the gate is shut and opened again while compactions run. Each of them has
// all its tables or is done again.
func TestGateCostsNoTable(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), Retain: -1, memTable: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	random := rand.NewChaCha8([32]byte{})
	ctx, stop := context.WithCancel(t.Context())
	var disturbed atomic.Int64
	var disturbing sync.WaitGroup
	disturbing.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(100 * time.Microsecond) {
			if !running(compaction) {
				continue
			}
			time.Sleep(rand.N(20 * time.Millisecond))
			s.gate.turn(false)
			time.Sleep(rand.N(5 * time.Millisecond))
			s.gate.turn(true) // or when it can be
			disturbed.Add(1)
			for running(compaction) {
				time.Sleep(time.Millisecond)
			}
		}
	})
	acked, value := map[string]storage.Revision{}, make([]byte, 8<<10)
	for i := 0; disturbed.Load() < 12; i++ {
		require.Less(t, i, 100000, "no compaction is seen")
		_, _ = random.Read(value)
		key := fmt.Sprint(rand.IntN(1<<30), "-", i)
		if revision, err := s.Commit(ctx, storage.Write{Key: key, Value: value}); err == nil {
			acked[key] = revision
		} else {
			require.ErrorIs(t, err, storage.ErrFull)
			time.Sleep(time.Millisecond)
		}
	}
	stop()
	disturbing.Wait()
	for key, revision := range acked {
		rec, err := s.Get(t.Context(), key, 0)
		require.NoError(t, err, key)
		require.Equal(t, revision, rec.Revision)
	}
}
