package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/eventlog"
	"orch.io/controlplane/storage/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSelectorTable holds what a change is to a watcher whose query sees the old
// state, the new one, both or none.
func TestSelectorTable(t *testing.T) {
	states := map[string]struct{ labels, value string }{
		"in": {"s=on", "on"}, "out": {"s=off", "off"},
	}
	for _, tc := range []struct{ from, to, want string }{
		{"", "in", "ADDED"}, {"", "out", ""},
		{"in", "in", "MODIFIED"}, {"in", "out", "DELETED"}, {"in", "", "DELETED"},
		{"out", "in", "ADDED"}, {"out", "out", ""}, {"out", "", ""},
	} {
		for name, q := range map[string]Query{
			"label":           labelQuery(t, "s in (on)"),
			"label not":       labelQuery(t, "s,s!=off"),
			"field":           fieldQuery(t, "spec.value=on"),
			"field not":       fieldQuery(t, "spec.value!=off"),
			"name and field":  fieldQuery(t, "metadata.name=x,metadata.namespace=a,spec.value=on"),
			"field function":  {Fields: fieldQuery(t, "odd=on").Fields, Field: func(e *Entry, f string) string { return e.Field("spec", "value") + f[3:] }},
			"label and field": {Labels: labelQuery(t, "s=on").Labels, Fields: fieldQuery(t, "spec.value=on").Fields},
		} {
			t.Run(fmt.Sprintf("%s: %q to %q", name, tc.from, tc.to), func(t *testing.T) {
				w := newWorld(t, Options{})
				if tc.from != "" {
					w.put(things, "a/x", states[tc.from].labels, states[tc.from].value)
				}
				entries, cur := w.hub.Cache(things).WatchFrom(q)
				assert.Equal(t, tc.from == "in", len(entries) == 1)
				if tc.to != "" {
					w.put(things, "a/x", states[tc.to].labels, states[tc.to].value)
				} else {
					w.delete(things, "a/x")
				}
				got := drainAll(t, cur)
				if tc.want == "" {
					assert.Empty(t, got)
					return
				}
				state := states[tc.to].value
				if tc.want == "DELETED" {
					state = "on" // the last state that matched, at the revision of the change
				}
				assert.Equal(t, []string{fmt.Sprintf("%s a/x@%d %s", tc.want, w.hub.Revision(), state)}, got)
			})
		}
	}
}

func TestContradictingDemandsSelectNothing(t *testing.T) {
	w := newWorld(t, Options{})
	w.put(things, "a/x", "", "1")
	q := fieldQuery(t, "metadata.namespace=a")
	q.Namespace = "b"
	p := w.hub.Cache(things).List(q, "", 0)
	assert.Empty(t, p.Entries)
	q.Namespace = ""
	assert.Len(t, w.hub.Cache(things).List(q, "", 0).Entries, 1)
}

func TestClusterScopedByName(t *testing.T) {
	w := newWorld(t, Options{})
	for i := range 5 {
		w.put(things, fmt.Sprintf("/n%d", i), "", fmt.Sprint(i))
	}
	c := w.hub.Cache(things)
	assert.Equal(t, []string{"/n3@4 3"}, show(c.List(fieldQuery(t, "metadata.name=n3"), "", 0).Entries))
	assert.Equal(t, meta.Key{Name: "n3"}, c.Get(meta.Key{Name: "n3"}).Key())
}

func TestWatchInTheFuture(t *testing.T) {
	w := newWorld(t, Options{})
	cur, err := w.hub.Cache(things).Watch(Query{}, 2)
	require.NoError(t, err)
	w.put(things, "a/x", "", "1")
	w.put(things, "a/x", "", "2")
	w.put(things, "a/x", "", "3")
	assert.Equal(t, []string{"MODIFIED a/x@3 3"}, drainAll(t, cur))
}

// TestOnlyInterestedCursorsAreWoken looks at the groups that stay parked.
func TestOnlyInterestedCursorsAreWoken(t *testing.T) { synctest.Test(t, testOnlyInterested) }

func testOnlyInterested(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.hub.Cache(things)
	c.Index(nil, registry.SelectableField{Name: "spec.value", Absent: "none"})
	queries := map[string]Query{
		"all": {}, "label": labelQuery(t, "s=on"), "in a": {Namespace: "a"}, "in b": {Namespace: "b"},
		"a/x": {Namespace: "a", Name: "x"}, "any x": fieldQuery(t, "metadata.name=x"),
		"value 1": fieldQuery(t, "spec.value=1"), "value 2": fieldQuery(t, "spec.value=2"), "no value": fieldQuery(t, "spec.value=none"),
	}
	woken := func(do func()) map[string]bool {
		groups := make(map[string]*eventlog.Group)
		for name, q := range queries {
			m := c.matcher(q)
			i := m.interest()
			c.mu.Lock()
			groups[name] = c.parked.Park(i)
			c.mu.Unlock()
		}
		do()
		out := make(map[string]bool)
		for name, g := range groups {
			select {
			case <-g.Woken():
				out[name] = true
			default:
			}
		}
		c.endWatches()
		return out
	}
	set := func(names ...string) map[string]bool {
		m := make(map[string]bool)
		for _, n := range names {
			m[n] = true
		}
		return m
	}
	put := func(key, value string) func() {
		return func() {
			w.put(things, key, "", value)
			synctest.Wait() // until the hub waits for the next commit
		}
	}
	assert.Equal(t, set("all", "label", "in a", "a/x", "any x", "value 1"), woken(put("a/x", "1")))
	assert.Equal(t, set("all", "label", "in a", "a/x", "any x", "value 1", "value 2"), woken(put("a/x", "2")))
	assert.Equal(t, set("all", "label", "in b", "any x", "no value"), woken(put("b/x", "")))
	assert.Equal(t, set("all", "label"), woken(put("c/y", "7")))

	c.Index(func(e *Entry) bool { return e.Field("spec", "value") == "odd" }, registry.SelectableField{Name: "spec.value"})
	assert.Equal(t, set("all", "label", "in b", "value 1", "value 2", "no value"), woken(put("b/z", "odd")), "its fields are not known")
	assert.Equal(t, set("all", "label", "in b", "value 1", "value 2", "no value"), woken(put("b/z", "7")), "nor what they were")
	assert.Equal(t, set("all", "label", "in b", "value 1"), woken(put("b/z", "1")))
}

// TestWhatEntriesDoNotTell: an object counts as selected as far as it does not tell whether
// it is, and who finds out sees it come and go.
func TestWhatEntriesDoNotTell(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.hub.Cache(things)
	q := fieldQuery(t, "spec.value=1,metadata.name!=y")
	q.Labels = labelQuery(t, "s=on").Labels
	q.Unsure = func(e *Entry, field string) bool { return field != FieldLabels && e.Field("spec", "value") == "odd" }
	_, cur := c.WatchFrom(q)
	for _, put := range [][2]string{{"a/x", "1"}, {"a/x", "odd"}, {"a/y", "odd"}, {"a/x", "2"}, {"a/x", "odd"}} {
		w.put(things, put[0], "s=on", put[1])
	}
	w.put(things, "a/z", "s=off", "odd")
	want := []string{"ADDED a/x@1 1", "MODIFIED a/x@2 odd", "DELETED a/x@4 odd", "ADDED a/x@5 odd"}
	events, err := cur.Next(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, showEvents(events))
	var seen []Event
	for _, ev := range events {
		if ev, ok := ev.Narrow(func(e *Entry) bool { return e.Field("spec", "value") != "odd" }); ok {
			seen = append(seen, ev)
		}
	}
	assert.Equal(t, []string{"ADDED a/x@1 1", "DELETED a/x@2 1"}, showEvents(seen))
	assert.Equal(t, []string{"a/x@5 odd"}, show(c.List(q, "", 0).Entries))
}

func TestThousandWatchersSeeEveryChange(t *testing.T) {
	const watchers, writers, each = 1000, 4, 25
	w := newWorld(t, Options{})
	c := w.hub.Cache(things)
	var wg sync.WaitGroup
	var failed atomic.Pointer[string]
	for i := range watchers {
		q := Query{}
		if i%2 == 0 {
			q.Namespace = fmt.Sprintf("ns%d", i/2%writers)
		}
		_, cur := c.WatchFrom(q)
		wg.Go(func() {
			if fault := followAll(t.Context(), cur, q, writers*each); fault != "" {
				failed.Store(&fault)
			}
		})
	}
	for n := range writers {
		wg.Go(func() {
			for i := range each {
				key := storageKey(things, fmt.Sprintf("ns%d/o", n))
				_, err := w.store.Commit(t.Context(), storage.Write{Key: key, Value: object(fmt.Sprintf("ns%d/o", n), "", fmt.Sprint(i)), Expect: storage.AnyRevision})
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	if f := failed.Load(); f != nil {
		t.Fatal(*f)
	}
}

// followAll reads changes until the last revision (or of one namespace, a
// quarter of them) and tells what is wrong with them.
func followAll(ctx context.Context, cur *Cursor, q Query, total int) string {
	want := total
	if q.Namespace != "" {
		want /= 4
	}
	last, seen := storage.Revision(0), map[string]int{}
	for n := 0; n < want; {
		events, err := cur.Next(ctx)
		if err != nil {
			return err.Error()
		}
		for _, ev := range events {
			if ev.Revision <= last {
				return fmt.Sprintf("revision %d after %d", ev.Revision, last)
			}
			if q.Namespace == "" && ev.Revision != last+1 {
				return fmt.Sprintf("gap from %d to %d", last, ev.Revision)
			}
			if v := ev.Entry.Field("spec", "value"); v != fmt.Sprint(seen[ev.Entry.key]) {
				return fmt.Sprintf("%s is %s after %d changes", ev.Entry.key, v, seen[ev.Entry.key])
			}
			seen[ev.Entry.key]++
			last = ev.Revision
			n++
		}
	}
	return ""
}

// TestListThenWatchMissesNothing starts watches while others write: the list and
// the changes after it must give the final state.
func TestListThenWatchMissesNothing(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.hub.Cache(things)
	const writes = 400
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range writes {
			key := fmt.Sprintf("a/o%d", i%7)
			write := storage.Write{Key: storageKey(things, key), Value: object(key, "", fmt.Sprint(i)), Expect: storage.AnyRevision}
			if i%5 == 4 && i < writes-7 {
				write.Value = nil
			}
			_, err := w.store.Commit(t.Context(), write)
			if !errors.Is(err, storage.ErrNotFound) {
				assert.NoError(t, err)
			}
		}
		_, err := w.store.Commit(t.Context(), storage.Write{Key: storageKey(things, "z/end"), Value: object("z/end", "", "end"), Expect: storage.AnyRevision})
		assert.NoError(t, err)
	})
	for range 4 {
		wg.Go(func() {
			for done := false; !done; {
				entries, cur := c.WatchFrom(Query{})
				p := c.List(Query{}, "", 2)
				from, err := c.Watch(Query{}, p.Revision)
				assert.NoError(t, err)
				whole, err := c.ListAt(t.Context(), p.Revision, Query{}, "", 0)
				assert.NoError(t, err)
				done = len(entries) > 0 && entries[len(entries)-1].key == "z/end"
				assert.Equal(t, replay(t, entries, cur), replay(t, whole.Entries, from))
			}
		})
	}
	wg.Wait()
}

// replay applies changes to a state until the end is seen.
func replay(t *testing.T, entries []*Entry, cur *Cursor) map[string]string {
	state := make(map[string]string)
	for _, e := range entries {
		state[e.key] = showOne(e)
	}
	for state["z/end"] == "" {
		events, err := cur.Next(t.Context())
		if !assert.NoError(t, err) {
			return nil
		}
		for _, ev := range events {
			if _, there := state[ev.Entry.key]; there == (ev.Type == Added) {
				t.Errorf("%s of %s, there: %v", ev.Type, ev.Entry.key, there)
			}
			if state[ev.Entry.key] = showOne(ev.Entry); ev.Type == Deleted {
				delete(state, ev.Entry.key)
			}
		}
	}
	return state
}

func TestDropEndsWatches(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.hub.Cache(things)
	w.put(things, "a/x", "", "1")
	_, cur := c.WatchFrom(Query{})
	ended := make(chan error)
	go func() {
		_, err := cur.Next(t.Context())
		ended <- err
	}()
	awaitParked(c, 1)
	w.hub.Drop(things)
	require.ErrorIs(t, <-ended, ErrEnded)
	_, again := c.WatchFrom(Query{})
	w.delete(things, "a/x")
	assert.Equal(t, []string{"DELETED a/x@2 1"}, drainAll(t, again))
}

// TestDroppedTypeIsToldToItsEnd: whoever is behind when its type is dropped gets
// all that happened before, and nothing of what comes after, however many drops
// follow.
func TestDroppedTypeIsToldToItsEnd(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.hub.Cache(things)
	const many = 3*64 + 5
	_, all := c.WatchFrom(Query{})
	_, one := c.WatchFrom(Query{Name: "x7"})
	for i := range many {
		w.put(things, fmt.Sprint("a/x", i), "", "1")
	}
	resumed, err := c.Watch(Query{}, many/2)
	require.NoError(t, err)
	w.hub.Drop(things)
	_, next := c.WatchFrom(Query{})
	for i := range many {
		w.delete(things, fmt.Sprint("a/x", i))
	}
	w.hub.Drop(things)
	w.put(things, "a/y", "", "1")
	for _, cur := range []struct {
		*Cursor
		events int
	}{{all, many}, {one, 1}, {resumed, many - many/2}, {next, many}} {
		got := 0
		for {
			events, err := cur.Next(t.Context())
			if err != nil {
				require.ErrorIs(t, err, ErrEnded)
				break
			}
			got += len(events)
		}
		assert.Equal(t, cur.events, got)
	}
}

func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{Retain: -1})
		h, err := Open(t.Context(), store, Options{Retain: time.Minute, MaxEvents: 5})
		require.NoError(t, err)
		w := &world{t, store, h}
		c := h.Cache(things)

		// A watcher that nothing happens to learns at its time limit how far it is.
		_, cur := c.WatchFrom(Query{Namespace: "b"})
		start := time.Now()
		go func() {
			time.Sleep(time.Second)
			for range 20 { // more than the log holds
				w.put(things, "a/x", "", "1")
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err = cur.Next(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 10*time.Second, time.Since(start))
		assert.Equal(t, storage.Revision(20), cur.Revision())
		assert.Empty(t, drainAll(t, cur))

		// A wait for a revision that does not come ends with its context and leaves nothing.
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		require.ErrorIs(t, h.Wait(ctx, 1000), context.DeadlineExceeded)
		cancel()
		synctest.Wait()
		assert.Empty(t, h.waits.gates)
		assert.Empty(t, h.waits.by)
		assert.Empty(t, c.parked)

		// The log, and the states kept for paging, end with their time.
		w.put(things, "a/y", "", "2")
		p := c.List(Query{}, "", 1)
		require.NotEmpty(t, p.Next)
		time.Sleep(50 * time.Second)
		w.put(things, "a/z", "", "3")
		synctest.Wait()
		assert.Len(t, c.pins, 1)
		time.Sleep(11 * time.Second)
		w.put(others, "a/x", "", "sweeps")
		time.Sleep(10 * time.Second)
		w.put(others, "a/x", "", "sweeps again")
		synctest.Wait()
		assert.Equal(t, 1, c.log.Events())
		assert.Equal(t, storage.Revision(21), c.log.Floor())
		assert.Len(t, c.pins, 1)
		_, err = c.ListAt(t.Context(), p.Revision, Query{}, p.Next, 1)
		require.NoError(t, err, "the state was replaced 21 seconds ago")
		time.Sleep(39 * time.Second)
		_, err = c.ListAt(t.Context(), p.Revision, Query{}, p.Next, 1)
		require.NoError(t, err, "the state was replaced a minute ago")
		time.Sleep(2 * time.Second)
		_, err = c.ListAt(t.Context(), p.Revision, Query{}, p.Next, 1)
		require.ErrorIs(t, err, ErrGone)
		_, err = c.Watch(Query{}, p.Revision)
		require.ErrorIs(t, err, ErrGone)
		_, err = c.Watch(Query{}, 22)
		require.NoError(t, err, "nothing has changed since")
		w.put(others, "a/x", "", "sweeps once more")
		synctest.Wait()
		assert.Empty(t, c.pins)

		require.NoError(t, h.Close())
		require.NoError(t, store.Close())
	})
}

func TestFormsAreMadeOnce(t *testing.T) {
	w := newWorld(t, Options{MaxFormBytes: 4 * (formOverhead + 100)})
	c := w.hub.Cache(things)
	cursors := make([]*Cursor, 10)
	for i := range cursors {
		_, cursors[i] = c.WatchFrom(Query{})
	}
	for i := range 6 {
		w.put(things, fmt.Sprintf("a/o%d", i), "", "1")
	}
	var made atomic.Int32
	produce := func() ([]byte, error) {
		made.Add(1)
		return make([]byte, 100), nil
	}
	for _, cur := range cursors {
		events, err := cur.Next(t.Context())
		require.NoError(t, err)
		for _, ev := range events[:3] {
			_, err := ev.Frame(FormKey{Version: "v1"}, produce)
			require.NoError(t, err)
		}
	}
	assert.EqualValues(t, 3, made.Load())
	e := c.Get(meta.Key{Namespace: "a", Name: "o0"})
	_, err := Event{Type: Added, Entry: e, Revision: e.revision}.Frame(FormKey{Version: "v1"}, produce)
	require.NoError(t, err)
	assert.EqualValues(t, 3, made.Load(), "what is there already is framed as it was when it came")
	_, err = e.Form(FormKey{Version: "v1"}, func() ([]byte, error) { return nil, errors.New("once") })
	require.EqualError(t, err, "once")
	_, err = e.Form(FormKey{Version: "v1"}, produce)
	require.NoError(t, err)
	assert.EqualValues(t, 4, made.Load())

	// A fifth kept form is one too many: the oldest goes.
	_, err = c.Get(meta.Key{Namespace: "a", Name: "o5"}).Form(FormKey{}, produce)
	require.NoError(t, err)
	assert.Nil(t, e.forms.Load())
	assert.LessOrEqual(t, w.hub.forms.total, w.hub.forms.max)
}

func TestEntryBytes(t *testing.T) {
	for _, stored := range []string{
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"n","namespace":"s","labels":{"a":"1","b\"":"\u00e4"}},"data":{"x":"\"resourceVersion\":\"5\"","y":[{"z":true}]}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{},"x":1.5}`,
	} {
		e := NewEntry(meta.Key{Namespace: "s", Name: "n"}, 5, []byte(stored))
		assert.Equal(t, stored, string(e.stored()))
		var got, want map[string]any
		require.NoError(t, json.Unmarshal(e.JSON(), &got))
		require.NoError(t, json.Unmarshal([]byte(stored), &want))
		want["metadata"].(map[string]any)["resourceVersion"] = "5"
		assert.Equal(t, want, got)
		assert.Equal(t, stored, string(e.stored()), "after JSON")
		assert.Equal(t, "5", e.Object().ResourceVersion())
		assert.Same(t, e.Object(), e.Object())
		assert.NotSame(t, e.decode(), e.decode())
	}
	e := NewEntry(meta.Key{Namespace: "s", Name: "n"}, 0, []byte(`{"metadata":{"labels":{"a":"1","b\"":"\u00e4"},"name":"n"},"n":12,"b":false,"o":{}}`))
	assert.Equal(t, []string{"a", "1", `b"`, "ä"}, e.labelPairs())
	v, ok := e.label(`b"`)
	assert.Equal(t, "ä", v)
	assert.True(t, ok)
	_, ok = e.label("c")
	assert.False(t, ok)
	assert.Equal(t, []string{"12", "false", "", ""}, []string{e.Field("n"), e.Field("b"), e.Field("o"), e.Field("o", "p")})
	assert.Equal(t, "", e.Object().ResourceVersion())
	broken := NewEntry(meta.Key{Namespace: "s", Name: "n"}, 3, []byte(`{"metadata":`))
	assert.Equal(t, "n", broken.Object().Name())
	assert.Empty(t, broken.labelPairs())
}
