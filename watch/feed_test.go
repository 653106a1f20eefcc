package watch

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// pullAny returns the events of a call of Changes as "revision prefix+key: from old to new".
func pullAny(f *Feed[*thing]) (out []string, reset bool) {
	events, reset := f.Changes()
	for c, ev := range events {
		s := fmt.Sprintf("%d %s%s:", ev.Revision, c.Prefix(), ev.key())
		if ev.Old != nil {
			s += fmt.Sprintf(" from %s@%d", ev.Old.value, ev.Old.Revision)
		}
		if ev.New != nil {
			s += fmt.Sprintf(" to %s@%d", ev.New.value, ev.New.Revision)
		}
		out = append(out, s)
	}
	return out, reset
}

func pull(t *testing.T, f *Feed[*thing]) []string {
	t.Helper()
	events, reset := pullAny(f)
	assert.False(t, reset)
	return events
}

func TestFeedOfSomeCaches(t *testing.T) {
	w := newWorld(t, options{})
	w.put(things, "a/x", "", "1")
	w.put(others, "a/x", "", "1")
	f := w.set.Feed(w.set.Cache(things))
	require.NoError(t, f.Wait(t.Context()), "the first Pull has the current entries")
	assert.Equal(t, []string{"1 things/a/x: to 1@1"}, pull(t, f))
	assert.Equal(t, storage.Revision(2), f.Revision())
	w.put(things, "a/x", "", "2")
	w.put(others, "a/x", "", "2")
	w.delete(things, "a/x")
	w.set.Cache(things).EndWatches()
	assert.Equal(t, []string{
		"3 things/a/x: from 1@1 to 2@3",
		"5 things/a/x: from 2@3",
	}, pull(t, f))
	assert.Equal(t, storage.Revision(5), f.Revision())
	assert.Empty(t, pull(t, f))
}

func TestFeedOfAllCachesMergesThem(t *testing.T) {
	w := newWorld(t, options{})
	f := w.set.Feed()
	assert.Empty(t, pull(t, f))
	w.put(things, "a/x", "", "1")
	w.put(others, "a/x", "", "1")
	assert.Equal(t, []string{"1 things/a/x: to 1@1", "2 others/a/x: to 1@2"}, pull(t, f))
	w.put(others, "a/x", "", "2")
	w.put(things, "a/x", "", "2")
	w.put(others, "a/x", "", "3")
	assert.Equal(t, []string{
		"3 others/a/x: from 1@2 to 2@3", "4 things/a/x: from 1@1 to 2@4", "5 others/a/x: from 2@3 to 3@5",
	}, pull(t, f))
}

func TestFeedBehindTheLogResets(t *testing.T) {
	w := newWorld(t, options{MaxEvents: 3})
	f := w.set.Feed(w.set.Cache(things), w.set.Cache(others))
	w.put(others, "a/x", "", "1")
	pull(t, f)
	for i := range 5 {
		w.put(things, "a/x", "", fmt.Sprint(i))
	}
	changes, reset := pullAny(f)
	assert.True(t, reset)
	assert.Equal(t, []string{"6 things/a/x: to 4@6", "1 others/a/x: to 1@1"}, changes)
	w.put(others, "a/x", "", "2")
	assert.Equal(t, []string{"7 others/a/x: from 1@1 to 2@7"}, pull(t, f))
}

func TestFeedWaitInSynctestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		h, err := openSet(t.Context(), store, options{})
		require.NoError(t, err)
		w := &world{t, store, h}
		f := h.Feed(h.Cache(things))
		var got []string
		go func() {
			for f.Wait(t.Context()) == nil {
				changes, _ := pullAny(f)
				got = append(got, changes...)
			}
		}()
		synctest.Wait()
		w.put(others, "a/x", "", "1")
		synctest.Wait()
		assert.Empty(t, got)
		w.put(things, "a/x", "", "1")
		synctest.Wait()
		assert.Equal(t, []string{"2 things/a/x: to 1@2"}, got)
		require.NoError(t, h.Close())
		synctest.Wait() // the feed's loop has ended with the CacheSet
		require.NoError(t, store.Close())
	})
}
