package watch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

const (
	things = "things/"
	others = "others/"
)

// thing is an entry with decoded values.
type thing struct {
	Record
	labels, value string
}

type (
	query   = Query[*thing]
	options = Options[*thing]
)

// object returns the stored bytes of a thing.
func object(labels, value string) []byte { return fmt.Appendf(nil, "%s|%s|%0100d", labels, value, 0) }

func newThing(r storage.Record) *thing {
	labels, rest, _ := strings.Cut(string(r.Value), "|")
	value, _, _ := strings.Cut(rest, "|")
	return &thing{Record(r), labels, value}
}

func openSet(ctx context.Context, b storage.Backend, o options) (*CacheSet[*thing], error) {
	o.Entry = newThing
	return Open(ctx, b, o)
}

// labeled returns the query of the things with certain labels.
func labeled(labels string) query {
	return query{Match: func(e *thing) bool { return e.labels == labels }}
}

// world is a store and its CacheSet.
type world struct {
	t     testing.TB
	store storage.Backend
	set   *CacheSet[*thing]
}

func newWorld(t testing.TB, o options) *world {
	return openWorld(t, memstore.New(memstore.Options{Retain: -1, MaxEvents: -1, MaxBytes: -1}), o)
}

func openWorld(t testing.TB, store storage.Backend, o options) *world {
	h, err := openSet(t.Context(), store, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, h.Close())
		require.NoError(t, store.Close())
	})
	return &world{t, store, h}
}

// put writes a thing and waits for the caches.
func (w *world) put(prefix string, key, labels, value string) storage.Revision {
	return w.commit(storage.Write{Key: prefix + key, Value: object(labels, value), Expect: storage.AnyRevision})
}

func (w *world) delete(prefix string, key string) storage.Revision {
	return w.commit(storage.Write{Key: prefix + key, Expect: storage.AnyRevision})
}

func (w *world) commit(write storage.Write) storage.Revision {
	w.t.Helper()
	rev, err := w.store.Commit(context.Background(), write)
	require.NoError(w.t, err)
	require.NoError(w.t, w.set.Wait(context.Background(), rev))
	return rev
}

// show returns entries as "key@revision value".
func show(entries []*thing) []string {
	var out []string
	for _, e := range entries {
		out = append(out, showOne(e))
	}
	return out
}

func showOne(e *thing) string {
	return fmt.Sprintf("%s@%d %s", e.Key, e.Revision, e.value)
}

func showEvents(events []Event[*thing]) []string {
	var out []string
	for _, ev := range events {
		switch {
		case ev.Old == nil:
			out = append(out, "ADDED "+showOne(ev.New))
		case ev.New == nil:
			out = append(out, fmt.Sprintf("DELETED %s@%d %s", ev.Old.Key, ev.Revision, ev.Old.value))
		default:
			out = append(out, "MODIFIED "+showOne(ev.New))
		}
	}
	return out
}

// drainAll returns the events that can be read without waiting.
func drainAll(t testing.TB, cur *Cursor[*thing]) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out []string
	for cur.history != 0 {
		events, err := cur.Next(ctx)
		require.NoError(t, err)
		out = append(out, showEvents(events)...)
	}
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

func TestListAndGetFollowTheStore(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	assert.Equal(t, things, c.Prefix())
	assert.Nil(t, c.Get("a/x"))

	w.put(things, "a/x", "", "1")
	w.put(others, "a/x", "", "other")
	w.put(things, "a-b/x", "", "2")
	w.put(things, "b/x", "", "3")
	rev := w.put(things, "a/x", "", "4")
	assert.Equal(t, rev, w.set.Revision())

	p := c.List(query{}, "", 0)
	assert.Equal(t, []string{"a-b/x@3 2", "a/x@5 4", "b/x@4 3"}, show(p.Entries))
	assert.Equal(t, Page[*thing]{Entries: p.Entries, Revision: 5}, p)
	assert.Equal(t, []string{"a/x@5 4"}, show(c.List(query{Prefix: "a/"}, "", 0).Entries))
	assert.Equal(t, []string{"a/x@5 4"}, show(c.List(query{Key: "a/x"}, "", 0).Entries))
	assert.Equal(t, []string{"a-b/x@3 2", "a/x@5 4"}, show(c.List(query{Prefix: "a"}, "", 0).Entries))
	assert.Empty(t, c.List(query{Key: "a/xy"}, "", 0).Entries)
	assert.Empty(t, c.List(query{Key: "a/x", Match: func(e *thing) bool { return e.value == "1" }}, "", 0).Entries)

	assert.Equal(t, "a/x@5 4", showOne(c.Get("a/x")))
	w.delete(things, "a/x")
	assert.Nil(t, c.Get("a/x"))
	assert.Equal(t, 2, c.Len())
}

func TestCursorDeliversChangesInOrder(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	w.put(things, "a/x", "", "1")
	entries, cur := c.ListAndWatch(query{})
	assert.Equal(t, []string{"a/x@1 1"}, show(entries))
	assert.Equal(t, storage.Revision(1), cur.Revision())
	w.put(things, "a/y", "", "2")
	w.put(others, "a/y", "", "other")
	w.put(things, "a/x", "", "3")
	w.delete(things, "a/y")
	assert.Equal(t, []string{"ADDED a/y@2 2", "MODIFIED a/x@4 3", "DELETED a/y@5 2"}, drainAll(t, cur))
	w.put(others, "a/y", "", "other")
	assert.Empty(t, drainAll(t, cur))
	assert.Equal(t, storage.Revision(6), cur.Revision(), "a bookmark reaches over changes of other caches")
	cur.Close()
	_, err := cur.Next(t.Context())
	assert.ErrorIs(t, err, storage.ErrClosed)
}

func TestEntryEntersAndLeavesQuery(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	cur, err := c.Watch(labeled("s=on"), 0)
	require.NoError(t, err)
	w.put(things, "a/x", "s=off", "1") // unseen
	w.put(things, "a/x", "s=on", "2")  // enters
	w.put(things, "a/x", "s=on", "3")
	w.put(things, "a/x", "s=off", "4") // leaves: the last state that matched
	w.put(things, "a/x", "s=off", "5") // unseen
	w.put(things, "a/x", "s=on", "6")
	w.delete(things, "a/x")
	assert.Equal(t, []string{
		"ADDED a/x@2 2", "MODIFIED a/x@3 3", "DELETED a/x@4 3", "ADDED a/x@6 6", "DELETED a/x@7 6",
	}, drainAll(t, cur))
}

// TestCachesShowACommitBeforeTheSet checks that Wait for a revision does not return before the caches show it.
func TestCachesShowACommitBeforeTheSet(t *testing.T) {
	var w *world
	replaced := 0
	w = newWorld(t, options{Replaced: func(_ string, _, now *thing) {
		if now != nil {
			replaced++
			assert.Less(t, w.set.Revision(), now.Revision)
		}
	}})
	w.set.Cache(things)
	for i := range 3 {
		w.put(things, fmt.Sprint(i), "", "1")
	}
	assert.Equal(t, 3, replaced)
}

// TestOlderChangesAreIgnored checks that a change that was read again does not replace a newer one.
func TestOlderChangesAreIgnored(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	first := w.put(things, "a", "", "old")
	w.put(things, "a", "", "new")
	cur, err := c.Watch(query{}, w.set.Revision())
	require.NoError(t, err)
	defer cur.Close()
	old := newThing(storage.Record{Key: "a", Value: object("", "old"), Revision: first})
	c.apply([]change[*thing]{{cache: c, key: "a", revision: first, entry: old}}, time.Now())
	c.apply([]change[*thing]{{cache: c, key: "a", revision: first}}, time.Now())
	assert.Equal(t, "new", c.Get("a").value)
	assert.Empty(t, drainAll(t, cur))
}

// TestPrefixesEndBeforeTheNextKey checks the key that follows all keys of a prefix, with and without a limit.
func TestPrefixesEndBeforeTheNextKey(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	w.put(things, "a/x", "", "1")
	w.put(things, "a0", "", "2") // "0" follows "/"
	for limit := range 3 {
		p := c.List(query{Prefix: "a/"}, "", limit)
		assert.Equal(t, []string{"a/x@1 1"}, show(p.Entries), limit)
		assert.Empty(t, p.Next, limit)
		assert.Zero(t, p.Remaining, limit)
	}
}
