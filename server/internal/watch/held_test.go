package watch

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHeldIsWhatTheStoreHas compares the count with the store, as it changes and
// after a new start.
func TestHeldIsWhatTheStoreHas(t *testing.T) {
	w := newWorld(t, Options{MaxEvents: 5})
	check := func(h *Hub) {
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
			here, all := h.Held(namespace)
			assert.Equal(t, want[namespace], here, namespace)
			assert.Equal(t, total, all)
		}
		assert.Len(t, h.held.by, len(want))
	}
	rng := rand.New(rand.NewPCG(1, 3))
	for range 20 {
		w.churn(rng, 20)
		for _, e := range w.hub.Cache(things).List(Query{}, "", 0).Entries {
			e.JSON() // which makes the text longer
		}
		check(w.hub)
	}
	again, err := Open(t.Context(), w.store, Options{})
	require.NoError(t, err)
	defer again.Close()
	check(again)
}
