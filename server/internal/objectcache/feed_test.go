package objectcache

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/client"
	"orch.io/controlplane/storage"
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
	f := w.set.Feed(things)
	defer f.Close()
	require.NoError(t, f.Wait(t.Context()), "there is something at first")
	assert.Equal(t, []string{"1 things.example.com a/x: to 1@1"}, pull(t, f))
	assert.Equal(t, storage.Revision(2), f.Revision())
	w.put(things, "a/x", "", "2")
	w.put(others, "a/x", "", "2")
	w.delete(things, "a/x")
	w.set.Drop(things)
	assert.Equal(t, []string{
		"3 things.example.com a/x: from 1@1 to 2@3",
		"5 things.example.com a/x: from 2@3",
	}, pull(t, f))
	assert.Equal(t, storage.Revision(5), f.Revision())
	assert.Empty(t, pull(t, f))
}

func TestFeedsShareDecodedObjects(t *testing.T) {
	w := newWorld(t, Options{})
	one, two := w.set.Feed(), w.set.Feed()
	w.put(things, "a/x", "", "1")
	a, _ := pulled(one)
	b, _ := pulled(two)
	assert.Same(t, a[0].Object, b[0].Object)
}

func TestIdentityFeed(t *testing.T) {
	w := newWorld(t, Options{})
	f := w.set.IdentityFeed(things)
	defer f.Close()
	key := things.String() + "/a/x"
	stored := `{"kind":"Thing","metadata":{"name":"x","namespace":"a","uid":"u","finalizers":["f"],"labels":{"a":"b"},"deletionTimestamp":"2024-01-02T03:04:05Z","ownerReferences":[{"uid":"o","blockOwnerDeletion":true}]},"spec":{"value":"1"}}`
	rev, err := w.store.Commit(t.Context(), storage.Write{Key: key, Value: []byte(stored), Expect: 0})
	require.NoError(t, err)
	require.NoError(t, w.set.Wait(t.Context(), rev))
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
