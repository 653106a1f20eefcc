package objectcache

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSelectorTable checks the events of queries that select the old state, the new one, both
// or none.
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
				entries, cur := w.set.Cache(things).ListAndWatch(q)
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
				assert.Equal(t, []string{fmt.Sprintf("%s a/x@%d %s", tc.want, w.set.Revision(), state)}, got)
			})
		}
	}
}

func TestContradictingRequirementsSelectNothing(t *testing.T) {
	w := newWorld(t, Options{})
	w.put(things, "a/x", "", "1")
	q := fieldQuery(t, "metadata.namespace=a")
	q.Namespace = "b"
	p := w.set.Cache(things).List(q, "", 0)
	assert.Empty(t, p.Entries)
	q.Namespace = ""
	assert.Len(t, w.set.Cache(things).List(q, "", 0).Entries, 1)
}

func TestClusterScopedByName(t *testing.T) {
	w := newWorld(t, Options{})
	for i := range 5 {
		w.put(things, fmt.Sprintf("/n%d", i), "", fmt.Sprint(i))
	}
	c := w.set.Cache(things)
	assert.Equal(t, []string{"/n3@4 3"}, show(c.List(fieldQuery(t, "metadata.name=n3"), "", 0).Entries))
	assert.Equal(t, meta.Key{Name: "n3"}, c.Get(meta.Key{Name: "n3"}).Key())
}

// TestTopicOfQuery checks for which key, prefix or topic the cursor of a query waits.
func TestTopicOfQuery(t *testing.T) {
	w := newWorld(t, Options{})
	w.put(others, "/n", "", "1")
	scoped, cluster := w.set.Cache(things), w.set.Cache(others)
	for _, c := range []*Cache{scoped, cluster} {
		c.Index(nil, registry.SelectableField{Name: "spec.value"})
	}
	topic := func(name, value string) watch.Topic { return watch.Topic{Name: name, Value: value} }
	for _, tc := range []struct {
		cache *Cache
		query Query
		want  watch.Query[*Entry]
	}{
		{scoped, Query{}, watch.Query[*Entry]{}},
		{scoped, labelQuery(t, "s=on"), watch.Query[*Entry]{}},
		{scoped, Query{Namespace: "a"}, watch.Query[*Entry]{Prefix: "a/"}},
		{scoped, fieldQuery(t, "metadata.namespace=a"), watch.Query[*Entry]{Prefix: "a/"}},
		{scoped, Query{Namespace: "a", Name: "x"}, watch.Query[*Entry]{Key: "a/x"}},
		{scoped, fieldQuery(t, "metadata.name=x,metadata.namespace=a"), watch.Query[*Entry]{Key: "a/x"}},
		{scoped, fieldQuery(t, "metadata.name=x"), watch.Query[*Entry]{Topic: topic("metadata.name", "x")}},
		{scoped, fieldQuery(t, "spec.value=1,metadata.namespace=a"), watch.Query[*Entry]{Prefix: "a/", Topic: topic("spec.value", "1")}},
		{scoped, fieldQuery(t, "spec.value!=1"), watch.Query[*Entry]{}},
		{cluster, fieldQuery(t, "metadata.name=n"), watch.Query[*Entry]{Key: "/n"}},
		{cluster, fieldQuery(t, "metadata.name=to-come"), watch.Query[*Entry]{Topic: topic("metadata.name", "to-come")}},
	} {
		got := tc.cache.compile(tc.query)
		got.Match = nil
		assert.Equal(t, tc.want, got)
	}

	topics := topicsOf([]registry.SelectableField{{Name: "spec.value", Path: []string{"spec", "value"}, Absent: "none"}}, func(e *Entry) bool { return e.Field("spec", "value") == "odd" })
	for value, want := range map[string]string{"1": "1", "": "none", "odd": ""} {
		got, known := topics(nil, NewEntry(meta.Key{Namespace: "a", Name: "x"}, 1, object("a/x", "", value)))
		all := []watch.Topic{topic("metadata.name", "x")}
		if want != "" {
			all = append(all, topic("spec.value", want))
		}
		assert.Equal(t, all, got)
		assert.Equal(t, want != "", known)
	}
}

// TestCursorByNameAndField checks that a cursor is woken by entries that have its topic, and by entries whose topics
// are not known.
func TestCursorByNameAndField(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.set.Cache(things)
	c.Index(func(e *Entry) bool { return e.Field("spec", "value") == "odd" }, registry.SelectableField{Name: "spec.value"})
	unsure := fieldQuery(t, "spec.value=1")
	unsure.Unsure = func(e *Entry, field string) bool { return e.Field("spec", "value") == "odd" }
	for _, tc := range []struct {
		query      Query
		key, value string
	}{
		{fieldQuery(t, "metadata.name=x"), "b/x", "2"},
		{fieldQuery(t, "spec.value=1"), "b/y", "1"},
		{unsure, "b/z", "odd"},
	} {
		_, cur := c.ListAndWatch(tc.query)
		got := make(chan []Event)
		go func() {
			events, err := cur.Next(t.Context())
			assert.NoError(t, err)
			got <- events
		}()
		w.put(things, "b/else", "", "3")
		rev := w.put(things, tc.key, "", tc.value)
		assert.Equal(t, []string{fmt.Sprintf("ADDED %s@%d %s", tc.key, rev, tc.value)}, showEvents(<-got))
	}
}

// TestUndeterminedEntriesAreSelected checks that a query selects entries with undetermined values, and that Narrow then
// removes the entries that do not match.
func TestUndeterminedEntriesAreSelected(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.set.Cache(things)
	q := fieldQuery(t, "spec.value=1,metadata.name!=y")
	q.Labels = labelQuery(t, "s=on").Labels
	q.Unsure = func(e *Entry, field string) bool { return field != FieldLabels && e.Field("spec", "value") == "odd" }
	_, cur := c.ListAndWatch(q)
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
		if ev, ok := Narrow(ev, func(e *Entry) bool { return e.Field("spec", "value") != "odd" }); ok {
			seen = append(seen, ev)
		}
	}
	assert.Equal(t, []string{"ADDED a/x@1 1", "DELETED a/x@2 1"}, showEvents(seen))
	assert.Equal(t, []string{"a/x@5 odd"}, show(c.List(q, "", 0).Entries))
}

func TestEncodingsAreMadeOnce(t *testing.T) {
	w := newWorld(t, Options{MaxEncodedBytes: 4 * (encodingOverhead + 100)})
	c := w.set.Cache(things)
	cursors := make([]*Cursor, 10)
	for i := range cursors {
		_, cursors[i] = c.ListAndWatch(Query{})
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
			_, err := Frame(ev, EncodingKey{Version: "v1"}, produce)
			require.NoError(t, err)
		}
	}
	assert.EqualValues(t, 3, made.Load())
	e := c.Get(meta.Key{Namespace: "a", Name: "o0"})
	_, err := Frame(Event{New: e, Revision: e.revision}, EncodingKey{Version: "v1"}, produce)
	require.NoError(t, err)
	assert.EqualValues(t, 3, made.Load(), "the frame of the existing object must be shared")
	_, err = e.Encoded(EncodingKey{Version: "v1"}, func() ([]byte, error) { return nil, errors.New("once") })
	require.EqualError(t, err, "once")
	_, err = e.Encoded(EncodingKey{Version: "v1"}, produce)
	require.NoError(t, err)
	assert.EqualValues(t, 4, made.Load())

	// A fifth encoding exceeds the budget: the oldest is dropped.
	_, err = c.Get(meta.Key{Namespace: "a", Name: "o5"}).Encoded(EncodingKey{}, produce)
	require.NoError(t, err)
	assert.Nil(t, e.encoded.Load())
	assert.LessOrEqual(t, e.budget.total, e.budget.max)
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
