package watch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

func TestPagesShowOneState(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	for i := range 5 {
		w.put(things, fmt.Sprintf("a/o%d", i), fmt.Sprintf("s=%d", i%2), "1")
		w.put(things, fmt.Sprintf("b/o%d", i), "", "1")
	}
	p := c.List(query{Prefix: "a/"}, "", 2)
	assert.Equal(t, []string{"a/o0@1 1", "a/o1@3 1"}, show(p.Entries))
	assert.Equal(t, int64(3), p.Remaining)
	assert.Equal(t, storage.Revision(10), p.Revision)
	w.delete(things, "a/o2")
	w.put(things, "a/o3", "", "2")
	w.put(things, "a/o35", "", "2")
	p, err := c.ListAt(t.Context(), p.Revision, query{Prefix: "a/"}, p.Next, 2)
	require.NoError(t, err)
	assert.Equal(t, []string{"a/o2@5 1", "a/o3@7 1"}, show(p.Entries))
	assert.Equal(t, int64(1), p.Remaining)
	p, err = c.ListAt(t.Context(), p.Revision, query{Prefix: "a/"}, p.Next, 2)
	require.NoError(t, err)
	assert.Equal(t, []string{"a/o4@9 1"}, show(p.Entries))
	assert.Equal(t, Page[*thing]{Entries: p.Entries, Revision: 10}, p)

	// The next page with a selector begins at the next match.
	p = c.List(labeled("s=0"), "", 1)
	assert.Equal(t, []string{"a/o0@1 1"}, show(p.Entries))
	assert.Equal(t, "a/o4", p.Next)
	p = c.List(labeled("s=0"), p.Next, 1)
	assert.Equal(t, []string{"a/o4@9 1"}, show(p.Entries))
	assert.Empty(t, p.Next)
	assert.Empty(t, c.List(query{}, "zzz", 0).Entries)
}

func TestPinnedStatesOutliveHistoryAndAreBounded(t *testing.T) {
	w := newWorld(t, options{MaxEvents: 1, MaxSnapshots: 3})
	c := w.set.Cache(things)
	var pages []Page[*thing]
	for i := range 5 {
		w.put(things, fmt.Sprintf("a/o%d", i), "", "1")
		pages = append(pages, c.List(query{}, "", 1))
	}
	require.NoError(t, w.store.Compact(t.Context(), w.set.Revision()))
	assert.Empty(t, pages[0].Next, "one object is one page and pins nothing")
	_, err := c.ListAt(t.Context(), pages[1].Revision, query{}, pages[1].Next, 0)
	assert.ErrorIs(t, err, storage.ErrCompacted, "the oldest state made room")
	for _, p := range pages[2:] {
		rest, err := c.ListAt(t.Context(), p.Revision, query{}, p.Next, 0)
		require.NoError(t, err)
		assert.Len(t, rest.Entries, int(p.Remaining))
		assert.Len(t, rest.Entries, int(p.Revision)-1)
	}
}
