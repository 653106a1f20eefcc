package objectcache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/storage"
)

// typed is the beginning of the text of a whole object, which is not part of list items.
const typed = `{"apiVersion":"example.com/v1","kind":"Thing",`

// joinedText returns the expected result of JoinJSON, made from the stored bytes alone.
func joinedText(entries []*Entry) string {
	var texts [][]byte
	for _, e := range entries {
		whole := codec.Splice(nil, e.stored(), int64(e.Revision()))
		texts = append(texts, bytes.Replace(whole, []byte(typed), []byte("{"), 1))
	}
	return string(bytes.Join(texts, []byte(",")))
}

func checkJoinJSON(t testing.TB, entries []*Entry, whole bool) {
	t.Helper()
	want := joinedText(entries)
	texts, _ := JoinJSON(entries, whole)
	if got := string(bytes.Join(texts, nil)); got != want {
		require.Equal(t, want, got)
	}
}

// checkBlocks checks that the blocks of a cache have no more unused bytes than allowed.
func checkBlocks(t testing.TB, c *Cache) {
	t.Helper()
	used := map[*block]int64{}
	for _, e := range c.List(Query{}, "", 0).Entries {
		if b := e.body.Load(); b.block != nil {
			used[b.block] += int64(len(b.bytes) + 1)
			assert.Equal(t, string(b.bytes), string(b.block.text[b.at:b.at+len(b.bytes)]))
			assert.True(t, bytes.HasPrefix(b.bytes, []byte(`{"metadata":{"resourceVersion":`)))
		}
		whole := string(e.JSON())
		require.True(t, strings.HasPrefix(whole, typed+`"metadata":{"resourceVersion":`), whole[:min(99, len(whole))])
		assert.Equal(t, whole, string(e.AppendJSON(nil)))
		assert.Equal(t, "Thing", e.Object().Tree()["kind"])
	}
	for b, n := range used {
		assert.Equal(t, n, b.used.Load(), "used must count the texts of current entries")
		assert.GreaterOrEqual(t, n, b.half())
	}
}

func TestJoinJSON(t *testing.T) {
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(t, Options{})
		c := w.set.Cache(things)
		change := func() {
			key := fmt.Sprintf("ns%d/o%d", random.IntN(3), random.IntN(100))
			if c.Get(meta.Key{Namespace: key[:3], Name: key[4:]}) != nil && random.IntN(3) == 0 {
				w.delete(things, key)
				return
			}
			size := random.IntN(3000)
			if random.IntN(20) == 0 {
				size = random.IntN(2 * longText)
			}
			w.put(things, key, "", strings.Repeat("x", size))
		}
		for range 300 {
			change()
		}
		old := c.List(Query{}, "", 1)
		for range 20 {
			for range random.IntN(30) {
				change()
			}
			checkJoinJSON(t, c.List(Query{}, "", 0).Entries, true)
			checkBlocks(t, c)
			checkJoinJSON(t, c.List(Query{Namespace: "ns1"}, "", 20).Entries, true)
			odd := c.List(Query{Namespace: "ns2"}, "", 0).Entries
			checkJoinJSON(t, odd[:random.IntN(len(odd)+1)], false)
			p, err := c.ListAt(t.Context(), old.Revision, Query{}, "", 0)
			require.NoError(t, err)
			checkJoinJSON(t, p.Entries, true)
			checkBlocks(t, c)
		}
	}
}

func TestSecondListIsNotCopied(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.set.Cache(things)
	for i := range 1000 {
		w.put(things, fmt.Sprintf("a/o%03d", i), "", strings.Repeat("x", 1000))
	}
	blocks := func() (texts [][]byte) {
		all, own := JoinJSON(c.List(Query{}, "", 0).Entries, true)
		assert.Zero(t, own)
		for _, text := range all {
			if len(text) > 1 { // no comma
				texts = append(texts, text)
			}
		}
		return texts
	}
	first, again := blocks(), blocks()
	require.Len(t, again, len(first))
	assert.Less(t, len(first), 10)
	for i := range first {
		assert.Same(t, &first[i][0], &again[i][0])
	}

	// A change moves only the texts near the changed object.
	w.put(things, "a/o500", "", "y")
	third := blocks()
	assert.Len(t, third, len(first)+2)
	assert.Same(t, &first[0][0], &third[0][0])
	checkBlocks(t, c)
}

// TestBlocksAreDropped: a block is not kept alive by the few of its texts that are still in use.
func TestBlocksAreDropped(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.set.Cache(things)
	for i := range 200 {
		w.put(things, fmt.Sprintf("a/o%03d", i), "", strings.Repeat("x", 1000))
	}
	all := c.List(Query{}, "", 0).Entries
	JoinJSON(all, true)
	require.NotNil(t, all[7].body.Load().block)
	for i := range 200 {
		if i%10 != 7 {
			w.delete(things, fmt.Sprintf("a/o%03d", i))
		}
	}
	for _, e := range all {
		assert.Nil(t, e.body.Load().block, "neither current entries nor entries in the history may keep the block")
	}
	checkJoinJSON(t, all, true)
	assert.Nil(t, all[0].body.Load().block, "entries that are not current must not be put into a block")
}

// TestJoinJSONOfDifferentKinds: an object with another apiVersion or kind than its neighbours is not put into their
// block, and keeps its own.
func TestJoinJSONOfDifferentKinds(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.set.Cache(things)
	texts := []string{
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"}}`,
		`{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"b"},"x":"\"metadata\":{"}`,
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{},"metadata":{}}`,
		`{}`, `{`, `odd`, ``,
	}
	for i, text := range texts {
		w.commit(storage.Write{Key: storageKey(things, fmt.Sprintf("a/o%d", i)), Value: []byte(text), Expect: storage.AnyRevision})
	}
	entries := c.List(Query{}, "", 0).Entries
	require.Len(t, entries, len(texts))
	for _, all := range []bool{false, true, true, false} {
		parts, _ := JoinJSON(entries, all)
		list := string(bytes.Join(parts, nil))
		require.True(t, strings.HasPrefix(list, `{"metadata":{"resourceVersion":"1","name":"a"}},{"metadata":{"resourceVersion":"2","name":"b"},"x":"\"metadata\":{"},`), list)
		for i, e := range entries {
			assert.Equal(t, texts[i], string(e.stored()), all)
		}
	}
}

func TestJoinJSONWhileObjectsChange(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.set.Cache(things)
	for i := range 300 {
		w.put(things, fmt.Sprintf("a/o%03d", i), "", strings.Repeat("x", 500))
	}
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true
				default:
				}
				checkJoinJSON(t, c.List(Query{}, "", 0).Entries, true)
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		w.put(things, fmt.Sprintf("a/o%03d", random.IntN(300)), "", strings.Repeat("y", random.IntN(1000)))
	}
	close(done)
	readers.Wait()
	for _, e := range c.List(Query{}, "", 0).Entries {
		assert.EqualValues(t, 1, e.current.Load())
	}
}
