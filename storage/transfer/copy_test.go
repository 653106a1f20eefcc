package transfer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/faulty"
	"orch.io/controlplane/storage/transfer"
)

// TestCopyFindsOut what a destination has lost.
func TestCopyFindsOut(t *testing.T) {
	a := open(t, "memory")
	for i := range 100 {
		put(t, a, fmt.Sprint("k", i), "x")
	}
	lossy := faulty.Wrap(open(t, "memory"), nil)
	lossy.SetPlan(func(c faulty.Call) faulty.Fault {
		return faulty.Fault{Drop: c.Op == faulty.OpRecord && c.Key == "k7"}
	})
	_, err := transfer.Copy(t.Context(), a, lossy, transfer.Options{})
	require.ErrorContains(t, err, "there are 99 keys")
}

// TestCopyChecksItsSource: what the source tells otherwise when it is read once more ends the copy
// before the destination shows anything, and so do, at its end, writers that go on.
func TestCopyChecksItsSource(t *testing.T) {
	for _, kind := range kinds {
		a, b := faulty.Wrap(open(t, "memory"), nil), open(t, kind)
		for i := range 100 {
			put(t, a, fmt.Sprint("k", i), "x")
		}
		_, err := transfer.Copy(t.Context(), a, b, transfer.Options{Progress: func(p transfer.Progress) {
			if p.Phase == transfer.Verifying {
				a.SetPlan(func(c faulty.Call) faulty.Fault { return faulty.Fault{Drop: c.Op == faulty.OpRecord && c.Key == "k7"} })
			}
		}})
		require.ErrorContains(t, err, "the source at revision 100: there are 99 keys")
		require.Empty(t, state(t, b, 0))
		a.SetPlan(nil)
		stopped := false
		_, err = transfer.Copy(t.Context(), a, open(t, kind), transfer.Options{
			Cutover: func(context.Context) error { stopped = true; return nil },
			Progress: func(p transfer.Progress) {
				if stopped {
					put(t, a, "k7", "y")
				}
			},
		})
		require.ErrorContains(t, err, "written to after revision 100")
	}
}

// TestCopyAfterCutover: of a source nothing is read any more once its writers are stopped but what
// they wrote last, however large it is. What they write while it is compared is copied.
func TestCopyAfterCutover(t *testing.T) {
	for _, kind := range append(kinds, "own") {
		a := faulty.Wrap(open(t, "memory"), nil)
		for i := range 5_000 {
			put(t, a, fmt.Sprintf("k%04d", i), "x")
		}
		var to storage.Backend = own{open(t, "memory")}
		if kind != "own" {
			to = open(t, kind)
		}
		records, events, wrote := 0, 0, 0
		_, err := transfer.Copy(t.Context(), a, to, transfer.Options{
			Progress: func(p transfer.Progress) {
				if p.Phase == transfer.Verifying && events == 0 {
					put(t, a, fmt.Sprintf("k%04d", 1_000*wrote), "y")
					put(t, a, fmt.Sprint("new", wrote), "y")
					wrote++
				}
			},
			Cutover: func(context.Context) error {
				put(t, a, "last", "x")
				records, events = a.Count(faulty.OpRecord), a.Count(faulty.OpEvent)
				return nil
			},
		})
		require.NoError(t, err)
		require.Greater(t, records, 10_000, "it is read twice")
		require.Greater(t, wrote, 2)
		require.Equal(t, records, a.Count(faulty.OpRecord))
		require.LessOrEqual(t, a.Count(faulty.OpEvent), events+1)
		rec, err := to.Get(t.Context(), "k1000", 0)
		require.NoError(t, err)
		require.Equal(t, "y", string(rec.Value))
		require.Len(t, state(t, to, 0), 5_000+wrote+1)
	}
}
