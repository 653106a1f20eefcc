package storage_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestRetentionKeepsRevisionsForKeep compares Oldest with the commit times of single revisions.
func TestRetentionKeepsRevisionsForKeep(t *testing.T) {
	const keep = 5 * time.Minute
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := storage.Retention{Keep: keep}
		now := time.Unix(1000, 0)
		var at []time.Time // commit time of revision i+1
		for range 3000 {
			switch r.IntN(10) {
			case 0:
				now = now.Add(time.Duration(r.Int64N(int64(keep))))
			case 1, 2:
				now = now.Add(time.Duration(r.Int64N(int64(keep / 20))))
			case 3:
				h.Restore(h.Spans(), now, storage.Revision(len(at)))
			default:
				at = append(at, now)
				h.Committed(now, storage.Revision(len(at)))
			}
			oldest := h.Oldest(now)
			require.LessOrEqual(t, oldest, storage.Revision(len(at)))
			if oldest > 0 {
				// Its predecessor was replaced when it was committed.
				require.Greater(t, now.Sub(at[oldest-1]), keep)
			}
			if int(oldest) < len(at) {
				// The oldest revision itself was replaced when its successor was committed.
				require.LessOrEqual(t, now.Sub(at[oldest]), keep+keep/32)
			}
			require.LessOrEqual(t, len(h.Spans()), 40)
		}
	}
}

func TestRetentionWhenClockIsSetBack(t *testing.T) {
	h := storage.Retention{Keep: time.Hour}
	now := time.Unix(1e6, 0)
	h.Committed(now, 5)
	h.Committed(now.Add(10*time.Minute), 9)
	back := storage.Retention{Keep: time.Hour}
	back.Restore(h.Spans(), now.Add(-time.Hour), 12)
	require.Zero(t, back.Oldest(now.Add(-time.Minute)))
	require.Equal(t, storage.Revision(12), back.Oldest(now.Add(time.Minute)))
	fewer := storage.Retention{Keep: time.Hour}
	fewer.Restore(h.Spans(), now.Add(time.Hour), 7)
	require.Equal(t, storage.Revision(5), fewer.Oldest(now.Add(time.Hour+time.Minute)))
}

func TestRetentionWithNegativeKeepKeepsAll(t *testing.T) {
	h := storage.Retention{Keep: -1}
	h.Committed(time.Unix(0, 0), 5)
	require.Zero(t, h.Oldest(time.Unix(1e9, 0)))
	require.Empty(t, h.Spans())
}
