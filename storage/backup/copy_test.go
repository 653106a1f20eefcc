package backup_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
)

// TestCopyDetectsLostRecords checks that Copy fails if the destination has lost records.
func TestCopyDetectsLostRecords(t *testing.T) {
	a := open(t, "memory")
	for i := range 100 {
		put(t, a, fmt.Sprint("k", i), "x")
	}
	lossy := faultinject.Wrap(open(t, "memory"), nil)
	lossy.SetPlan(func(c faultinject.Call) faultinject.Fault {
		return faultinject.Fault{Drop: c.Op == faultinject.OpRecord && c.Key == "k7"}
	})
	_, err := backup.Copy(t.Context(), a, lossy, backup.Options{})
	require.ErrorContains(t, err, "there are 99 keys")
}

// TestCopyVerifiesSource checks that Copy fails before the destination publishes anything if the second reading of the
// source differs from the first, and that it fails at the end if the source is written to after Cutover.
func TestCopyVerifiesSource(t *testing.T) {
	for _, kind := range kinds {
		a, b := faultinject.Wrap(open(t, "memory"), nil), open(t, kind)
		for i := range 100 {
			put(t, a, fmt.Sprint("k", i), "x")
		}
		_, err := backup.Copy(t.Context(), a, b, backup.Options{Progress: func(p backup.Progress) {
			if p.Phase == backup.Verifying {
				a.SetPlan(func(c faultinject.Call) faultinject.Fault {
					return faultinject.Fault{Drop: c.Op == faultinject.OpRecord && c.Key == "k7"}
				})
			}
		}})
		require.ErrorContains(t, err, "the source at revision 100: there are 99 keys")
		require.Empty(t, state(t, b, 0))
		a.SetPlan(nil)
		stopped := false
		_, err = backup.Copy(t.Context(), a, open(t, kind), backup.Options{
			Cutover: func(context.Context) error { stopped = true; return nil },
			Progress: func(p backup.Progress) {
				if stopped {
					put(t, a, "k7", "y")
				}
			},
		})
		require.ErrorContains(t, err, "written to after revision 100")
	}
}

// TestCopyAfterCutover checks that after Cutover only the last commits of the source are read, no matter how large it
// is, and that commits during the comparison are copied.
func TestCopyAfterCutover(t *testing.T) {
	for _, kind := range append(kinds, "own") {
		a := faultinject.Wrap(open(t, "memory"), nil)
		for i := range 5_000 {
			put(t, a, fmt.Sprintf("k%04d", i), "x")
		}
		var to storage.Backend = own{open(t, "memory")}
		if kind != "own" {
			to = open(t, kind)
		}
		records, events, wrote := 0, 0, 0
		_, err := backup.Copy(t.Context(), a, to, backup.Options{
			Progress: func(p backup.Progress) {
				if p.Phase == backup.Verifying && events == 0 {
					put(t, a, fmt.Sprintf("k%04d", 1_000*wrote), "y")
					put(t, a, fmt.Sprint("new", wrote), "y")
					wrote++
				}
			},
			Cutover: func(context.Context) error {
				put(t, a, "last", "x")
				records, events = a.Count(faultinject.OpRecord), a.Count(faultinject.OpEvent)
				return nil
			},
		})
		require.NoError(t, err)
		require.Greater(t, records, 10_000, "it is read twice")
		require.Greater(t, wrote, 2)
		require.Equal(t, records, a.Count(faultinject.OpRecord))
		require.LessOrEqual(t, a.Count(faultinject.OpEvent), events+1)
		rec, err := to.Get(t.Context(), "k1000", 0)
		require.NoError(t, err)
		require.Equal(t, "y", string(rec.Value))
		require.Len(t, state(t, to, 0), 5_000+wrote+1)
	}
}
