package watch

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/faultinject"
	"orch.io/controlplane/storage/memstore"
)

// TestDamagedObjectGoesWhileHistoryIsLost: an object that cannot be read is known
// as such until it is gone, also if only a reload tells that; others that cannot
// be read stay, and watches from before start over.
func TestDamagedObjectGoesWhileHistoryIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New(memstore.Options{Retain: -1})
		bad := map[string]storage.Revision{}
		for _, key := range []string{"a/x", "a/y"} {
			rev, err := inner.Commit(t.Context(), storage.Write{Key: storageKey(things, key), Value: object(key, "", "1")})
			require.NoError(t, err)
			bad[storageKey(things, key)] = rev
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
		w := openWorld(t, store, Options{})
		cache, before := w.hub.Cache(things), w.hub.Revision()
		require.Equal(t, []meta.Key{{Namespace: "a", Name: "x"}, {Namespace: "a", Name: "y"}}, cache.Damaged(""))

		rev, err := inner.Commit(t.Context(), storage.Write{Key: storageKey(things, "a/x"), Expect: storage.AnyRevision})
		require.NoError(t, err)
		require.NoError(t, w.hub.Wait(t.Context(), rev))
		require.Equal(t, []meta.Key{{Namespace: "a", Name: "y"}}, cache.Damaged(""))
		_, err = cache.Watch(Query{}, before)
		require.ErrorIs(t, err, ErrGone)
	})
}
