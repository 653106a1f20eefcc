package objectcache

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

var (
	things = meta.GroupResource{Group: "example.com", Resource: "things"}
	others = meta.GroupResource{Resource: "others"}
)

// world is a store with a Set.
type world struct {
	t     testing.TB
	store storage.Backend
	set   *Set
}

func newWorld(t testing.TB, o Options) *world {
	return openWorld(t, memstore.New(memstore.Options{Retain: -1, MaxEvents: -1, MaxBytes: -1}), o)
}

func openWorld(t testing.TB, store storage.Backend, o Options) *world {
	h, err := Open(t.Context(), store, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, h.Close())
		require.NoError(t, store.Close())
	})
	return &world{t, store, h}
}

// object returns the stored JSON of an object. labels are k=v, separated by commas.
func object(key, labels, value string) []byte {
	namespace, name, _ := strings.Cut(key, "/")
	var pairs []string
	for _, l := range strings.Split(labels, ",") {
		if k, v, ok := strings.Cut(l, "="); ok {
			pairs = append(pairs, fmt.Sprintf("%q:%q", k, v))
		}
	}
	return fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":%q,"namespace":%q,"labels":{%s}},"spec":{"value":%q,"n":7}}`,
		name, namespace, strings.Join(pairs, ","), value)
}

func storageKey(r meta.GroupResource, key string) string { return r.String() + "/" + key }

// put writes an object and waits for the cache.
func (w *world) put(r meta.GroupResource, key, labels, value string) storage.Revision {
	return w.commit(storage.Write{Key: storageKey(r, key), Value: object(key, labels, value), Expect: storage.AnyRevision})
}

func (w *world) delete(r meta.GroupResource, key string) storage.Revision {
	return w.commit(storage.Write{Key: storageKey(r, key), Expect: storage.AnyRevision})
}

func (w *world) commit(write storage.Write) storage.Revision {
	w.t.Helper()
	rev, err := w.store.Commit(context.Background(), write)
	require.NoError(w.t, err)
	require.NoError(w.t, w.set.Wait(context.Background(), rev))
	return rev
}

// show returns entries as "key@revision value".
func show(entries []*Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, showOne(e))
	}
	return out
}

func showOne(e *Entry) string {
	return fmt.Sprintf("%s@%d %s", e.key, e.revision, e.Field("spec", "value"))
}

func showEvents(events []Event) []string {
	var out []string
	for _, ev := range events {
		out = append(out, TypeOf(ev).String()+" "+showOne(ObjectOf(ev)))
	}
	return out
}

// drainAll returns all events that are available.
func drainAll(t testing.TB, cur *Cursor) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out []string
	cancel()
	for {
		events, err := cur.Next(ctx)
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			return out
		}
		out = append(out, showEvents(events)...)
	}
}

func labelQuery(t testing.TB, text string) Query {
	s, err := meta.ParseLabelSelector(text)
	require.NoError(t, err)
	return Query{Labels: s}
}

func fieldQuery(t testing.TB, text string) Query {
	s, err := meta.ParseFieldSelector(text)
	require.NoError(t, err)
	return Query{Fields: s}
}

func TestListAndGetFollowTheStore(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.set.Cache(things)
	assert.Equal(t, things, resourceOf(c.Cache))
	assert.Nil(t, c.Get(meta.Key{Namespace: "a", Name: "x"}))

	w.put(things, "a/x", "", "1")
	w.put(others, "a/x", "", "other")
	w.put(things, "a-b/x", "", "2")
	w.put(things, "b/x", "", "3")
	rev := w.put(things, "a/x", "", "4")
	assert.Equal(t, rev, w.set.Revision())

	p := c.List(Query{}, "", 0)
	assert.Equal(t, []string{"a-b/x@3 2", "a/x@5 4", "b/x@4 3"}, show(p.Entries))
	assert.Equal(t, Page{Entries: p.Entries, Revision: 5}, p)
	assert.Equal(t, []string{"a/x@5 4"}, show(c.List(Query{Namespace: "a"}, "", 0).Entries))
	assert.Equal(t, []string{"a/x@5 4"}, show(c.List(Query{Namespace: "a", Name: "x"}, "", 0).Entries))
	assert.Len(t, c.List(Query{Name: "x"}, "", 0).Entries, 3)
	assert.Empty(t, c.List(Query{Namespace: "a", Name: "xy"}, "", 0).Entries)

	e := c.Get(meta.Key{Namespace: "a", Name: "x"})
	assert.Equal(t, "5", e.Object().ResourceVersion())
	assert.JSONEq(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x","namespace":"a","resourceVersion":"5","labels":{}},"spec":{"value":"4","n":7}}`, string(e.JSON()))
	w.delete(things, "a/x")
	assert.Nil(t, c.Get(meta.Key{Namespace: "a", Name: "x"}))
	assert.Equal(t, 2, c.Len())
	assert.Equal(t, []meta.GroupResource{things, others}, w.set.Stored())
}

func TestWatchSelectorEnterAndLeave(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.set.Cache(things)
	cur, err := c.Watch(labelQuery(t, "s=on"), 0)
	require.NoError(t, err)
	w.put(things, "a/x", "s=off", "1") // not selected
	w.put(things, "a/x", "s=on", "2")  // selected from now on
	w.put(things, "a/x", "s=on", "3")
	w.put(things, "a/x", "s=off", "4") // not selected any more: the event has the last state that matched
	w.put(things, "a/x", "s=off", "5") // not selected
	w.put(things, "a/x", "s=on", "6")
	w.delete(things, "a/x")
	assert.Equal(t, []string{
		"ADDED a/x@2 2", "MODIFIED a/x@3 3", "DELETED a/x@4 3", "ADDED a/x@6 6", "DELETED a/x@7 6",
	}, drainAll(t, cur))
}
