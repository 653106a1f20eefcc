package objectcache

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// TestStoredBytesMatchTheStore compares the counts with the store while it changes and after a restart.
func TestStoredBytesMatchTheStore(t *testing.T) {
	w := newWorld(t, Options{MaxEvents: 5})
	check := func(h *Set) {
		t.Helper()
		want, total := map[string]int64{}, int64(0)
		_, records, err := w.store.Scan(t.Context(), "", "", 0)
		require.NoError(t, err)
		for rec, err := range records {
			require.NoError(t, err)
			n := int64(len(rec.Key) + len(rec.Value))
			want[strings.Split(rec.Key, "/")[1]] += n
			total += n
		}
		for _, namespace := range []string{"a", "a-b", "b", "none"} {
			here, all := h.StoredBytes(namespace)
			assert.Equal(t, want[namespace], here, namespace)
			assert.Equal(t, total, all)
		}
		assert.Len(t, h.sizes.by, len(want))
	}
	rng := rand.New(rand.NewPCG(1, 3))
	for i := range 400 {
		key, r := fmt.Sprintf("%s/o%d", []string{"a", "a-b", "b"}[rng.IntN(3)], rng.IntN(5)), []meta.GroupResource{things, others}[rng.IntN(2)]
		if w.set.Cache(r).Get(keyOf(key)) != nil && rng.IntN(3) == 0 {
			w.delete(r, key)
		} else {
			w.put(r, key, "", strings.Repeat("v", rng.IntN(100)))
		}
		if i%20 != 0 {
			continue
		}
		for _, e := range w.set.Cache(things).List(Query{}, "", 0).Entries {
			e.JSON() // makes the text longer
		}
		check(w.set)
	}
	again, err := Open(t.Context(), w.store, Options{})
	require.NoError(t, err)
	defer again.Close()
	check(again)
}
