package watch

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestDamagedRecordDeletedWhileHistoryIsCompacted checks that a damaged key is reported
// until a reload finds it deleted, that other damaged keys stay, and that cursors from before
// fail.
func TestDamagedRecordDeletedWhileHistoryIsCompacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New(memstore.Options{Retain: -1})
		bad := map[string]storage.Revision{}
		for _, key := range []string{"a/x", "a/y"} {
			rev, err := inner.Commit(t.Context(), storage.Write{Key: things + key, Value: object("", "1")})
			require.NoError(t, err)
			bad[things+key] = rev
		}
		store := faultinject.Wrap(inner, func(c faultinject.Call) faultinject.Fault {
			switch rev := bad[c.Key]; {
			case rev != 0 && c.Op == faultinject.OpRecord:
				return faultinject.Fault{Err: &storage.DamagedError{Key: c.Key, Revision: rev, Err: errors.New("spoilt")}}
			case rev != 0 && c.Op == faultinject.OpEvent:
				return faultinject.Fault{Err: storage.ErrCompacted}
			}
			return faultinject.Fault{}
		})
		w := openWorld(t, store, options{})
		cache, before := w.set.Cache(things), w.set.Revision()
		require.Equal(t, map[string]storage.Revision{"a/x": 1, "a/y": 2}, cache.Damaged())

		rev, err := inner.Commit(t.Context(), storage.Write{Key: things + "a/x", Expect: storage.AnyRevision})
		require.NoError(t, err)
		require.NoError(t, w.set.Wait(t.Context(), rev))
		require.Equal(t, map[string]storage.Revision{"a/y": 2}, cache.Damaged())
		_, err = cache.Watch(query{}, before)
		require.ErrorIs(t, err, storage.ErrCompacted)
	})
}
