package watch

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/client"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

func showChanges(changes []client.Event) []string {
	var out []string
	for _, ch := range changes {
		s := fmt.Sprintf("%d %s %s:", ch.Revision, ch.Resource, ch.Key)
		if ch.Old != nil {
			s += " from " + ch.Old.String("spec", "value") + "@" + ch.Old.ResourceVersion()
		}
		if ch.Object != nil {
			s += " to " + ch.Object.String("spec", "value") + "@" + ch.Object.ResourceVersion()
		}
		out = append(out, s)
	}
	return out
}

func pulled(f *Feed) ([]client.Event, bool) {
	changes, reset := f.Changes()
	return slices.Collect(changes), reset
}

func pull(t *testing.T, f *Feed) []string {
	t.Helper()
	changes, reset := pulled(f)
	assert.False(t, reset)
	return showChanges(changes)
}

func TestFeedOfSomeTypes(t *testing.T) {
	w := newWorld(t, Options{})
	w.put(things, "a/x", "", "1")
	w.put(others, "a/x", "", "1")
	f := w.hub.Feed(things)
	defer f.Close()
	require.NoError(t, f.Wait(t.Context()), "there is something at first")
	assert.Equal(t, []string{"1 things.example.com a/x: to 1@1"}, pull(t, f))
	assert.Equal(t, storage.Revision(2), f.Revision())
	w.put(things, "a/x", "", "2")
	w.put(others, "a/x", "", "2")
	w.delete(things, "a/x")
	w.hub.Drop(things)
	assert.Equal(t, []string{
		"3 things.example.com a/x: from 1@1 to 2@3",
		"5 things.example.com a/x: from 2@3",
	}, pull(t, f))
	assert.Equal(t, storage.Revision(5), f.Revision())
	assert.Empty(t, pull(t, f))
}

func TestFeedOfAllTypesMergesThem(t *testing.T) {
	w := newWorld(t, Options{})
	f := w.hub.Feed()
	defer f.Close()
	assert.Empty(t, pull(t, f))
	w.put(things, "a/x", "", "1")
	w.put(others, "a/x", "", "1")
	assert.Equal(t, []string{"1 things.example.com a/x: to 1@1", "2 others a/x: to 1@2"}, pull(t, f))
	w.put(others, "a/x", "", "2")
	w.put(things, "a/x", "", "2")
	w.put(others, "a/x", "", "3")
	assert.Equal(t, []string{
		"3 others a/x: from 1@2 to 2@3", "4 things.example.com a/x: from 1@1 to 2@4", "5 others a/x: from 2@3 to 3@5",
	}, pull(t, f))
}

func TestFeedThatFellBehindStartsAgain(t *testing.T) {
	w := newWorld(t, Options{MaxEvents: 3})
	f := w.hub.Feed(things, others)
	defer f.Close()
	w.put(others, "a/x", "", "1")
	pull(t, f)
	for i := range 5 {
		w.put(things, "a/x", "", fmt.Sprint(i))
	}
	changes, reset := pulled(f)
	assert.True(t, reset)
	assert.Equal(t, []string{"6 things.example.com a/x: to 4@6", "1 others a/x: to 1@1"}, showChanges(changes))
	w.put(others, "a/x", "", "2")
	assert.Equal(t, []string{"7 others a/x: from 1@1 to 2@7"}, pull(t, f))
}

func TestFeedsShareDecodedObjects(t *testing.T) {
	w := newWorld(t, Options{})
	one, two := w.hub.Feed(), w.hub.Feed()
	w.put(things, "a/x", "", "1")
	a, _ := pulled(one)
	b, _ := pulled(two)
	assert.Same(t, a[0].Object, b[0].Object)
}

func TestFeedWaitInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		h, err := Open(t.Context(), store, Options{})
		require.NoError(t, err)
		w := &world{t, store, h}
		f := h.Feed(things)
		var got []string
		go func() {
			for f.Wait(t.Context()) == nil {
				changes, _ := pulled(f)
				got = append(got, showChanges(changes)...)
			}
		}()
		synctest.Wait()
		w.put(others, "a/x", "", "1")
		synctest.Wait()
		assert.Empty(t, got)
		w.put(things, "a/x", "", "1")
		synctest.Wait()
		assert.Equal(t, []string{"2 things.example.com a/x: to 1@2"}, got)
		require.NoError(t, h.Close())
		synctest.Wait() // the feed's loop has ended with the hub
		require.NoError(t, store.Close())
	})
}

func TestIdentityFeed(t *testing.T) {
	w := newWorld(t, Options{})
	f := w.hub.IdentityFeed(things)
	defer f.Close()
	key := things.String() + "/a/x"
	stored := `{"kind":"Thing","metadata":{"name":"x","namespace":"a","uid":"u","finalizers":["f"],"labels":{"a":"b"},"deletionTimestamp":"2024-01-02T03:04:05Z","ownerReferences":[{"uid":"o","blockOwnerDeletion":true}]},"spec":{"value":"1"}}`
	rev, err := w.store.Commit(t.Context(), storage.Write{Key: key, Value: []byte(stored), Expect: 0})
	require.NoError(t, err)
	require.NoError(t, w.hub.Wait(t.Context(), rev))
	changes, reset := f.Changes()
	assert.False(t, reset)
	var seen []client.Event
	for c := range changes {
		seen = append(seen, c)
	}
	require.Len(t, seen, 1)
	assert.Equal(t, map[string]any{"metadata": map[string]any{
		"name": "x", "namespace": "a", "uid": "u", "resourceVersion": fmt.Sprint(rev), "finalizers": []any{"f"},
		"deletionTimestamp": "2024-01-02T03:04:05Z",
		"ownerReferences":   []any{map[string]any{"uid": "o", "blockOwnerDeletion": true}},
	}}, seen[0].Object.Tree())
	assert.Nil(t, seen[0].Old)

	w.delete(things, "a/x")
	gone, _ := pulled(f)
	require.Len(t, gone, 1)
	assert.Nil(t, gone[0].Object)
	assert.Equal(t, "u", gone[0].Old.UID())
}
